"""From a table to the numbers that a learner takes: filled, standardised, one-hot."""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Codes, Floats
from app.core.learners.columns import FeatureColumns

CONSTANT = 1e-100
"""A standard deviation below this is that of a constant column, which is not rescaled."""


@dataclass(frozen=True)
class Encoding:
    """How a table is encoded, fitted on training rows.

    ``numeric``: positions of the numeric columns, which come first; ``centre``, ``scale``: what is
    subtracted from them and divided by; ``categorical``: position and known levels of the others,
    one column of zeros and ones for each level; ``fill``: D values for missing ones.
    """

    numeric: Codes
    centre: Floats
    scale: Floats
    categorical: tuple[tuple[int, Floats], ...]
    fill: Floats

    @classmethod
    def fit(cls, table: Floats, columns: FeatureColumns, standardise: bool) -> "Encoding":
        """The encoding that ``table`` (N × D) asks for.

        Missing numbers become the median, missing levels the most frequent one (the first on
        ties). Levels that these rows lack are unknown to it.
        """
        fill = np.array([_fill(table[:, j], j in columns.levels) for j in range(columns.width)])
        numeric = columns.numeric
        filled = _filled(table, fill)
        centre, scale = np.zeros(len(numeric)), np.ones(len(numeric))
        if standardise:
            centre, scale = _moments(filled[:, numeric])
        seen = [np.unique(filled[:, j]) for j in columns.categorical]
        return cls(numeric, centre, scale, tuple(zip(columns.categorical, seen, strict=True)), fill)

    @classmethod
    def whole(
        cls, columns: FeatureColumns, centre: Floats, scale: Floats, fill: Floats
    ) -> "Encoding":
        """The encoding of all training rows, which hold every level of ``columns``."""
        known = [(j, np.arange(len(columns.levels[j]), dtype=float)) for j in columns.categorical]
        return cls(columns.numeric, centre, scale, tuple(known), fill)

    def apply(self, table: Floats) -> Floats:
        """The N × P matrix of a table; an unknown level is zero in every column of its own."""
        filled = _filled(table, self.fill)
        parts = [(filled[:, self.numeric] - self.centre) / self.scale]
        for position, levels in self.categorical:
            parts.append((filled[:, [position]] == levels).astype(np.float64))
        return np.concatenate(parts, axis=1)


def _fill(column: Floats, categorical: bool) -> float:
    known = column[~np.isnan(column)]
    if len(known) == 0:
        return 0.0
    if not categorical:
        return float(np.median(known))
    levels, counts = np.unique(known, return_counts=True)
    return float(levels[np.argmax(counts)])


def _filled(table: Floats, fill: Floats) -> Floats:
    gaps = np.isnan(table)
    return np.where(gaps, fill, table) if gaps.any() else table


def _moments(values: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each column; 1 for a constant one."""
    centre = values.mean(axis=0)
    scale = values.std(axis=0)
    rounding = 10 * np.finfo(np.float64).eps * np.abs(centre)
    return centre, np.where(scale <= np.maximum(rounding, CONSTANT), 1.0, scale)
