"""Intervals, and the replicates of an estimate whose percentiles they can be."""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Floats

REPLICATES = 500
"""Drawn where nobody says how many."""


@dataclass(frozen=True)
class Intervals:
    """C lower and C upper ends at ``level``; ``approximate``: see ``likelihood_intervals``."""

    lower: Floats
    upper: Floats
    level: float
    approximate: bool = False


@dataclass(frozen=True)
class Replicates:
    """B × C shares on the simplex, and the seed that gives them again."""

    shares: Floats
    seed: int

    def intervals(self, level: float) -> Intervals:
        """Percentile intervals."""
        tail = (1 - level) / 2
        lower, upper = np.quantile(self.shares, [tail, 1 - tail], axis=0)
        return Intervals(lower, upper, level)
