#!/usr/bin/env python3
"""Puts what tools/bench measured into docs/benchmarks.md, docs/error-theory.md and README.md, so that no figure is typed by hand.

    tools/bench_docs.py          reads out/bench, writes the parts between <!-- begin NAME --> and <!-- end NAME -->
    tools/bench_docs.py PART...  only those of tools/bench --only PART: codec, error, stack, collectives, dropin, choice, long_choice
"""

import argparse
import json
import os
import platform
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from stacking import ROOT  # noqa: E402

OUT = os.path.join(ROOT, "out", "bench")
SPEED = {"1gbit": "1 Gb/s", "2500mbit": "2.5 Gb/s"}


def read(name):
    with open(os.path.join(OUT, name), encoding="utf-8") as f:
        return f.read()


def machine(part):
    """The load is that at the start of a part."""
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        model = re.search(r"model name\s*:\s*(.+)", f.read())
    name = model.group(1) if model else platform.machine()
    load = read(f"load_{part}.txt")
    busy = " Other work was running: speeds read low, ratios to memcpy less so." if float(load) > 0.5 * os.cpu_count() else ""
    return f"{name}, {os.cpu_count()} cores, Linux {platform.release()}; load average at the start {load}.{busy}"


def replace(path, parts):
    """Every part must have its markers in the file."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for name, body in parts.items():
        pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        if not pattern.search(text):
            sys.exit(f"bench_docs: {path} has no markers for {name}")
        text = pattern.sub(lambda m, b=body: m.group(1) + b.rstrip() + "\n" + m.group(2), text)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def block(text):
    return "```\n" + text.rstrip() + "\n```"


def best_slice(means):
    """Fastest kernels, one thread, from memory, 1e-3 of the range, f32."""
    found = [m for m in means if m["codec"] == "slice" and m["dtype"] == "f32" and m["bound"] == "0.001rel"
             and not m["in_cache"] and m["threads"] == 1]
    return max(found, key=lambda m: m["versus_memcpy"]["decode"] * m["versus_memcpy"]["encode"])


def readme_table():
    """What a newcomer should know, in one table."""
    lines = ["| | plain | Laconic at 1e-3 of the value range | |", "|---|---|---|---|"]
    results = json.loads(read("stack.json"))
    for rate in SPEED:
        for part, title in (("rtm", "sum of 12 seismic images"), ("ensemble", "mean of 4 climate model runs")):
            group = [r for r in results if r["rate"] == rate and part in r["set"] and r["bound"] == "0.001rel"]
            if not group:
                continue
            plain = min(group, key=lambda r: r["plain"]["seconds"])
            best = min(group, key=lambda r: r["laconic"]["seconds"])
            lines.append(f"| {title}, {best['raw_bytes'] / 2**20:.0f} MiB a rank, 4 hosts at {SPEED[rate]} | "
                         f"{plain['plain']['seconds'] * 1e3:.0f} ms | {best['laconic']['seconds'] * 1e3:.0f} ms | "
                         f"**{plain['plain']['seconds'] / best['laconic']['seconds']:.1f} times faster**, "
                         f"{best['ratio']:.1f} times fewer bytes, PSNR {best['laconic']['psnr_db']:.0f} dB, largest error "
                         f"{best['laconic']['max_error_over_bound']:.2f} of the bound |")
    m = best_slice(json.loads(read("codec.json"))["geometric_means"])
    zfp = [x for x in json.loads(read("codec.json"))["geometric_means"]
           if x["codec"] == "zfp" and x["dtype"] == "f32" and x["bound"] == "0.001rel"][0]
    v, z = m["versus_memcpy"], zfp["versus_memcpy"]
    lines.append(f"| codec on one core, {m['fields']} real fields (geometric means), as a multiple of memcpy's speed | zfp: compress "
                 f"{z['encode']:.2f}, decompress {z['decode']:.2f} | compress {v['encode']:.2f}, decompress {v['decode']:.2f}, "
                 f"add two compressed streams {v['add']:.2f} | {m['gb_per_s']['encode']:.1f}, {m['gb_per_s']['decode']:.1f}, "
                 f"{m['gb_per_s']['add']:.1f} GB/s |")
    return "\n".join(lines)


IMAGES = {"codec": ["codec_speed.png", "codec_ratio.png"], "error": ["error_density.png", "error_growth.png"],
          "stack": ["stack_times.png"],
          "collectives": ["collective_times.png", "collective_ranks.png", "collective_breakdown.png"],
          "dropin": [], "choice": [], "long_choice": []}
RARE = ["long_choice"]  # only where it is asked for


def wanted():
    """The parts that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", metavar="PART", nargs="*")  # choices would refuse none at all
    parts = parser.parse_args().parts
    if strange := [part for part in parts if part not in IMAGES]:
        parser.error(f"PART '{strange[0]}': want {', '.join(IMAGES)}")
    return parts or [part for part in IMAGES if part not in RARE]


def main():
    parts = wanted()
    images = os.path.join(ROOT, "docs", "images")
    os.makedirs(images, exist_ok=True)
    for name in (name for part in parts for name in IMAGES[part]):
        shutil.copy(os.path.join(OUT, name), images)
    picture = os.path.join(ROOT, "out", "demo", "rtm", "side_by_side.png")
    if os.path.exists(picture):
        shutil.copy(picture, os.path.join(images, "rtm_side_by_side.png"))
    bodies = {}
    if "codec" in parts:
        bodies.update({"codec": block(read("codec.txt")), "ratio": block(read("ratio.txt"))})
    if "stack" in parts:
        bodies["stack"] = block(read("stack.txt"))
    for part in ("collectives", "dropin", "choice", "long_choice"):
        if part in parts:
            bodies[part] = f"Measured on: {machine(part)}\n\n" + block(read(f"{part}.txt"))
    if "error" in parts:
        replace(os.path.join(ROOT, "docs", "error-theory.md"), {"error": block(read("error.txt"))})
    if {"codec", "stack"} <= set(parts):
        bodies["machine"] = f"Measured on: {machine('codec')}"
        replace(os.path.join(ROOT, "README.md"), {"table": f"{readme_table()}\n\nMeasured on: {machine('codec')} More in "
                                                           "[docs/benchmarks.md](docs/benchmarks.md)."})
    replace(os.path.join(ROOT, "docs", "benchmarks.md"), bodies)


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as e:
        sys.exit(f"bench_docs: no {e.filename}: tools/bench --only PART makes what is read here")
