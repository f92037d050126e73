"""What the automatic choice costs beside the better of plain and compressed, for tools/bench: allreduce over links, sizes and kinds of data."""

import os
import random
import statistics
import struct

import bench_collectives
import stacking
from bench_collectives import size_text
from stacking import say, table

# hosts (0: ranks on this machine, through shared memory), ranks, rate
PLACES = [(0, 2, None), (4, 4, "1gbit"), (2, 2, "2500mbit"), (2, 2, "5gbit")]
NAMES = {None: "shared memory, 2 ranks", "1gbit": "4 hosts, 1 Gb/s", "2500mbit": "2 hosts, 2.5 Gb/s", "5gbit": "2 hosts, 5 Gb/s"}
# sizes that are run together, warm-up, turns of each series, and calls in a turn. The first of them is not timed: an emulated
# link lets a burst through after a pause, so that what one way leaves of it would decide how fast the next one looks.
RUNS = [(["1KiB", "16KiB", "64KiB", "256KiB"], 12, 31, 3), (["1MiB", "4MiB"], 8, 15, 3), (["64MiB"], 9, 9, 2)]
LONG_RUNS = [(["256MiB"], 9, 3, 2)]  # minutes for each link
# The ways have two series each, so that one can see what a way differs from itself.
MODES = "plain,laconic,auto,plain,laconic"
TOO_MUCH = 0.03


def data(out):
    """Name and arguments of each kind of data. White noise within a millionth is as hard as data on a grid can be."""
    noise = os.path.join(out, "noise_262144.f32")
    generator = random.Random(7)
    with open(noise, "wb") as f:
        f.write(b"".join(struct.pack("<f", generator.uniform(-1, 1)) for _ in range(262144)))
    return [("smooth, 1e-3rel", ["--field", "wave_computed_marmousi_rtm_shots", "--bound", "1e-3rel"]),
            ("rough, 1e-3rel", ["--field", "particles_hacc_vx", "--bound", "1e-3rel"]), ("noise, 1e-6rel", [noise, "--bound", "1e-6rel"])]


def measure(build, runs, out):
    """Every run's JSON, with link and kind of data."""
    results = []
    flavour = next(f for f in reversed(stacking.flavours(build)) if not f.hangs_over_hosts())
    for hosts, ranks, rate in PLACES:
        with stacking.cluster(hosts, rate) if hosts else stacking.localhost() as place:
            for kind, arguments in data(out):
                for sizes, warm_up, turns, turn in runs:
                    say(f"choice: {kind} data, {', '.join(sizes)}, {NAMES[rate]}, {flavour.name} ...")
                    r = bench_collectives.run(build, place, flavour, ranks, "allreduce", *arguments, "--size", ",".join(sizes),
                                              "--modes", MODES, "--warm-up", str(warm_up),
                                              "--repetitions", str(turns), "--turn", str(turn))
                    results.append({"rate": rate, "kind": kind, **r})
    return results


def series_of(size):
    """Seconds of each mode's series."""
    found = {}
    for m in size["modes"]:
        found.setdefault(m["mode"], []).append(m["seconds"])
    return found


def text_of(results):
    rows, costs, scatter = [], [], []
    for r in results:
        for s in r["sizes"]:
            ratio = next(m["ratio"] for m in s["modes"] if m["mode"] == "laconic")
            series = series_of(s)
            better = min((series["plain"], series["laconic"]), key=lambda way: way[0])
            costs.append(series["auto"][0] / better[0] - 1)
            scatter.append(better[1] / better[0] - 1)
            rows.append([NAMES[r["rate"]], r["kind"], size_text(s["operand_bytes"]), f"{ratio:.1f}",
                         *(f"{series[m][0] * 1e3:.4f}" for m in ("plain", "laconic", "auto")),
                         f"{costs[-1] * 100:+.1f} %", f"{scatter[-1] * 100:+.1f} %"])
    return ("allreduce: plain, always compressed, and the automatic choice; ms, medians of interleaved runs. The last column: a second series of "
            "the better way, in the same run\n" +
            table(["link", "data", "size", "ratio", "plain", "compressed", "auto", "over the better", "the better over itself"], rows) +
            f"\n\n{summary('over the better', costs)}\n{summary('the better over itself', scatter)}\n")


def summary(what, shares):
    over = sum(share > TOO_MUCH for share in shares)
    return f"{what}: median {statistics.median(shares) * 100:+.1f} %, more than {TOO_MUCH * 100:.0f} % in {over} of {len(shares)} cases"
