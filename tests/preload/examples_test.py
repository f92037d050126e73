"""The unmodified programs of examples/dropin, alone and with the drop-in library: what they write differs by no more than
the bound, and what they reduced or gathered was served.

    examples_test.py BUILD FLAVOUR
"""

import json
import os
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
sys.dont_write_bytecode = True
import bench_dropin  # noqa: E402
import stacking  # noqa: E402

RANKS = 3


def programs(build, flavour):
    """Name, command, and the bound as a share of the largest value that it writes."""
    binary = os.path.join(build, "bin")
    python = os.path.join(ROOT, ".venv", "bin", "python")
    yield "stack.c", [f"{binary}/dropin_stack_{flavour}", bench_dropin.WAVE, "80000", "2", "2"], 1e-4
    if os.path.exists(f"{binary}/dropin_heat_{flavour}"):
        yield "heat.f90", [f"{binary}/dropin_heat_{flavour}", "300", "20", "10"], 1e-4
    # Centres are means of sums: no point changes its cluster for a bound as small as this one.
    kmeans = os.path.join(ROOT, "examples", "dropin", "kmeans.py")
    if flavour == "mpich" and os.path.exists(python):
        yield "kmeans.py", [python, kmeans, bench_dropin.WAVE, "2000", "12", "5"], 1e-5


def start(place, flavour, command, settings=()):
    line, environment = place.command(flavour, RANKS, ["env", *settings, *command])
    stacking.run(line, environment)


def one(build, place, flavour, name, command, share, folder):
    library = os.path.join(build, "lib", flavour.name, "liblaconic-mpi.so")
    plain, ours = (os.path.join(folder, f"{name}.{which}") for which in ("plain", "laconic"))
    report = os.path.join(folder, f"{name}.json")
    start(place, flavour, [*command, plain])
    a = bench_dropin.floats(plain)
    largest = max(abs(x) for x in a)
    bound = share * largest
    rounding = 2 * RANKS * largest * 2**-24  # of either sum
    settings = [f"LD_PRELOAD={library}", f"LACONIC_BOUND={bound}", "LACONIC_MODE=compressed", f"LACONIC_REPORT={report}"]
    start(place, flavour, [*command, ours], settings)
    b = bench_dropin.floats(ours)
    worst = max(abs(x - y) for x, y in zip(a, b))
    with open(report, encoding="utf-8") as f:
        total = json.load(f)["total"]
    served = total["calls"] - total["plain_calls"]
    print(f"{name}: {len(a)} values, largest difference {worst:.3g} of {bound:g}, {served} calls served")
    if not 0 < len(a) == len(b) or not worst <= bound + rounding or worst == 0 or served == 0:
        raise stacking.Failed(f"{name}: {len(a)} and {len(b)} values, largest difference {worst:.6g} of {bound:g}, "
                              f"{served} calls served")


def main(build, name):
    place = stacking.Localhost()
    flavour = next(f for f in stacking.flavours(build) if f.name == name)
    with tempfile.TemporaryDirectory() as folder:
        for case in programs(build, name):
            one(build, place, flavour, *case, folder)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except stacking.Failed as failure:
        sys.exit(f"examples: {failure}")
