"""What engines map over: partitions of rows that can be read again and again."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from app.core.prevalence.arrays import Codes


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows of a partition, checked and, where it was needed, rescaled.

    ``posteriors``: n × C raw posteriors in the order of the model's classes, float32 or float64.
    ``groups``: n codes into ``names``, None without ``group_by``. ``names``: the groups of this
    piece, one string per column of ``group_by``. ``renormalised``: rows rescaled by more than the
    silent tolerance. ``skipped``: rows left out under ``on_error="skip"``. ``labels``: n positions
    of classes, for registration.
    """

    posteriors: NDArray[np.floating[Any]]
    groups: Codes | None = None
    names: tuple[tuple[str, ...], ...] = ()
    renormalised: int = 0
    skipped: int = 0
    labels: Codes | None = None


class Partition(Protocol):
    """A picklable description of rows that can be read again and again, on any worker."""

    @property
    def name(self) -> str:
        """For errors and progress."""
        ...

    def pieces(self) -> Iterator[Piece]:
        """The rows, a piece at a time; empty partitions have none."""
        ...
