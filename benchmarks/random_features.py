"""How fast the mean of random features of a large batch is, and what memory it takes.

python -m benchmarks.random_features [--rows 1000000] [--repeats 3]

Beside the same matrix product in float32 with one cosine and one sine of its result, in the same
blocks, measured in turns with it.
"""

import argparse
from time import perf_counter

import numpy as np

from app.core.arrays import Floats
from app.core.prevalence.matching.random_features import BLOCK, FourierMap, Standard
from benchmarks.memory import forget_peak, peak, resident
from benchmarks.report import heading

WIDTH, DIMENSION = 10, 1000


def bare(rows: Floats, frequencies: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> None:
    """The product and its cosine and sine, block by block, and nothing else."""
    step = BLOCK // len(frequencies)
    across = np.ascontiguousarray(frequencies.T)
    for start in range(0, len(rows), step):
        angles = rows[start : start + step].astype(np.float32) @ across
        np.cos(angles)
        np.sin(angles, out=angles)


def main() -> None:
    """Print the times and the memory."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    rows = np.random.default_rng(0).normal(size=(arguments.rows, WIDTH))
    standard = Standard.of(rows[:1000], True)
    features = FourierMap.of(WIDTH, DIMENSION, 1.0, 0)
    features.mean(rows[:5000], standard)
    ours, theirs = [], []
    forget_peak()
    before = resident()
    for _ in range(arguments.repeats):
        start = perf_counter()
        features.mean(rows, standard)
        ours.append(perf_counter() - start)
        start = perf_counter()
        bare(rows, features.frequencies)
        theirs.append(perf_counter() - start)
    grown = peak() - before
    print("# Random features of a large batch\n")
    print(heading("random_features", ("numpy", "scipy")))
    print(f"N = {arguments.rows:,}, d = {WIDTH}, D = {DIMENSION}; least of {arguments.repeats}.\n")
    print(f"- mean of the features: {min(ours):.2f} s")
    print(f"- blocked float32 product, one cosine and one sine: {min(theirs):.2f} s")
    print(f"- ratio: {min(ours) / min(theirs):.2f} (at most 2)")
    print(f"- resident memory grew by {grown:.0f} MB over the batch (below 200)")


if __name__ == "__main__":
    main()
