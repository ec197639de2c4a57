"""Intervals, and the replicates of an estimate whose percentiles they can be."""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Floats

REPLICATES = 500
"""Drawn where nobody says how many."""


@dataclass(frozen=True)
class Intervals:
    """An interval for each of C shares.

    ``lower``: C ends, in [0, 1].
    ``upper``: C ends, in [0, 1].
    ``level``: the nominal coverage of each by itself.
    ``approximate``: whether the likelihood was expanded; see ``likelihood_intervals``.
    """

    lower: Floats
    upper: Floats
    level: float
    approximate: bool = False


@dataclass(frozen=True)
class Replicates:
    """Estimates from redrawn data.

    ``shares``: B × C, on the simplex, or of sum at most one if soft.
    ``seed``: gives them again.
    """

    shares: Floats
    seed: int

    def intervals(self, level: float) -> Intervals:
        """Percentile intervals at ``level``, one for each share."""
        tail = (1 - level) / 2
        lower, upper = np.quantile(self.shares, [tail, 1 - tail], axis=0)
        return Intervals(lower, upper, level)
