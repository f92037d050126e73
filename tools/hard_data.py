#!/usr/bin/env python3
"""Writes arrays of which some elements lie on no grid: what docs/benchmarks.md calls hard data.

    tools/hard_data.py FOLDER        a million f32 each: spikes, infinities, nans, fill
"""

import argparse
import os

import numpy as np

COUNT = 1 << 20


def walk(random):
    """Comes back to where it started, so that repeating it makes no step."""
    x = np.cumsum(random.standard_normal(COUNT) * 0.1)
    return (x - np.linspace(0, x[-1], COUNT)).astype("f4")


def anywhere(random, one_in):
    return random.integers(0, COUNT, COUNT // one_in)


def spikes(x, random):
    x[anywhere(random, 300)] = 1e7 * random.integers(1, 1000, COUNT // 300)


def infinities(x, random):
    for value in (np.inf, -np.inf, np.nan):
        x[anywhere(random, 200)] = value


def nans(x, random):
    x[anywhere(random, 50)] = np.nan


def fill(x, random):
    ends = np.sort(random.choice(COUNT, COUNT // 300, replace=False))
    for first, last in zip(ends[::2], ends[1::2]):
        x[first:last] = 9.96921e36


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER")
    folder = parser.parse_args().folder
    os.makedirs(folder, exist_ok=True)
    for spoil in (spikes, infinities, nans, fill):
        random = np.random.default_rng(1)
        x = walk(random)
        spoil(x, random)
        x.tofile(os.path.join(folder, spoil.__name__ + ".f32"))


if __name__ == "__main__":
    main()
