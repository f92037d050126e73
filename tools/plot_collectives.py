"""Plots of the collectives over emulated hosts, for tools/plot_bench.py."""

import matplotlib.pyplot as plt
from bench_collectives import MODES, PLACES, SPEED, best_modes, size_text, sizes_of

COLOURS = {"plain": "#9a9a9a", "cprp2p fzlight": "#c9b458", "ccoll": "#93b85a", "zccl": "#4f9d69", "laconic": "#1f6f8b"}
TITLES = {"plain": "plain MPI", "cprp2p fzlight": "CPRP2P (fzlight)", "ccoll": "C-Coll (szx)", "zccl": "ZCCL (fzlight)", "laconic": "Laconic"}
PARTS = (("codec", "#1f6f8b"), ("wire", "#c97b3d"), ("compute", "#7a9e5b"), ("other", "#c9b458"))


def times(results):
    """Time of an allreduce over the size of an operand."""
    figure, panels = plt.subplots(1, len(PLACES), figsize=(8, 3), sharey=True)
    for axes, (hosts, rate, _) in zip(panels, PLACES):
        sizes = sizes_of(results, rate, "allreduce", hosts)
        for mode in MODES:
            points = [(s, best_modes(results, rate, "allreduce", hosts, s).get(mode)) for s in sizes]
            axes.plot([s for s, m in points if m], [m["seconds"] * 1e3 for _, m in points if m], "o-", markersize=3, linewidth=1.2,
                      color=COLOURS[mode], label=TITLES[mode])
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(sizes, [size_text(s) for s in sizes], fontsize=6, rotation=30)
        axes.minorticks_off()
        axes.set_title(f"allreduce, {hosts} hosts at {SPEED[rate]}", fontsize=8)
        axes.tick_params(axis="y", labelsize=7)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("ms, median", fontsize=7)
    panels[0].legend(fontsize=6)
    return figure


def over_ranks(results):
    """Speed-up of an allreduce over plain MPI, by number of ranks."""
    hosts, rate, fewer = PLACES[0]
    size = sizes_of(results, rate, "allreduce", hosts)[-1]
    counts = (*fewer, hosts)
    figure, axes = plt.subplots(figsize=(4.5, 2.8))
    for mode in ("zccl", "laconic"):
        found = [best_modes(results, rate, "allreduce", n, size) for n in counts]
        axes.plot(counts, [m["plain"]["seconds"] / m[mode]["seconds"] for m in found], "o-", color=COLOURS[mode], label=TITLES[mode])
        axes.plot(counts, [m[mode]["ratio"] for m in found], ":", color=COLOURS[mode], label=f"{TITLES[mode]}: ratio")
    axes.set_xticks(counts)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("ranks", fontsize=8)
    axes.set_title(f"allreduce of {size_text(size)} at {SPEED[rate]}: times faster than plain MPI", fontsize=8)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    return figure


def breakdown(results):
    """Where the time of the largest allreduce goes."""
    figure, panels = plt.subplots(1, len(PLACES), figsize=(8, 2.4))
    for axes, (hosts, rate, _) in zip(panels, PLACES):
        modes = best_modes(results, rate, "allreduce", hosts, sizes_of(results, rate, "allreduce", hosts)[-1])
        shown = [m for m in MODES if m in modes]
        for at, mode in enumerate(shown):
            if mode == "plain":
                axes.barh(at, modes[mode]["seconds"] * 1e3, color=COLOURS["plain"])
                continue
            left = 0
            for part, colour in PARTS:
                value = modes[mode]["breakdown_seconds"][part] * 1e3
                axes.barh(at, value, left=left, color=colour, label=part if mode == "laconic" else None)
                left += value
        axes.set_yticks(range(len(shown)), [TITLES[m] for m in shown], fontsize=7)
        axes.invert_yaxis()
        axes.tick_params(axis="x", labelsize=7)
        axes.set_title(f"{hosts} hosts at {SPEED[rate]}: ms", fontsize=8)
    panels[-1].legend(fontsize=6)
    return figure
