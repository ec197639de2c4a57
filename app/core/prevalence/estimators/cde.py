"""Class distribution estimation by iterated cost-sensitive decisions, for two classes.

Xue and Weiss (2009); thesis ch. 5. Counting at a threshold gives a prevalence, the prevalence the
cost ratio (thesis eq. 5.1), the cost ratio the next threshold. Not Fisher consistent: even perfect
posteriors lead it past the truth.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.core import deadline
from app.core.arrays import Floats

Status = Literal["converged", "cycle", "max-iterations"]


@dataclass(frozen=True)
class CdeResult:
    """Share of the second class after the last count, and how the iteration ended.

    ``prevalence``: in (0, 1); the mean over a ``cycle``.
    ``status``: ``converged`` (the same count twice running), ``cycle``, or ``max-iterations``.
    ``iterations``: how often rows were counted.
    ``trace``: the prevalence counted in every iteration.
    """

    prevalence: float
    status: Status
    iterations: int
    trace: Floats


def cost_ratio(source: float, target: float) -> float:
    """Cost of a false positive / of a false negative: (p0/(1 − p0)) / (p/(1 − p)) (eq. 5.1)."""
    return source / (1 - source) * (1 - target) / target


def cde_iterate(positive: Floats, source: float, max_iterations: int = 1000) -> CdeResult:
    """Iterate on the N posteriors of the second class, whose source prior is ``source``.

    A row is positive if its posterior exceeds dmr / (1 + dmr), dmr the cost ratio.
    """
    N = len(positive)
    ranked = np.sort(positive)

    def count(ratio: float) -> int:
        return N - int(np.searchsorted(ranked, ratio / (1 + ratio), side="right"))

    return iterate(count, N, source, max_iterations)


def iterate(
    count: Callable[[float], int], N: int, source: float, max_iterations: int = 1000
) -> CdeResult:
    """Iterate ``count``, which says how many of N rows are positive at a cost ratio.

    Begins at equal costs. Counts are clamped to [1/2N, 1 − 1/2N], where the odds stay finite.
    """
    ratio, seen = 1.0, dict[int, int]()
    path: list[float] = []
    for iteration in range(1, max_iterations + 1):
        deadline.check()
        positives = count(ratio)
        share = min(max(positives / N, 0.5 / N), 1 - 0.5 / N)
        path.append(share)
        if positives in seen:
            loop = path[seen[positives] : -1]
            status: Status = "converged" if len(loop) == 1 else "cycle"
            return CdeResult(float(np.mean(loop)), status, iteration, np.array(path))
        seen[positives] = iteration - 1
        ratio = cost_ratio(source, share)
    return CdeResult(path[-1], "max-iterations", max_iterations, np.array(path))
