"""The validation rows of a version, for the few answers that need them."""

from typing import Protocol

from app.core.arrays import Floats
from app.core.prevalence.matching.version import Exact
from app.core.prevalence.source import ValidationSet


class SourceRows(Protocol):
    """Loads on demand; whoever has the store implements it."""

    def validation(self) -> ValidationSet | None:
        """The labelled rows; None for a version without."""

    def exact(self) -> Exact | None:
        """The rows of features for the exact kernels; None for a version without."""

    def null_statistics(self, size: float, seed: int) -> Floats | None:
        """Statistics of the shift test without a shift (``two_sample.null_statistics``).

        None if there are no validation rows, or too many.
        """
