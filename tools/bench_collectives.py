"""The collectives of `laconic bench` over emulated hosts, for tools/bench: what is run, and the tables of the results."""

import json
import os

import stacking
from stacking import Failed, say, table

# hosts and rate of their links; ranks is what an allreduce of the largest size runs with besides one for each host
PLACES = [(4, "1gbit", (2, 3)), (2, "2500mbit", ())]
SIZES = ["64KiB", "256KiB", "1MiB", "4MiB", "16MiB", "64MiB"]
OTHERS = ["reduce", "reduce_scatter", "bcast", "allgather", "scatter", "gather", "alltoall"]
# Measured for every sample field of f32, over PLACES[0].
OF_FIELDS = ["allreduce", "bcast", "allgather", "scatter", "gather"]
QUICK_SIZES = ["64KiB", "1MiB"]
BOUND = "1e-3rel"
FIELD = "wave_computed_marmousi_rtm_shots"
MODES = ["plain", "cprp2p fzlight", "ccoll", "zccl", "laconic"]
LARGEST_RANKS_MODES = "plain,zccl,laconic"
# With two codec threads where a mode has a use for them. auto learns in its first calls.
EVERY_MODE = ["--modes", "plain,cprp2p,ccoll,zccl,zccl-mt,laconic,auto", "--codec", "all", "--threads", "2", "--warm-up", "6",
              "--repetitions", "3"]
EVERY_MODE_SIZE = "16MiB"
PARTS = ["codec", "wire", "compute", "other"]  # of a call's time
SPEED = {"1gbit": "1 Gb/s", "2500mbit": "2.5 Gb/s"}


def sample_fields():
    with open(os.path.join(stacking.ROOT, "data", "MANIFEST.json"), encoding="utf-8") as manifest:
        return [f["name"] for f in json.load(manifest)["files"] if f["dtype"] == "f32"]


def measure(build, quick):
    """Every run's JSON, with the link's rate, the MPI's short name, and the part of the tables that it is for."""
    results = []
    for hosts, rate, fewer in PLACES:
        with stacking.cluster(hosts, rate) as place:
            for flavour in filter(place.usable, stacking.flavours(build)):
                def bench(part, collective, ranks, size, *options, place=place, flavour=flavour, rate=rate):
                    say(f"{collective} of {size} over {ranks} ranks at {rate} under {flavour.name} ...")
                    r = run(build, place, flavour, ranks, collective, "--size", size, "--bound", BOUND, *options)
                    results.append({"rate": rate, "flavour": flavour.name, "part": part, **r})
                measure_place(bench, hosts, fewer, QUICK_SIZES if quick else SIZES)
                bench("every mode", "allreduce", hosts, QUICK_SIZES[-1] if quick else EVERY_MODE_SIZE, *EVERY_MODE)
                if (hosts, rate, fewer) == PLACES[0] and not quick:
                    measure_fields(bench, hosts)
    return results


def measure_place(bench, hosts, fewer, sizes):
    bench("main", "allreduce", hosts, ",".join(sizes))
    for ranks in fewer:
        bench("main", "allreduce", ranks, sizes[-1], "--modes", LARGEST_RANKS_MODES, "--repetitions", "3")
    for collective in OTHERS:
        bench("main", collective, hosts, sizes[-1], "--repetitions", "3")


def measure_fields(bench, hosts):
    for field in sample_fields():
        for collective in OF_FIELDS:
            bench("fields", collective, hosts, SIZES[-1], "--modes", "plain,laconic", "--repetitions", "3", "--field", field)


def run(build, place, flavour, ranks, *arguments):
    program = [os.path.join(build, "bin", "laconic"), "--json", "bench", *arguments]
    command, environment = place.command(flavour, ranks, program)
    out = stacking.run(command, environment, timeout=300)
    try:
        return json.loads(out[out.index("{"):])
    except ValueError as error:
        raise Failed(f"{' '.join(command)}\n  printed no JSON: {out[-500:]}") from error


def best_modes(results, rate, collective, ranks, size, field=FIELD, part="main"):
    """Each mode under the MPI where it was faster; {} where nothing was measured."""
    best = {}
    for r in results:
        if (r["rate"], r["collective"], r["ranks"], r["field"], r["part"]) != (rate, collective, ranks, field, part):
            continue
        for s in r["sizes"]:
            for m in s["modes"] if s["operand_bytes"] == size else ():
                if m["mode"] not in best or m["seconds"] < best[m["mode"]]["seconds"]:
                    best[m["mode"]] = {**m, "flavour": r["flavour"], "absolute_bound": s["absolute_bound"]}
    return best


def sizes_of(results, rate, collective, ranks, part="main"):
    return sorted({s["operand_bytes"] for r in results for s in r["sizes"] if (r["rate"], r["collective"], r["ranks"], r["field"], r["part"]) ==
                   (rate, collective, ranks, FIELD, part)})


def time_of(modes, name):
    return f"{modes[name]['seconds'] * 1e3:.1f}" if name in modes else "-"


def times(modes, name, over):
    """How many times faster than another mode."""
    return f"{modes[over]['seconds'] / modes[name]['seconds']:.2f}" if name in modes and over in modes else "-"


def size_text(size):
    return f"{size / 2**20:g} MiB" if size >= 2**20 else f"{size / 2**10:g} KiB"


HEAD = ["ms", *("cprp2p" if m.startswith("cprp2p") else m for m in MODES), "over plain", "ratio", "over plain/ratio", "over zccl",
        "over cprp2p", "error/bound", "outside", "scratch/allowed"]


def row(label, modes):
    mine = modes["laconic"]
    gain = modes["plain"]["seconds"] / mine["seconds"]
    outside = sum(m["violations"] for m in modes.values() if m["promised"])
    return [label, *(time_of(modes, m) for m in MODES), f"{gain:.2f}", f"{mine['ratio']:.2f}", f"{gain / mine['ratio']:.2f}",
            times(modes, "laconic", "zccl"), times(modes, "laconic", "cprp2p fzlight"),
            f"{mine['max_error_over_bound']:.3f}", f"{outside:.0f}", f"{mine['scratch_bytes'] / mine['scratch_allowance']:.2f}"]


def text_of(results):
    """All tables; every mode under the MPI where it is faster."""
    parts = []
    for hosts, rate, fewer in PLACES:
        where = f"{hosts} hosts at {SPEED[rate]}, bound {BOUND}"
        sizes = sizes_of(results, rate, "allreduce", hosts)
        rows = [row(size_text(s), best_modes(results, rate, "allreduce", hosts, s)) for s in sizes]
        parts.append(f"allreduce (sum) by size of an operand, {where}\n" + table(HEAD, rows))
        others = {c: best_modes(results, rate, c, hosts, sizes[-1]) for c in OTHERS}
        rows = [row(c, modes) for c, modes in others.items()]
        parts.append(f"other collectives of {size_text(sizes[-1])}, {where}\n" + table(HEAD, rows))
        if fewer:
            rows = [row(f"{n} ranks", best_modes(results, rate, "allreduce", n, sizes[-1])) for n in (*fewer, hosts)]
            parts.append(f"allreduce of {size_text(sizes[-1])} by number of ranks, {where}\n" + table(HEAD, rows))
        parts.append(f"where the time goes in an allreduce of {size_text(sizes[-1])}, {where}; ms, mean over ranks\n" +
                     breakdown({m: v for m, v in best_modes(results, rate, "allreduce", hosts, sizes[-1]).items() if m != "plain"}, "mode"))
        parts.append(f"where the time goes in the others, {where}; ms of laconic, mean over ranks\n" +
                     breakdown({c: modes["laconic"] for c, modes in others.items()}, "collective"))
    for hosts, rate, _ in PLACES:
        size = sizes_of(results, rate, "allreduce", hosts, "every mode")[-1]
        parts.append(f"every mode and codec in an allreduce of {size_text(size)}, {hosts} hosts at {SPEED[rate]}, bound {BOUND}\n" +
                     by_mode(best_modes(results, rate, "allreduce", hosts, size, part="every mode")))
    if any(r["part"] == "fields" for r in results):
        hosts, rate, _ = PLACES[0]
        size = sizes_of(results, rate, "allreduce", hosts, "fields")[-1]
        parts.append(f"{size_text(size)} of each sample field, {hosts} hosts at {SPEED[rate]}, bound {BOUND}\n" + by_field(results, size))
    return "\n\n".join(parts) + "\n"


def by_mode(modes):
    """A row each; plain MPI promises nothing."""
    rows = []
    for name, m in modes.items():
        parts = m.get("breakdown_seconds")  # not of plain MPI
        rows.append([name, m["flavour"], time_of(modes, name), times(modes, name, "plain"), f"{m['ratio']:.2f}" if parts else "-",
                     *(f"{parts[p] * 1e3:.1f}" if parts else "-" for p in PARTS), f"{m['max_error_over_bound']:.3f}",
                     f"{m['violations']:.0f}" if m["promised"] else "-"])
    return table(["mode", "MPI", "ms", "over plain", "ratio", *PARTS, "error/bound", "outside"], rows)


def by_field(results, size):
    """Plain MPI's time with the field, how many times faster Laconic is, and that over the ratio."""
    hosts, rate, _ = PLACES[0]
    rows = []
    for field in sample_fields():
        found = {c: best_modes(results, rate, c, hosts, size, field, "fields") for c in OF_FIELDS}
        mine = {c: modes["laconic"] for c, modes in found.items()}
        gains = {c: modes["plain"]["seconds"] / modes["laconic"]["seconds"] for c, modes in found.items()}
        worst = max(m["max_error_over_bound"] for m in mine.values())
        rows.append([field, f"{mine['bcast']['ratio']:.1f}", f"{mine['allreduce']['ratio']:.1f}",
                     *(f"{found[c]['plain']['seconds'] * 1e3:.0f}: {gains[c]:.1f} ({gains[c] / mine[c]['ratio']:.2f})" for c in OF_FIELDS),
                     f"{worst:.3f}"])
    return table(["plain ms: times faster (over ratio)", "ratio", "in allreduce", *OF_FIELDS, "error/bound"], rows)


def breakdown(modes, what):
    """A row each, by name."""
    rows = [[name, m["flavour"], *(f"{m['breakdown_seconds'][p] * 1e3:.1f}" for p in PARTS)] for name, m in modes.items()]
    return table([what, "MPI", *PARTS], rows)
