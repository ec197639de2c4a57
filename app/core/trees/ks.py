"""The two-sample Kolmogorov-Smirnov test, of a batch against a (class-weighted) training column.

D = sup_x |F(x) − G(x)|. Between two training values F stands still and G rises, so that F − G is
largest at a training value and smallest just before one; and likewise for the batch's values, so
that the smaller sample's suffice.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import kolmogorov

from app.core.arrays import Codes, Floats

Method = Literal["exact", "asymptotic", "bootstrap"]

EXACT_UP_TO = 10_000
"""Largest n · m whose lattice paths are counted."""


@dataclass(frozen=True)
class KolmogorovSmirnov:
    """A two-sample test of Kolmogorov and Smirnov.

    ``statistic``: D, in [0, 1].
    ``p_value``: two-sided.
    ``method``: how it was found; ``exact``: lattice paths, which is conservative where there are
        ties; ``asymptotic``: the limiting distribution at √(n m / (n + m)) · D, n the effective
        size; ``bootstrap``: by refitted resamples.
    ``effective_size``: of the column, (Σw)² / Σw².
    """

    statistic: float
    p_value: float
    method: Method
    effective_size: float


def ks_test(
    column: NDArray[np.floating], batch: NDArray[np.floating], weights: Floats | None = None
) -> KolmogorovSmirnov:
    """Test a sorted ``batch`` of m values against n sorted values, optionally weighted.

    Unequal weights make the test asymptotic, with n = (Σw)² / Σw² (Kish). An empty sample has
    D = 0 and p = 1.
    """
    n, m = len(column), len(batch)
    if n == 0 or m == 0:
        return KolmogorovSmirnov(0.0, 1.0, "exact", float(n))
    if weights is None or weights.min() == weights.max():
        numerator = _integer_distance(column, batch)
        if n * m <= EXACT_UP_TO:
            p = exact_p_value(numerator, n, m)
            return KolmogorovSmirnov(numerator / (n * m), p, "exact", float(n))
        size, distance = float(n), numerator / (n * m)
    else:
        size = effective_size(weights)
        distance = _weighted_distance(column, batch, weights)
    return KolmogorovSmirnov(distance, asymptotic_p_value(distance, size, m), "asymptotic", size)


def effective_size(weights: Floats) -> float:
    """Kish's effective number of rows, (Σw)² / Σw²."""
    return float(weights.sum() ** 2 / (weights @ weights))


def distance(
    column: NDArray[np.floating], batch: NDArray[np.floating], weights: Floats | None = None
) -> float:
    """D alone, of two sorted samples that are not empty."""
    if weights is None:
        return _integer_distance(column, batch) / (len(column) * len(batch))
    return _weighted_distance(column, batch, weights)


def _integer_distance(one: NDArray[np.floating], other: NDArray[np.floating]) -> int:
    """N m D, an integer: no rounding decides between two lattice paths."""
    points, among = (one, other) if len(one) <= len(other) else (other, one)
    n, m = len(points), len(among)
    before, after = _counts(points, among)
    rank = np.arange(n, dtype=np.int64)
    above = (rank + 1) * m - after * n
    below = before * n - rank * m
    return int(max(above.max(), below.max(), 0))


def _weighted_distance(
    column: NDArray[np.floating], batch: NDArray[np.floating], weights: Floats
) -> float:
    n, m = len(column), len(batch)
    share = np.concatenate([[0.0], np.cumsum(weights)])
    share /= share[-1]
    if n <= m:
        before, after = _counts(column, batch)
        above, below = share[1:] - after / m, before / m - share[:-1]
    else:
        before, after = _counts(batch, column)
        rank = np.arange(m)
        above, below = (rank + 1) / m - share[after], share[before] - rank / m
    return float(max(above.max(), below.max(), 0.0))


def _counts(points: NDArray[np.floating], among: NDArray[np.floating]) -> tuple[Codes, Codes]:
    """How many ``among`` sorted values are below, and how many at most, each sorted point.

    The points' own distribution is right at the last of several equal ones and just before the
    first; those between can never be extreme.
    """
    after = np.searchsorted(among, points, "right")
    tied = np.flatnonzero(among[after - 1] == points)
    before = after.copy()
    before[tied] = np.searchsorted(among, points[tied], "left")
    return before, after


def exact_p_value(numerator: int, n: int, m: int) -> float:
    """P(n m D >= ``numerator``) if all orders of n + m distinct values are equally likely.

    An order is a path from (0, 0) to (n, m). Counted, row by row, are all paths and those that
    have left |i m − j n| < numerator, both times i! m! / (i + m)!, which keeps them small.
    """
    if numerator <= 0:
        return 1.0
    every, left = np.ones(m + 1), np.zeros(m + 1)
    left[_band(0, numerator, n, m)[1] :] = 1.0
    for i in range(1, n + 1):
        low, high = _band(i, numerator, n, m)
        every = np.cumsum(every * (i / (i + m)))
        still = np.cumsum(left[low:high] * (i / (i + m)))
        left = every.copy()
        left[low:high] = still + (every[low - 1] if low > 0 else 0.0)
    return float(min(left[m], 1.0))


def _band(i: int, numerator: int, n: int, m: int) -> tuple[int, int]:
    """The j from ``low`` to before ``high`` have |i m − j n| < numerator."""
    low = (i * m - numerator) // n + 1
    high = -((-i * m - numerator) // n)
    return min(max(low, 0), m + 1), max(min(high, m + 1), 0)


def asymptotic_p_value(distance: float, n: float, m: float) -> float:
    """P(√(n m / (n + m)) D >= what was seen) in the limit."""
    return float(kolmogorov(np.sqrt(n * m / (n + m)) * distance))
