"""An attribute's training values, sorted once, with the classes they came with."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Codes, Floats
from app.core.lazy import cached_property

ON_LATTICE = 1e-3
"""Part of a step that a value may be off its lattice, from rounding."""


@dataclass(frozen=True, eq=False)
class TrainingColumn:
    """The n present values of one attribute.

    ``values``: in increasing order, in single precision where that is exact. ``labels``: the
    class, 0 … C−1, of each value, in the smallest unsigned type. ``classes``: C. ``missing``: how
    many training rows had no value here.
    """

    values: NDArray[np.floating]
    labels: NDArray[np.unsignedinteger]
    classes: int
    missing: int = 0

    @classmethod
    def of(cls, values: Floats, labels: Codes, classes: int) -> "TrainingColumn":
        """From N unsorted values, NaN where missing, and their classes.

        Equal values are ordered by class, so that the order of the rows leaves no trace.
        """
        present = ~np.isnan(values)
        order = np.lexsort((labels[present], values[present]))
        ordered = values[present][order]
        with np.errstate(over="ignore"):
            single = ordered.astype(np.float32)
        stored = single if np.array_equal(single, ordered) else ordered
        codes = labels[present][order].astype(np.min_scalar_type(max(classes - 1, 0)))
        return cls(stored, codes, classes, int(len(values) - len(ordered)))

    @property
    def size(self) -> int:
        """n, the values that are not missing."""
        return len(self.values)

    @cached_property
    def doubles(self) -> Floats:
        """The values in double precision."""
        return self.values.astype(np.float64, copy=False)

    @cached_property
    def singles(self) -> NDArray[np.float32]:
        """The values as the tree compares them; rounding keeps their order."""
        return self.values.astype(np.float32, copy=False)

    @cached_property
    def class_counts(self) -> Floats:
        """Present values per class, C."""
        return np.bincount(self.labels, minlength=self.classes).astype(np.float64)

    @cached_property
    def support(self) -> Floats:
        """The distinct training values, in increasing order."""
        return np.unique(self.doubles)

    @cached_property
    def step(self) -> float:
        """The step of the lattice that all values lie on; zero if there is none.

        Integers lie on one, and so do prices in cents. The step is the smallest gap between two
        distinct values, of which all gaps must be multiples.
        """
        if len(self.support) < 2 or len(self.support) == self.size:
            return 0.0
        gaps = np.diff(self.support)
        step = float(gaps.min())
        with np.errstate(over="ignore"):
            steps = (self.support - self.support[0]) / step
        return step if np.abs(steps - np.round(steps)).max() <= ON_LATTICE else 0.0

    def weights(self, class_weights: Floats) -> Floats:
        """A weight for each value, from C weights of its class."""
        return class_weights.take(self.labels)


def sorted_batch(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """A batch's values of one attribute without the missing ones, in increasing order."""
    ordered = np.sort(values)  # NaN come last.
    return ordered[: len(ordered) - int(np.count_nonzero(np.isnan(ordered)))]
