"""Random problems for the maximum-likelihood solver: python -m benchmarks.fuzz_likelihood

Every answer is checked with the ratio matrix in hand, which the solver never forms: it lies on
the simplex, its optimality gap is what was promised, and it took at most 20 Hessian and 30
gradient passes. Problems are numbered; the same number is the same problem.
"""

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from app.core.prevalence.arrays import Floats
from app.core.prevalence.likelihood import Likelihood
from app.core.prevalence.mle import MleResult, mle

HESSIAN_PASSES = 20
GRADIENT_PASSES = 30
ROUNDING = 1e-11
EVERY_LARGE = 100
LARGE = 40_000
"""Rows of every hundredth problem: several blocks, and a subsample to start on."""


@dataclass(frozen=True)
class Problem:
    """N × C posteriors, source priors, row weights or None, and where to start or None."""

    number: int
    posteriors: Floats
    source: Floats
    weights: Floats | None
    start: Floats | None

    def solve(self) -> MleResult:
        """The answer under test."""
        return mle(Likelihood.of(self.posteriors, self.source, self.weights), start=self.start)


Random = np.random.Generator


def _gaussian(rng: Random, rows: int, classes: int) -> Floats:
    """Normal classes at some distance, sampled under one prior, scored under another."""
    centres = rng.normal(size=(classes, 3)) * rng.choice([0.03, 0.3, 1.0, 5.0])
    labels = rng.choice(classes, rows, p=rng.dirichlet(np.full(classes, 0.3)))
    x = centres[labels] + rng.normal(size=(rows, 3))
    return _softmax(x @ centres.T - 0.5 * (centres**2).sum(axis=1))


def _dirichlet(rng: Random, rows: int, classes: int) -> Floats:
    return rng.dirichlet(np.full(classes, rng.choice([0.02, 0.2, 1.0, 20.0])), rows)


def _steep(rng: Random, rows: int, classes: int) -> Floats:
    return _softmax(rng.normal(size=(rows, classes)) * 100)


def _one_hot(rng: Random, rows: int, classes: int) -> Floats:
    return np.eye(classes)[rng.choice(classes, rows, p=rng.dirichlet(np.ones(classes)))]


def _constant(rng: Random, rows: int, classes: int) -> Floats:
    return np.tile(rng.dirichlet(np.ones(classes)), (rows, 1))


KINDS: tuple[Callable[[Random, int, int], Floats], ...] = (
    _gaussian,
    _gaussian,
    _gaussian,
    _dirichlet,
    _steep,
    _one_hot,
    _constant,
)


def _softmax(logits: Floats) -> Floats:
    shares: Floats = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def _rounded(rng: Random, rows: Floats) -> Floats:
    """As printed with two decimals and rescaled."""
    rounded: Floats = np.round(rows, 2)
    rounded[rounded.sum(axis=1) == 0] = 1.0
    rounded /= rounded.sum(axis=1, keepdims=True)
    return rounded


def _zero_column(rng: Random, rows: Floats) -> Floats:
    rows = rows.copy()
    rows[:, rng.integers(rows.shape[1])] = 0
    return rows


def _twin_columns(rng: Random, rows: Floats) -> Floats:
    rows = rows.copy()
    one, other = rng.integers(rows.shape[1], size=2)
    rows[:, other] = rows[:, one] * rng.choice([1.0, 0.3])
    return rows


def _certain_rows(rng: Random, rows: Floats) -> Floats:
    rows = rows.copy()
    rows[: rng.integers(1, 4)] = np.eye(rows.shape[1])[rng.integers(rows.shape[1])]
    return rows


def _single(rng: Random, rows: Floats) -> Floats:
    cast: Floats = rows.astype(np.float32).astype(np.float64)
    return cast


def _as_it_is(rng: Random, rows: Floats) -> Floats:
    return rows


CHANGES: tuple[Callable[[Random, Floats], Floats], ...] = (
    _as_it_is,
    _as_it_is,
    _rounded,
    _zero_column,
    _twin_columns,
    _certain_rows,
    _single,
)


def problem(number: int) -> Problem:
    """Problem ``number`` of an endless list."""
    rng = np.random.default_rng([number, 20260131])
    classes = int(rng.choice([1, 2, 2, 3, 4, 5, 8, 12, 30]))
    rows = int(rng.choice([1, 2, classes, 10, 100, 1000, 3000]))
    if number % EVERY_LARGE == 0:
        classes, rows = min(classes, 8), LARGE
    posteriors = KINDS[rng.integers(len(KINDS))](rng, rows, classes)
    posteriors = CHANGES[rng.integers(len(CHANGES))](rng, posteriors)
    source = rng.dirichlet(np.full(classes, rng.choice([0.3, 1.0, 10.0]))) + rng.choice(
        [1e-12, 2e-5]
    )
    if rng.random() < 0.05 and classes > 2:
        source[rng.integers(classes)] = 0
    source /= source.sum()
    weights = rng.integers(0, 5, rows).astype(np.float64) if rng.random() < 0.2 else None
    start = None
    if rng.random() < 0.1:
        start = np.eye(classes)[rng.choice(np.flatnonzero(source > 0))]
    return Problem(number, posteriors, source, weights, start)


def complaint(given: Problem, result: MleResult) -> str | None:
    """What is wrong with an answer, or None."""
    p, known = result.prevalence, given.source > 0
    ratios = given.posteriors[:, known] / given.source[known]
    weights = np.ones(len(ratios)) if given.weights is None else given.weights
    informative = (ratios.sum(axis=1) > 0) & (weights > 0)
    if not informative.any():
        return None if result.status == "no-information" else f"status {result.status}"
    ratios, weights = ratios[informative], weights[informative]
    if (p < 0).any() or abs(p.sum() - 1) > 1e-12 or (p[~known] != 0).any():
        return f"not on the simplex: {p}"
    if result.status != "converged":
        return f"status {result.status}, gap {result.optimality_gap:.2e}"
    density = ratios @ p[known]
    if not (density > 0).all():
        return "a row has no density"
    gap = float((weights / density @ ratios).max()) / weights.sum() - 1
    promised = min(1e-8, 1e-3 / weights.sum())
    if gap > promised + ROUNDING:
        return f"gap {gap:.2e} instead of {promised:.2e}"
    if result.hessian_passes > HESSIAN_PASSES or result.gradient_passes > GRADIENT_PASSES:
        return f"{result.hessian_passes} Hessian and {result.gradient_passes} gradient passes"
    return None


def full_size() -> list[Problem]:
    """Known ways to fail, at the size where they were met; numbered −1, −2, …"""
    rng = np.random.default_rng(20260131)
    zeros = rng.dirichlet(np.full(9, 0.3), 1_000_000)
    zeros[:1000, 8] = 0
    zeros /= zeros.sum(axis=1, keepdims=True)
    certain = np.tile([0.98, 0.01, 0.01], (1_000_000, 1))
    certain[:3] = [0.0, 0.0, 1.0]
    many = _softmax(rng.normal(size=(20_000, 1000)) * 2)
    ninth = np.full(9, 1 / 9)
    return [
        Problem(-1, zeros, ninth, None, np.eye(9)[8]),
        Problem(-2, certain, np.array([0.9, 0.05, 0.05]), None, None),
        Problem(-3, many, rng.dirichlet(np.full(1000, 5.0)), None, None),
    ]


@dataclass(frozen=True)
class Report:
    """What a run of the fuzzer saw; ``failures`` as (number of the problem, complaint)."""

    problems: int
    failures: list[tuple[int, str]]
    most_hessian_passes: int
    most_gradient_passes: int


def fuzz(problems: Iterable[Problem]) -> Report:
    """Solve and check ``problems``."""
    solved, failures, hessian, gradient = 0, [], 0, 0
    for given in problems:
        result = given.solve()
        solved += 1
        wrong = complaint(given, result)
        if wrong is not None:
            failures.append((given.number, wrong))
        hessian = max(hessian, result.hessian_passes)
        gradient = max(gradient, result.gradient_passes)
    return Report(solved, failures, hessian, gradient)


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
        f"{report.problems} problems in {time.perf_counter() - start:.0f} s: "
        f"{len(report.failures)} failures; at most {report.most_hessian_passes} Hessian and "
        f"{report.most_gradient_passes} gradient passes"
    )
    return 1 if report.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
