"""What an engine reads: partitions, which anybody can describe."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from app.core.arrays import AnyFloats, Codes


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows of a partition: n × C raw posteriors in the order of the model's classes.

    They have been checked and, where it was needed, rescaled. ``groups``: n codes into ``names``,
    None without groups; ``names``: the groups of this piece, one string per column that groups.
    ``renormalised``: how many rows were rescaled by more than a trifle; ``skipped``: how many were
    left out as no probabilities. ``labels``: n positions of classes, for registration.
    ``messages``: what was wrong with the first of these; ``skipped_files``: files, or parts of
    them, whose rows nobody could count.
    """

    posteriors: AnyFloats
    groups: Codes | None = None
    names: tuple[tuple[str, ...], ...] = ()
    renormalised: int = 0
    skipped: int = 0
    labels: Codes | None = None
    messages: tuple[str, ...] = ()
    skipped_files: int = 0


class Partition(Protocol):
    """A picklable description of rows that can be read again and again, on any worker."""

    @property
    def name(self) -> str:
        """What to call it in messages: a file, and a place in it."""

    def pieces(self) -> Iterator[Piece]:
        """The rows, in the same pieces and the same order every time."""
