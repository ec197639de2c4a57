"""Random problems for maximum likelihood: python -m benchmarks.fuzz_likelihood [--problems 40000]

Every answer is checked with the ratio matrix in hand, which the solver never forms: it lies on
the simplex, its optimality gap is what was promised, and it took at most 20 Hessian and 30
gradient passes (some more where one row stands for many). Each problem of 2 to 100 classes, with
weights, labels or a calibration, is solved again by another entrance: from near its maximum or
from anywhere, under tilted priors, without a class. The ends of profiles are found again by
maxima without a tilt; intervals hold their shares, and no region is better than the maximum. A
NumPy warning counts as a failure. Problems are numbered; the same number is the same problem.
"""

import argparse
import time

from benchmarks.fuzz_likelihood.problems import full_size, problem
from benchmarks.fuzz_likelihood.run import fuzz


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=40_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--full-size", action="store_true", help="the large known ones instead")
    arguments = parser.parse_args()
    numbers = range(arguments.first, arguments.first + arguments.problems)
    problems = full_size() if arguments.full_size else map(problem, numbers)
    start = time.perf_counter()
    report = fuzz(problems)
    for number, wrong in report.failures:
        print(f"problem {number}: {wrong}")
    print(
        f"{report.problems} problems, {report.answers} answers in "
        f"{time.perf_counter() - start:.0f} s: {len(report.failures)} failures"
    )
    return 1 if report.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
