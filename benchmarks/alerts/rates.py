"""How often a source's windows are rejected without a shift, at levels that few windows reach.

Importance sampling: half of the windows are drawn at a higher share, half at a lower one, where the
threshold is about as likely reached as not, and weighted by the true likelihood of no shift over
that of the mixture. A few hundred windows tell a rate of 1/7200 to some per cent.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

from app.core.arrays import Floats
from benchmarks.alerts.stream import (
    Population,
    Registered,
    Statistics,
    log_likelihood,
    maxima,
    statistics,
    threshold,
)

ROWS = 200_000


@dataclass(frozen=True)
class Tilted:
    """Where windows of ``size`` rows are drawn from to see statistics around a threshold."""

    population: Population
    size: int
    shares: tuple[float, float]

    @classmethod
    def of(
        cls, population: Population, size: int, limit: float, rng: np.random.Generator
    ) -> "Tilted":
        """With an expected statistic of ``limit`` above; as far below, in the odds."""
        x = rng.normal(size=ROWS)

        def expected(share: float) -> float:
            positive = np.arange(ROWS) < share * ROWS
            excess = np.expm1(population.log_ratio(x + population.distance * positive))
            gain = np.log1p(share * excess) - np.log1p(population.share * excess)
            return 2 * size * float(gain.mean()) - limit

        ends = []
        for end in (0.0, 1.0):
            reached = expected(end) > 0
            root = brentq(expected, population.share, end, xtol=1e-6) if reached else end
            ends.append(float(np.clip(root, 0.05 * population.share, 0.99)))
        return cls(population, size, (ends[0], ends[1]))

    def draw(self, rng: np.random.Generator, windows: int) -> tuple[Floats, Floats]:
        """Scores of windows, and the weights that make them windows without a shift."""
        half = (windows // 2, self.size)
        scores = np.concatenate([self.population.scores(rng, half, q) for q in self.shares])
        excess = np.expm1(self.population.true_log_ratio(scores))
        logs = [np.log1p(q * excess).sum(axis=1) for q in (self.population.share, *self.shares)]
        return scores, np.exp(logs[0] - logsumexp(logs[1:], axis=0) + np.log(2))

    def sample(
        self, rng: np.random.Generator, registered: Registered, windows: int
    ) -> tuple[Statistics, Floats]:
        """Statistics of such windows under a registered source, and their weights."""
        scores, weights = self.draw(rng, windows)
        return statistics(registered.excess(scores), registered), weights


def rate(rejected: Floats, weights: Floats) -> float:
    """The probability without a shift."""
    return float((rejected * weights).mean())


def tail(
    population: Population, size: int, level: float, windows: int, seed: int
) -> tuple[float, float]:
    """Rejections over ``level`` by the chi-square tail where p0 is exact; with its error."""
    rng = np.random.default_rng(seed)
    scores, weights = Tilted.of(population, size, threshold(level), rng).draw(rng, windows)
    excess = np.expm1(population.true_log_ratio(scores))
    source = np.full(len(excess), population.share)
    best = log_likelihood(excess, maxima(excess, population.share))
    rejected = 2 * (best - log_likelihood(excess, source)) > threshold(level)
    ratio = rejected * weights / level
    return float(ratio.mean()), float(ratio.std() / np.sqrt(len(ratio)))
