"""Does a linear map explain the shift? The second Kolmogorov-Smirnov test, and its bootstrap.

α and β come from the same data, so that the plain test's level is not the nominal one: exact
linear shifts are rejected in 0 % of normal and 12 to 14 % of exponential samples at 5 %. The
bootstrap resamples the training values twice, as training and as batch, and fits the map again:
5 % of exponential samples then, and 1 % of normal ones (n = m = 200). A resampled column is rougher
than what it was drawn from, which keeps the test on the careful side.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core import deadline
from app.core.arrays import Floats
from app.core.trees.column import TrainingColumn
from app.core.trees.ks import KolmogorovSmirnov, distance, effective_size, ks_test
from app.core.trees.linear import LinearMap, snap

REPLICATES = 499
MOST = 2_000
"""Most values that are resampled; beyond, D is compared at equal √(n m / (n + m)) · D."""


def plain_test(
    column: TrainingColumn, batch: NDArray[np.floating], linear: LinearMap, weights: Floats | None
) -> KolmogorovSmirnov:
    """The test of the corrected batch, snapped to the training lattice, against the column."""
    corrected = snap(linear.corrected(batch), column.support, column.step)
    return ks_test(column.doubles, corrected, weights)


def bootstrap_test(
    column: TrainingColumn,
    batch: NDArray[np.floating],
    linear: LinearMap,
    weights: Floats | None,
    seed: int,
    replicates: int = REPLICATES,
) -> KolmogorovSmirnov:
    """The same statistic; the p-value is its rank among those of refitted resamples."""
    observed = plain_test(column, batch, linear, weights)
    n, m = column.size, len(batch)
    scale = _root(observed.effective_size, m)
    values, weight = _thin(column, weights)
    part = len(values) / n
    resampling = _Resampling(values, weight, max(round(m * part), 2), column)
    rng = np.random.default_rng(seed)
    size = effective_size(weight)
    null = np.array([resampling.statistic(rng) for _ in range(replicates)])
    exceeds = null * _root(size, resampling.rows) >= observed.statistic * scale * (1 - 1e-12)
    p = (1 + int(np.count_nonzero(exceeds))) / (1 + replicates)
    return KolmogorovSmirnov(observed.statistic, p, "bootstrap", observed.effective_size)


def mirrored_test(
    column: TrainingColumn, batch: NDArray[np.floating], linear: LinearMap, weights: Floats | None
) -> KolmogorovSmirnov:
    """The test of the decreasing map with the same deviations.

    x = μ − (x' − μ') / α, where (x' − μ') / α = corrected − μ.
    """
    values = column.doubles
    mean = float(values.mean() if weights is None else weights @ values / weights.sum())
    corrected = (2.0 * mean - linear.corrected(batch))[::-1]
    return ks_test(values, snap(corrected, column.support, column.step), weights)


def _root(n: float, m: float) -> float:
    return float(np.sqrt(n * m / (n + m)))


def _thin(column: TrainingColumn, weights: Floats | None) -> tuple[Floats, Floats]:
    """At most ``MOST`` values of the column, evenly spread over its ranks, and their weights."""
    weight = np.ones(column.size) if weights is None else weights
    if column.size <= MOST:
        return column.doubles, weight
    places = np.linspace(0, column.size - 1, MOST).round().astype(np.intp)
    return column.doubles[places], weight[places]


@dataclass(frozen=True)
class _Resampling:
    """Pairs of samples without anything but sampling between them.

    ``values``: n of the column, with their ``weights``; ``rows``: m, the size of a batch, at most
    as many times larger than n as the batch was.
    """

    values: Floats
    weights: Floats
    rows: int
    column: TrainingColumn

    def statistic(self, rng: np.random.Generator) -> float:
        """D of one pair, after fitting the map again; zero where none can be fitted."""
        deadline.check()
        n = len(self.values)
        source = rng.multinomial(n, np.full(n, 1.0 / n)) * self.weights
        target = rng.multinomial(self.rows, self.weights / self.weights.sum())
        present = source > 0
        mean, deviation = self._moments(source)
        target_mean, target_deviation = self._moments(target.astype(np.float64))
        if deviation == 0.0 or target_deviation == 0.0:
            return 0.0
        alpha = target_deviation / deviation
        linear = LinearMap(alpha, target_mean - alpha * mean)
        corrected = snap(
            linear.corrected(np.repeat(self.values, target)), self.column.support, self.column.step
        )
        return distance(self.values[present], corrected, source[present])

    def _moments(self, weights: Floats) -> tuple[float, float]:
        share = weights / weights.sum()
        mean = float(share @ self.values)
        return mean, float(np.sqrt(share @ (self.values - mean) ** 2))
