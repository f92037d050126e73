"""MPICH's own tests, built against one MPI library and run with the drop-in library preloaded, for tools/suites.

The sources are those of any MPICH 4 or later, for example by `apt-get source mpich`: only their test/mpi is used.
"""

import os
import re
import shutil
import subprocess

import stacking
from stacking import Failed, Localhost, say

TIMEOUT = 180  # as in MPICH's own runtests, where a line does not say timeLimit=
RANKS = 8  # tests of more are left out
# What MPICH itself expects to fail; where a launcher is to report failures; what needs gigabytes.
LEFT_OUT = ("xfail", "resultTest=", "mpiexecarg=", "mem=")


def make(build, folder, targets):
    subprocess.run(["make", "-k", "-j", str(os.cpu_count() or 2), "-C", os.path.join(build, folder), *targets],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def lines_of(source, build, folder):
    """The words of each line of a folder's testlist: configure makes some of these."""
    for place in (build, source):
        path = os.path.join(place, folder, "testlist")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as lines:
                return [words for words in (line.split("#")[0].split() for line in lines) if words]
    return []


def folders_of(source, build, folder=""):
    """Those that have tests: a line of one word names a folder."""
    lines = lines_of(source, build, folder)
    found = [folder] if any(len(words) > 1 for words in lines) else []
    for words in lines:
        inner = os.path.join(folder, words[0])
        if len(words) == 1 and os.path.isdir(os.path.join(build, inner)):
            found += folders_of(source, build, inner)
    return found


def tests_of(source, build, folder):
    """Name, ranks, arguments, environment and time limit of what is to be run."""
    found = []
    for words in lines_of(source, build, folder):
        if len(words) < 2 or not words[1].isdigit() or any(w.startswith(LEFT_OUT) for w in words):
            continue
        arguments = [w[4:] for w in words if w.startswith("arg=")]
        environment = [w[4:] for w in words if w.startswith("env=")]
        limit = max([int(w[10:]) for w in words if w.startswith("timeLimit=")], default=TIMEOUT)
        test = (words[0], int(words[1]), arguments, environment, limit)
        if test not in found and test[1] <= RANKS:
            found.append(test)
    return found


def languages(mpicc):
    """What configure is told of the compilers beside mpicc: an MPI library need not have them all."""
    found = []
    for name, variables in (("mpicxx", ["MPICXX"]), ("mpif90", ["MPIF77", "MPIFC"])):
        wrapper = os.path.join(os.path.dirname(mpicc), os.path.basename(mpicc).replace("mpicc", name))
        found += [f"{v}={wrapper}" for v in variables] if os.path.exists(wrapper) else []
    return found if any(word.startswith("MPIFC=") for word in found) else [*found, "--disable-fortran"]


def prepare(source, build, mpicc):
    """Configures and builds; what the MPI library does not have is left out by itself."""
    source = os.path.join(source, "test", "mpi")
    if not os.path.exists(os.path.join(source, "configure")):
        raise Failed(f"there is no {source}/configure: give the folder of MPICH's sources, as apt-get source mpich leaves it")
    if not os.path.exists(os.path.join(build, "util", "Makefile")):
        os.makedirs(build, exist_ok=True)
        say("configuring MPICH's tests ...")
        prefix = os.path.dirname(os.path.dirname(mpicc))
        done = subprocess.run([os.path.join(source, "configure"), f"--with-mpi={prefix}", "CC=gcc", "CXX=g++", f"MPICC={mpicc}",
                               *languages(mpicc), "--without-cuda", "--enable-threads=multiple",
                               # dtpools needs what MPI 3 removed: Open MPI has it, for older C and against its own advice
                               "CFLAGS=-O1 -w -std=gnu99 -D__error__=__warning__", "CXXFLAGS=-O1 -w",
                               *(f"{kind}FLAGS=-O1 -w -fallow-argument-mismatch" for kind in ("F", "FC"))],
                              cwd=build, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"MPICH's tests cannot be configured: {done.stdout[-500:]}{done.stderr[-500:]}")
    say("building MPICH's tests ...")
    for folder in ("util", "dtpools"):
        make(build, folder, [])
    for folder in folders_of(source, build):
        make(build, folder, sorted({test[0] for test in tests_of(source, build, folder)}))
    return source


def passes(flavour, folder, test, settings):
    """Programs that are spawned have the settings, too, since the launcher has them."""
    name, ranks, arguments, environment, limit = test
    command, variables = Localhost().command(flavour, ranks, ["env", *environment, f"./{name}", *arguments])
    variables = {**variables, "MPIR_CVAR_POLLS_BEFORE_YIELD": "1", **dict(s.split("=", 1) for s in settings)}
    try:
        shown = stacking.run(["env", "-C", folder, *command], variables, timeout=limit)
    except Failed:
        return False
    return re.search("no errors", shown, re.IGNORECASE) is not None


def name_of(part, test):
    return " ".join([f"{part}/{test[0]}", str(test[1]), *test[2]])


def run(source, build, flavour, mpicc, settings):
    """(tests that pass with the settings, those that fail though they pass alone, those that fail alone)."""
    if shutil.which("make") is None:
        raise Failed("make is missing")
    source = prepare(source, build, mpicc)
    good, worse, bad = 0, [], []
    for part in folders_of(source, build):
        folder = os.path.join(build, part)
        for test in tests_of(source, build, part):
            if not os.path.exists(os.path.join(folder, test[0])):
                continue
            if passes(flavour, folder, test, settings):
                good += 1
                continue
            if not passes(flavour, folder, test, []):
                bad.append(name_of(part, test))
            elif passes(flavour, folder, test, settings):  # a test that depends on who comes first
                good += 1
            else:
                worse.append(name_of(part, test))
    return good, worse, bad
