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
# sizes that are run together, warm-up and repetitions of each of the three modes
RUNS = [(["1KiB", "16KiB", "64KiB", "256KiB"], 12, 31), (["1MiB", "4MiB"], 8, 15), (["64MiB"], 9, 5)]


def data(out):
    """Name and arguments of each kind of data. White noise within a millionth is as hard as data on a grid can be."""
    noise = os.path.join(out, "noise_262144.f32")
    generator = random.Random(7)
    with open(noise, "wb") as f:
        f.write(b"".join(struct.pack("<f", generator.uniform(-1, 1)) for _ in range(262144)))
    return [("smooth, 1e-3rel", ["--field", "wave_computed_marmousi_rtm_shots", "--bound", "1e-3rel"]),
            ("rough, 1e-3rel", ["--field", "particles_hacc_vx", "--bound", "1e-3rel"]), ("noise, 1e-6rel", [noise, "--bound", "1e-6rel"])]


def measure(build, quick, out):
    """Every run's JSON, with link and kind of data."""
    results = []
    flavour = next(f for f in reversed(stacking.flavours(build)) if not f.hangs_over_hosts())
    for hosts, ranks, rate in PLACES:
        with stacking.cluster(hosts, rate) if hosts else stacking.localhost() as place:
            for kind, arguments in data(out):
                for sizes, warm_up, repetitions in RUNS[:1] if quick else RUNS:
                    say(f"choice: {kind} data, {', '.join(sizes)}, {NAMES[rate]}, {flavour.name} ...")
                    r = bench_collectives.run(build, place, flavour, ranks, "allreduce", *arguments, "--size", ",".join(sizes),
                                              "--modes", "plain,laconic,auto", "--warm-up", str(warm_up),
                                              "--repetitions", str(repetitions))
                    results.append({"rate": rate, "kind": kind, **r})
    return results


def text_of(results):
    rows, costs = [], []
    for r in results:
        for s in r["sizes"]:
            ratio = next(m["ratio"] for m in s["modes"] if m["mode"] == "laconic")
            seconds = {m["mode"]: m["seconds"] for m in s["modes"]}
            cost = seconds["auto"] / min(seconds["plain"], seconds["laconic"]) - 1
            costs.append(cost)
            rows.append([NAMES[r["rate"]], r["kind"], size_text(s["operand_bytes"]), f"{ratio:.1f}",
                         *(f"{seconds[m] * 1e3:.3f}" for m in ("plain", "laconic", "auto")), f"{cost * 100:+.1f} %"])
    over = sum(c > 0.03 for c in costs)
    return ("allreduce: plain, always compressed, and the automatic choice; ms, medians of interleaved runs\n" +
            table(["link", "data", "size", "ratio", "plain", "compressed", "auto", "over the better"], rows) +
            f"\n\nover the better: median {statistics.median(costs) * 100:+.1f} %, more than 3 % in {over} of {len(costs)} cases\n")
