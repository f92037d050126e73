"""MPICH's own tests, built against one MPI library and run with the drop-in library preloaded, for tools/suites.

The sources are those of any MPICH 4 or later, for example by `apt-get source mpich`: only their test/mpi is used.
"""

import os
import re
import shutil
import subprocess

import stacking
from stacking import Failed, Localhost, say

# What collectives, communicators and everything around them are tested in. Each folder has a testlist: a line a test.
FOLDERS = ("coll", "comm", "attr", "init", "errhan", "mpi_t", "group", "info", "topo", "threads/comm", "threads/init")
TIMEOUT = 180  # as in MPICH's own runtests, where a line does not say timeLimit=


def make(build, folder, targets):
    subprocess.run(["make", "-k", "-j", str(os.cpu_count() or 2), "-C", os.path.join(build, folder), *targets],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def tests_of(source, build, folder):
    """Name, ranks, arguments, environment and time limit of what is to be run, from the folder's testlist."""
    for place in (build, source):
        path = os.path.join(place, folder, "testlist")
        if os.path.exists(path):
            break
    else:
        return []
    found = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.split("#")[0].split()
            if len(words) < 2 or not words[1].isdigit() or any(w.startswith("xfail") for w in words):
                continue
            arguments = [w[4:] for w in words if w.startswith("arg=")]
            environment = [w[4:] for w in words if w.startswith("env=")]
            limit = max([int(w[10:]) for w in words if w.startswith("timeLimit=")], default=TIMEOUT)
            test = (words[0], int(words[1]), arguments, environment, limit)
            if test not in found and int(words[1]) <= 8:
                found.append(test)
    return found


def prepare(source, build, mpicc):
    """Configures and builds; what the MPI library does not have is left out by itself."""
    source = os.path.join(source, "test", "mpi")
    if not os.path.exists(os.path.join(source, "configure")):
        raise Failed(f"there is no {source}/configure: give the folder of MPICH's sources, as apt-get source mpich leaves it")
    if not os.path.exists(os.path.join(build, "util", "Makefile")):
        os.makedirs(build, exist_ok=True)
        say("configuring MPICH's tests ...")
        prefix = os.path.dirname(os.path.dirname(mpicc))
        done = subprocess.run([os.path.join(source, "configure"), f"--with-mpi={prefix}", "CC=gcc", f"MPICC={mpicc}",
                               "--disable-fortran", "--disable-cxx", "--disable-spawn", "--disable-romio", "--without-cuda",
                               "CFLAGS=-O1 -w"], cwd=build, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"MPICH's tests cannot be configured: {done.stdout[-500:]}{done.stderr[-500:]}")
    say("building MPICH's tests ...")
    for folder in ("util", "dtpools"):
        make(build, folder, [])
    for folder in FOLDERS:
        if os.path.isdir(os.path.join(build, folder)):
            make(build, folder, sorted({test[0] for test in tests_of(source, build, folder)}))
    return source


def passes(flavour, folder, test, settings):
    name, ranks, arguments, environment, limit = test
    command, variables = Localhost().command(flavour, ranks, ["env", *environment, *settings, f"./{name}", *arguments])
    try:
        shown = stacking.run(["env", "-C", folder, *command], {**variables, "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}, timeout=limit)
    except Failed:
        return False
    return re.search("no errors", shown, re.IGNORECASE) is not None


def run(source, build, flavour, mpicc, settings):
    """(tests that pass with the settings, those that fail though they pass alone, those that fail alone)."""
    if shutil.which("make") is None:
        raise Failed("make is missing")
    source = prepare(source, build, mpicc)
    good, worse, bad = 0, [], []
    for part in FOLDERS:
        folder = os.path.join(build, part)
        for test in tests_of(source, build, part):
            if not os.path.exists(os.path.join(folder, test[0])):
                continue
            if passes(flavour, folder, test, settings):
                good += 1
                continue
            name = " ".join([f"{part}/{test[0]}", str(test[1]), *test[2]])
            (worse if passes(flavour, folder, test, []) else bad).append(name)
    return good, worse, bad
