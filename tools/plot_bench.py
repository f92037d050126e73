"""Plots of what tools/bench measured: plot_bench.py FOLDER reads its JSON files and writes PNGs beside them."""

import json
import os
import sys

import matplotlib

sys.dont_write_bytecode = True
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import plot_collectives  # noqa: E402
import plot_errors  # noqa: E402

COLOURS = {"slice": "#1f6f8b", "fzlight": "#4f9d69", "szx": "#93b85a", "zfp": "#c97b3d", "zfp-rate": "#e0ae84", "lz4": "#8a8a8a",
           "lz4hc": "#b5b5b5", "zstd": "#5f5f5f"}


def load(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def save(figure, folder, name):
    figure.tight_layout()
    figure.savefig(os.path.join(folder, name), dpi=130)
    plt.close(figure)


def one_thread(means, dtype="f32"):
    """From memory, one thread, slice only with its fastest kernels."""
    fastest = {}
    for m in means:
        if m["dtype"] == dtype and not m["in_cache"] and m["threads"] == 1:
            key = (m["codec"], m["bound"])
            if key not in fastest or m["gb_per_s"]["decode"] > fastest[key]["gb_per_s"]["decode"]:
                fastest[key] = m
    return fastest


def codec_speed(folder, means):
    """Compress, decompress and add at 1e-3 of the range, as a multiple of memcpy."""
    best = one_thread(means)
    entries = [(codec, m) for (codec, bound), m in best.items() if bound in ("0.001rel", "lossless")]
    figure, axes = plt.subplots(figsize=(7, 3.6))
    operations = [("encode", "compress"), ("decode", "decompress"), ("add", "add")]
    width = 0.8 / len(entries)
    for i, (codec, m) in enumerate(entries):
        values = [m["versus_memcpy"][key] for key, _ in operations]
        bars = axes.bar(np.arange(3) + (i - (len(entries) - 1) / 2) * width, values, width, color=COLOURS.get(codec),
                        label=codec)
        axes.bar_label(bars, [f"{v:.2f}" if v else "" for v in values], fontsize=7)
    axes.axhline(1, color="black", linewidth=0.8, linestyle=":")
    axes.set_xticks(range(3), [label for _, label in operations])
    axes.set_ylabel("speed / memcpy, one core")
    axes.set_title("Codec speed at 1e-3 of the range (lz4, lz4hc and zstd lossless), geometric mean of f32 fields", fontsize=9)
    axes.legend(fontsize=8)
    save(figure, folder, "codec_speed.png")


def codec_ratio(folder, rows):
    """Ratio of every field at three bounds."""
    rows = [r for r in rows if r["dtype"] == "f32"]
    fields = list(dict.fromkeys(r["field"] for r in rows))
    bounds = list(dict.fromkeys(r["bound"] for r in rows))
    figure, axes = plt.subplots(figsize=(7, 0.22 * len(fields) + 1.6))
    for bound, marker in zip(bounds, "o^s"):
        ratio = {r["field"]: r["ratio"] for r in rows if r["bound"] == bound}
        axes.plot([ratio[f] for f in fields], range(len(fields)), marker, markersize=4, label=bound)
    axes.set_yticks(range(len(fields)), fields, fontsize=6)
    axes.set_xscale("log")
    axes.set_xlabel("compression ratio")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(fontsize=8)
    save(figure, folder, "codec_ratio.png")


def stack_times(folder, results):
    """Plain MPI and Laconic at 1e-3, with Laconic's time split up."""
    chosen = [r for r in results if r["bound"] == "0.001rel"]
    groups = list(dict.fromkeys((r["set"], r["rate"]) for r in chosen))
    figure, axes = plt.subplots(figsize=(7, 0.9 * len(groups) + 1.4))
    labels = []
    at = 0
    for field, rate in groups:
        group = [r for r in chosen if (r["set"], r["rate"]) == (field, rate)]
        plain = min(group, key=lambda r: r["plain"]["seconds"])
        best = min(group, key=lambda r: r["laconic"]["seconds"])
        axes.barh(at, plain["plain"]["seconds"] * 1e3, color="#b0b0b0")
        labels.append((at, f"{short(field)}, {speed(rate)}: plain MPI"))
        left = 0
        for part, colour in (("codec", "#1f6f8b"), ("wire", "#c97b3d"), ("compute", "#7a9e5b"), ("other", "#c9b458")):
            value = best["seconds"][part] * 1e3
            axes.barh(at + 1, value, left=left, color=colour, label=part if at == 0 else None)
            left += value
        axes.text(left, at + 1, f"  {plain['plain']['seconds'] / best['laconic']['seconds']:.1f} x faster, "
                                f"ratio {best['ratio']:.1f}", va="center", fontsize=7)
        labels.append((at + 1, "Laconic"))
        at += 2.6
    axes.set_yticks([y for y, _ in labels], [text for _, text in labels], fontsize=7)
    axes.invert_yaxis()
    size = chosen[0]["raw_bytes"] / 2**20
    axes.set_xlabel(f"ms for one allreduce of about {size:.0f} MiB a rank, 4 hosts, bound 1e-3 of the range", fontsize=8)
    axes.legend(fontsize=7, title="Laconic's time", title_fontsize=7)
    save(figure, folder, "stack_times.png")


def speed(rate):
    return {"1gbit": "1 Gb/s", "2500mbit": "2.5 Gb/s"}.get(rate, rate)


def short(field):
    return {"wave_computed_marmousi_rtm_shots": "seismic images", "climate_ensemble_TREFHT": "climate ensemble"}.get(field, field)


def main():
    folder = sys.argv[1]
    codec = load(folder, "codec.json")
    if codec:
        codec_speed(folder, codec["geometric_means"])
    ratio = load(folder, "ratio.json")
    if ratio:
        codec_ratio(folder, ratio["rows"])
    stack = load(folder, "stack.json")
    if stack:
        stack_times(folder, stack)
    error = load(folder, "error.json")
    if error:
        save(plot_errors.densities(error), folder, "error_density.png")
        save(plot_errors.growth(error), folder, "error_growth.png")
    collectives = load(folder, "collectives.json")
    if collectives:
        save(plot_collectives.times(collectives), folder, "collective_times.png")
        save(plot_collectives.over_ranks(collectives), folder, "collective_ranks.png")
        save(plot_collectives.breakdown(collectives), folder, "collective_breakdown.png")


if __name__ == "__main__":
    main()
