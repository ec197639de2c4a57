"""Random bodies, JSON, NPY, gzip, zstd: python -m benchmarks.fuzz_bodies [--inputs 100000]

A body is inflated, decoded and checked as that of a request, and only the documented errors may
come out. A JSON body that is accepted must be what Python's own parser reads, and whatever is said
of a fault must fit an answer of 64 kB. Inputs are numbered; the same number is the same input.
"""

import argparse
import sys

from benchmarks.fuzz_bodies.check import MOST_GROWTH, Report, run
from benchmarks.report import heading, table


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--start", type=int, default=0)
    arguments = parser.parse_args()
    print("# Random bodies\n")
    print(heading("fuzz_bodies", ("numpy", "pydantic", "zstandard")))
    report = run(range(arguments.start, arguments.start + arguments.inputs))
    show(report)
    sys.exit(1 if report.failures or report.growth > MOST_GROWTH else 0)


def show(report: Report) -> None:
    """What came out, by kind."""
    outcomes = sorted({outcome for _, outcome in report.counts})
    kinds = sorted({kind for kind, _ in report.counts})
    lines = [[kind, *(str(report.counts[kind, outcome]) for outcome in outcomes)] for kind in kinds]
    print(table(["kind", *outcomes], lines))
    print(f"{sum(report.counts.values())} inputs in {report.seconds:.0f} s; ", end="")
    print(f"the largest took {report.slowest:.2f} s (number {report.slowest_number}); ", end="")
    print(f"memory grew by {report.growth:.0f} MB at most\n")
    for number, what in report.failures[:20]:
        print(f"number {number}: {what}")


if __name__ == "__main__":
    main()
