"""Unmodified programs with and without `laconic run`'s library, over emulated hosts, for tools/bench."""

import array
import os
import re
import tempfile

import stacking
from stacking import Failed, say, table

HOSTS = 4
RATE = "1gbit"
BOUND = "1e-3rel"
WAVE = os.path.join(stacking.ROOT, "data", "wave_computed_marmousi_rtm_shots_12x200x400.f32")


def programs(build, flavour, quick):
    """Name, command without the output file, and what the bound is relative to: the values that go in."""
    stack = os.path.join(build, "bin", f"dropin_stack_{flavour.name}")
    heat = os.path.join(build, "bin", f"dropin_heat_{flavour.name}")
    python = os.path.join(stacking.ROOT, ".venv", "bin", "python")
    found = [("image stacking (C, MPI_Allreduce of 64 MiB)", [stack, WAVE, "80000", "10" if quick else "200", "5"])]
    if os.path.exists(heat):
        found.append(("heat in a plate (Fortran, MPI_Gather of 16 MB)",
                      [heat, "400" if quick else "2000", "60" if quick else "100", "20"]))
    if os.path.exists(python) and flavour.name == "mpich":  # mpi4py takes the MPI of its own environment
        found.append(("k-means (mpi4py, Allreduce of 1 MB)",
                      [python, os.path.join(stacking.ROOT, "examples", "dropin", "kmeans.py"), WAVE, "20000", "12", "9"]))
    return found


def floats(path):
    values = array.array("f")
    with open(path, "rb") as f:
        values.frombytes(f.read())
    return values


def one(build, place, flavour, name, command, folder):
    """Seconds without and with Laconic, and the largest difference of the output over its range."""
    library = os.path.join(build, "lib", flavour.name, "liblaconic-mpi.so")
    seconds, outputs = [], []
    for settings in ([], [f"LD_PRELOAD={library}", f"LACONIC_BOUND={BOUND}"]):
        out = os.path.join(folder, "out.f32")
        # NumPy's threads wait by spinning; with all ranks on a few cores, collectives would wait for them.
        program = ["env", "OPENBLAS_NUM_THREADS=1", *settings, *command, out]
        line, environment = place.command(flavour, HOSTS, program)
        text = stacking.run(line, environment, timeout=300)
        found = re.search(r"seconds ([0-9.]+)", text)
        if not found:
            raise Failed(f"{' '.join(line)}\n  printed no time: {text[-500:]}")
        seconds.append(float(found.group(1)))
        outputs.append(floats(out))
    plain, ours = outputs
    width = max(plain) - min(plain)
    error = max(abs(a - b) for a, b in zip(plain, ours)) / width
    return {"program": name, "mpi": flavour.name, "plain": seconds[0], "laconic": seconds[1], "error": error}


def measure(build, quick):
    results = []
    with stacking.cluster(HOSTS, RATE) as place, tempfile.TemporaryDirectory() as folder:
        for flavour in filter(place.usable, stacking.flavours(build)):
            for name, command in programs(build, flavour, quick):
                if not os.path.exists(command[0]):
                    continue
                say(f"{name} under {flavour.name} ...")
                results.append(one(build, place, flavour, name, command, folder))
    return results


def text_of(results):
    rows = [[r["program"], r["mpi"], f"{r['plain'] * 1e3:.1f} ms", f"{r['laconic'] * 1e3:.1f} ms",
             f"{r['plain'] / r['laconic']:.2f}", f"{r['error']:.1e}"] for r in results]
    return (f"Unmodified programs over {HOSTS} emulated hosts at 1 Gb/s, LACONIC_BOUND={BOUND}: time of the collective\n" +
            table(["program", "MPI", "alone", "with Laconic", "times faster", "difference / range"], rows) + "\n")
