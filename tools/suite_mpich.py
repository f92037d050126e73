"""MPICH's own tests, built against one MPI library and run with the drop-in library preloaded, for tools/suites.

The sources are those of any MPICH 4 or later, for example by `apt-get source mpich`: only their test/mpi is used.
"""

import os
import re
import shutil
import subprocess
import time

import stacking
from stacking import Failed, Localhost, say

TIMEOUT = 180  # as in MPICH's own runtests, where a line does not say timeLimit=
PATIENCE = 5  # times that, for what passes alone
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


def attempt(flavour, folder, test, settings, log, patience=1):
    """"good", "bad" or, for what takes longer than its time limit times `patience`, "late". Programs that are spawned have the
    settings, too, since the launcher has them. What is said goes to the log."""
    name, ranks, arguments, environment, limit = test
    limit *= patience
    command, variables = Localhost().command(flavour, ranks, ["env", *environment, f"./{name}", *arguments])
    variables = {**variables, "MPIR_CVAR_POLLS_BEFORE_YIELD": "1", **dict(s.split("=", 1) for s in settings)}
    begun = time.monotonic()
    try:
        code, out, err = stacking.finish(["env", "-C", folder, *command], variables, timeout=limit)
    except Failed:
        code, out, err = None, "", ""
    good = code in (0, 7) and re.search("no errors", out, re.IGNORECASE) is not None
    what = "late" if code is None else "good" if good else "bad"
    print(f"== {'with Laconic' if settings else 'alone'}: {' '.join([*environment, name, *arguments])}, {ranks} ranks: {what}, "
          f"status {code}, {time.monotonic() - begun:.1f} s", file=log)
    if not good or "laconic" in err:
        print("\n".join((out + err).strip()[-4000:].splitlines()[-30:]), file=log)
    log.flush()
    return what


def name_of(part, test):
    return " ".join([f"{part}/{test[0]}", str(test[1]), *test[2], *test[3]])


def verdict(flavour, folder, test, settings, log):
    """What becomes of a test with the settings: "good", "worse" if it only passes alone, else "bad"."""
    first = attempt(flavour, folder, test, settings, log)
    if first == "good":
        return "good"
    if attempt(flavour, folder, test, [], log) != "good":
        return "bad"
    # Some depend on who comes first, others on how busy the machine is.
    second = attempt(flavour, folder, test, settings, log, PATIENCE if first == "late" else 1)
    return "good" if second == "good" else "worse"


def results_of(path):
    """What an earlier run found, by name."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as lines:
        return {name: what for what, name in (line.rstrip("\n").split(" ", 1) for line in lines)}


def run(source, build, flavour, mpicc, settings, only="", resume=False):
    """By what became of them ("good", "worse", "bad"), the names of the tests that match `only`. `resume`: those with a
    result of an earlier run are not run again."""
    if shutil.which("make") is None:
        raise Failed("make is missing")
    source = prepare(source, build, mpicc)
    found = {"good": [], "worse": [], "bad": []}
    path = os.path.join(build, "results.txt")
    known = results_of(path)
    if not resume and not only:
        known = {}
        open(path, "w", encoding="utf-8").close()
    with open(os.path.join(build, "results.log"), "a", encoding="utf-8") as log, open(path, "a", encoding="utf-8") as results:
        for part in folders_of(source, build):
            folder = os.path.join(build, part)
            for test in tests_of(source, build, part):
                name = name_of(part, test)
                if not os.path.exists(os.path.join(folder, test[0])) or not re.search(only, name):
                    continue
                what = known.get(name) if resume else None
                if what is None:
                    what = verdict(flavour, folder, test, settings, log)
                    print(what, name, file=results, flush=True)
                found[what].append(name)
    return found
