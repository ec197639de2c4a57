"""A batch, each of its columns sorted at most once."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.core import deadline
from app.core.trees.column import sorted_batch
from app.core.trees.tree import Singles


@dataclass(frozen=True, eq=False)
class SortedBatch:
    """N × d ``rows``, NaN where missing."""

    rows: NDArray[np.floating]
    _sorted: dict[int, NDArray[np.floating]] = field(default_factory=dict)
    _singles: dict[int, Singles] = field(default_factory=dict)

    def column(self, attribute: int) -> NDArray[np.floating]:
        """The present values of an attribute in increasing order."""
        if attribute not in self._sorted:
            deadline.check()
            self._sorted[attribute] = sorted_batch(self.rows[:, attribute])
        return self._sorted[attribute]

    def singles(self, attribute: int) -> Singles:
        """The same values as a tree compares them; rounding keeps their order."""
        if attribute not in self._singles:
            self._singles[attribute] = self.column(attribute).astype(np.float32, copy=False)
        return self._singles[attribute]
