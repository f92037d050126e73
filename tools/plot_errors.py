"""Plots of `laconic bench error`, for tools/plot_bench.py."""

import math

import matplotlib.pyplot as plt
import numpy as np
from bench_errors import dense_of, ranks_of

MODES = {"laconic": ("#1f6f8b", "Laconic, on the grid"), "zccl": ("#4f9d69", "fzlight, step by step"),
         "ccoll": ("#93b85a", "szx, step by step")}
FIELDS = {"weather_wrf_T": "air temperature (dense)", "wave_computed_marmousi_rtm_shots": "seismic images (mostly small)",
          "ocean_deep_convection_T": "ocean (equal values)"}


def rows_of(result, field, op, mode):
    return sorted((r for r in result["per_field"] if (r["field"], r["op"], r["mode"]) == (field, op, mode)), key=lambda r: r["ranks"])


def normal(x, sigma):
    return np.exp(-x * x / (2 * sigma * sigma)) / (sigma * math.sqrt(2 * math.pi))


def uniform_sum(x, n, low, high):
    """Density of a sum of n uniform errors, each in [low, high]: convolved on a fine grid."""
    step = 0.004
    one = np.full(max(2, round((high - low) / step)), 1 / (high - low))
    total = one
    for _ in range(n - 1):
        total = np.convolve(total, one) * step
    return np.interp(x, n * low + step * np.arange(len(total)), total, left=0, right=0)


def panel(axes, result, field, op, mode):
    found = [r for r in rows_of(result, field, op, mode) if r["ranks"] == ranks_of(result)]
    if found:
        density(axes, found[0], MODES[mode][0])
    axes.tick_params(labelsize=6)
    axes.set_yticks([])


def densities(result):
    """Sums of a few fields, then a minimum. Measured: bars; our model: line; the papers': dashed."""
    known = {r["field"] for r in result["per_field"]}
    lines = [(f, "sum", title) for f, title in FIELDS.items() if f in known] or [(dense_of(result), "sum", dense_of(result))]
    lines.append((lines[0][0], "min", lines[0][2]))
    figure, grid = plt.subplots(len(lines), len(MODES), figsize=(8, 1.6 * len(lines) + 0.5), squeeze=False)
    for row, (field, op, title) in zip(grid, lines):
        for axes, mode in zip(row, MODES):
            panel(axes, result, field, op, mode)
            axes.set_title(f"{op}, {title}; {MODES[mode][1]}", fontsize=6)
    grid[-1][1].set_xlabel(f"error in units of e, of a sum over {ranks_of(result)} ranks: divided by their root; negative: toward zero", fontsize=7)
    grid[0][0].legend(fontsize=5.5, loc="upper left")
    return figure


def density(axes, r, colour):
    d, ours = r["density"], r["ours"]
    edges = np.linspace(-d["reach"], d["reach"], len(d["values"]) + 1)
    axes.stairs(d["values"], edges, fill=True, color=colour, alpha=0.45, label="measured")
    x = np.linspace(-2.2, 2.2, 600)
    axes.plot(x, normal(x, r["papers"]["sigma"] / d["scale"]), "--", color="#b03030", linewidth=1, label="papers: normal, 3 sigma = e")
    if ours["law"] != "none":
        low, high = (-1, 1) if ours["law"] == "nearest" else (-1, 0)
        n = 1 if r["op"] in ("min", "max") else r["ranks"]
        unit = d["scale"] * (r["ranks"] if r["op"] == "average" else 1)
        axes.plot(x, uniform_sum(x * unit, n, low, high) * unit, color="black", linewidth=1, label="ours")
    axes.set_xlim(-2.2, 2.2)
    papers_peak = d["scale"] / (r["papers"]["sigma"] * math.sqrt(2 * math.pi))
    axes.set_ylim(0, min(1.15 * max(papers_peak, *d["values"]), 2 * papers_peak))


def growth(result):
    """Of the dense field: bias and standard deviation of a sum over the number of ranks; share in the papers' interval."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(8, 2.7))
    for mode, (colour, title) in MODES.items():
        rows = rows_of(result, dense_of(result), "sum", mode)
        n = [r["ranks"] for r in rows]
        left.plot(n, [r["sigma"] for r in rows], "o", color=colour, markersize=4, label=title)
        middle.plot(n, [-r["bias"] for r in rows], "o", color=colour, markersize=4)
        right.plot(n, [100 * r["within_papers_interval"] for r in rows], "o-", color=colour, markersize=4, linewidth=1)
        if rows and rows[0]["ours"]["law"] != "none":
            left.plot(n, [r["ours"]["sigma"] for r in rows], "-", color=colour, linewidth=1)
            middle.plot(n, [-r["ours"]["bias"] for r in rows], "-", color=colour, linewidth=1)
    n = [r["ranks"] for r in rows_of(result, dense_of(result), "sum", "laconic")]
    left.plot(n, [math.sqrt(k) / 3 for k in n], "--", color="#b03030", linewidth=1, label="papers")
    middle.axhline(0, linestyle="--", color="#b03030", linewidth=1)
    right.axhline(95.44, linestyle="--", color="#b03030", linewidth=1)
    for axes, title in ((left, "sigma / e of a sum"), (middle, "mean error toward zero / e"), (right, "% in the papers' 95.44 % interval")):
        axes.set_title(title, fontsize=8)
        axes.set_xlabel("ranks", fontsize=7)
        axes.set_xscale("log", base=2)
        axes.set_xticks(n, [str(k) for k in n])
        axes.tick_params(labelsize=6)
        axes.grid(alpha=0.3)
    left.legend(fontsize=6)
    return figure
