"""Feature columns: numeric ones, and categorical ones with their levels.

A table of N rows is one N × D matrix: numbers as they are, of a categorical column the position
of the level. ``MISSING`` (NaN) is a missing value, ``UNKNOWN`` a level that training never saw.
"""

import json
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import AnyArray, Codes, Floats

MISSING = np.nan
UNKNOWN = -1.0
LARGEST = 1e30
"""Largest absolute value of a feature: its square, and its single-precision form, are finite."""

Level = str | float


@dataclass(frozen=True)
class FeatureColumns:
    """Names of the D columns; ``levels`` by the position of each categorical one."""

    names: tuple[str, ...]
    levels: dict[int, tuple[Level, ...]] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """D, the number of columns."""
        return len(self.names)

    @property
    def numeric(self) -> Codes:
        """Positions of the numeric columns."""
        return np.array([j for j in range(self.width) if j not in self.levels], dtype=np.intp)

    @property
    def categorical(self) -> tuple[int, ...]:
        """Positions of the categorical columns."""
        return tuple(sorted(self.levels))

    @property
    def encoded_width(self) -> int:
        """P: one per numeric column, one per level."""
        return len(self.numeric) + sum(len(levels) for levels in self.levels.values())

    def array(self) -> NDArray[np.uint8]:
        """Names and levels as the bytes of a JSON text."""
        content = {"names": self.names, "levels": [[j, self.levels[j]] for j in self.categorical]}
        return np.frombuffer(json.dumps(content).encode(), dtype=np.uint8)

    @classmethod
    def of_array(cls, array: AnyArray) -> "FeatureColumns":
        """The columns of ``array``."""
        content = json.loads(array.tobytes())
        levels = {j: tuple(values) for j, values in content["levels"]}
        return cls(tuple(content["names"]), levels)


def missing(table: Floats) -> int:
    """How many values are missing."""
    return int(np.isnan(table).sum())


def unknown(table: Floats, columns: FeatureColumns) -> int:
    """How many levels are unknown."""
    return int((table[:, list(columns.categorical)] == UNKNOWN).sum())
