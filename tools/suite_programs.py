"""Debian's MPI programs (built for its Open MPI), alone and with the drop-in library: what they compute must be the same.

Those that are installed are run, on the inputs in tests/programs. PETSc's Python module stands for a library.
"""

import glob
import json
import os
import re
import shutil
import subprocess

import stacking
from stacking import say

INPUTS = os.path.join(stacking.ROOT, "tests", "programs")
TIMEOUT = 400


class Program:
    def __init__(self, package, binary, arguments, results, output="output", prepare=(), environment=None):
        self.package = package
        self.binary = binary
        self.arguments = arguments
        self.results = re.compile(results, re.MULTILINE)  # the lines that must be the same
        self.output = output  # the file that has them
        self.prepare = prepare
        self.environment = environment or {}

    def installed(self):
        return shutil.which(self.binary) is not None

    def results_in(self, folder):
        """None where it was not written."""
        path = os.path.join(folder, self.output)
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8", errors="replace") as text:
            return self.results.findall(text.read())


class Petsc(Program):
    """Its Python module lies where Python does not look."""

    def __init__(self):
        super().__init__("python3-petsc4py", "/usr/bin/python3", ["poisson.py"], r"^result .*$")
        self.found = glob.glob("/usr/lib/petscdir/*/*/lib/python3/dist-packages")
        self.environment = {"PYTHONPATH": self.found[0] if self.found else ""}

    def installed(self):
        return bool(self.found)


def count_molecules(folder):
    """The topology says how many molecules the box of water has."""
    with open(os.path.join(folder, "water.gro"), encoding="utf-8") as box:
        atoms = int(box.read().splitlines()[1])
    with open(os.path.join(folder, "water.top"), "a", encoding="utf-8") as topology:
        topology.write(f"SOL {atoms // 3}\n")


GROMACS_STEPS = (["gmx", "solvate", "-cs", "spc216.gro", "-box", "4", "4", "4", "-o", "water.gro"], count_molecules,
                 ["gmx", "grompp", "-f", "water.mdp", "-c", "water.gro", "-p", "water.top", "-o", "water.tpr", "-maxwarn", "5"])

PROGRAMS = [
    Program("lammps", "lmp", ["-in", "melt.lammps"], r"^ +\d+(?: +-?[\d.]+){5} *$"),
    # Wall times stand in the same lines' neighbourhood, energies behind these words.
    Program("quantum-espresso", "pw.x", ["-in", "silicon.pw"], r"^!.*$|^ *estimated scf accuracy.*$"),
    Program("cp2k", "cp2k.popt", ["-i", "water.cp2k"], r"^ ENERGY\|.*$", environment={"CP2K_DATA_DIR": "/usr/share/cp2k"}),
    # It deals out work by who comes first: the last digits differ from run to run.
    Program("nwchem-openmpi", "nwchem.openmpi", ["water.nw"], r"^ *Total (?:DFT|SCF) energy = +-?\d+\.\d{9}"),
    Program("gromacs", "gmx_mpi", ["mdrun", "-s", "water.tpr", "-reprod", "-ntomp", "1", "-g", "output.log"],
            r"^(?: +-?\d\.\d{5}e[+-]\d{2})+ *$", "output.log", GROMACS_STEPS),
    Petsc(),
]


def prepare(program, folder):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(INPUTS, folder)
    for step in program.prepare:
        if callable(step):
            step(folder)
        else:
            subprocess.run(step, cwd=folder, capture_output=True, check=True, timeout=TIMEOUT)


def run_once(program, folder, flavour, ranks, settings):
    """Its results, or None."""
    prepare(program, folder)
    command, environment = stacking.Localhost().command(
        flavour, ranks, ["env", *settings, program.binary, *program.arguments])
    with open(os.path.join(folder, "output"), "w", encoding="utf-8") as output:
        try:
            done = subprocess.run(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, timeout=TIMEOUT, check=False,
                                  env={**os.environ, **stacking.POLITE, "OMP_NUM_THREADS": "1", **program.environment,
                                       **environment})
        except subprocess.TimeoutExpired:
            return None
    return program.results_in(folder) if done.returncode == 0 else None


def served_calls(report):
    if not os.path.exists(report):
        return 0
    with open(report, encoding="utf-8") as text:
        return json.load(text)["total"]["calls"]


def run_program(program, out, flavour, ranks, settings):
    """Whether it is as it is alone."""
    folder = os.path.join(out, f"{program.package}-{ranks}")
    alone = run_once(program, folder + "-alone", flavour, ranks, [])
    report = os.path.join(folder + "-report.json")
    if os.path.exists(report):
        os.remove(report)
    served = run_once(program, folder, flavour, ranks, [*settings, f"LACONIC_REPORT={report}"])
    calls = served_calls(report)
    if not alone:
        print(f"{program.package} on {ranks} ranks: does not work alone, so nothing can be said", flush=True)
        return True
    well = served == alone and (calls > 0 or ranks == 1)
    what = "no end, or an error" if served is None else "other results" if served != alone else f"the same {len(alone)} lines"
    print(f"{program.package} on {ranks} ranks, {calls} calls served: {what}", flush=True)
    return well


def run(out, flavour, settings, rank_counts=(1, 2, 3, 4)):
    """Whether all are as they are alone."""
    os.makedirs(out, exist_ok=True)
    good = True
    for program in PROGRAMS:
        if not program.installed():
            say(f"{program.package} is not installed (apt-get install {program.package})")
            continue
        for ranks in rank_counts:
            good = run_program(program, out, flavour, ranks, settings) and good
    return good
