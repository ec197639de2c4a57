"""What every engine does: map a function over partitions, and merge what comes of it.

EngineError
├── Cancelled        whoever waited did not want it any more
├── EngineLost       the cluster went away, or has no worker left; a finished round is not lost
├── EngineMissing    a cluster is configured, but what talks to it is not installed
├── DataChanged      the rows of a round are not those of the rounds before (estimating)
└── TooManyGroups    the columns to group by have more values than a job may have answers
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

from app.core.errors import PriorshiftError
from app.engines.partitions import Partition

MOST_GROUPS = 1000
"""Most groups that are estimated at a time: the answer names all of them."""


def too_many(most: int) -> str:
    """What to say of more groups than that."""
    advice = "group by fewer columns, or coarser values"
    return f"makes more than {most:,} groups, the most that are estimated at a time; {advice}"


class EngineError(PriorshiftError):
    """Root of what can go wrong between the rows and their sums."""


class Cancelled(EngineError):
    """Whoever waited did not want it any more."""

    def __init__(self) -> None:
        super().__init__("the computation was cancelled; nothing was stored")


class EngineLost(EngineError):
    """The cluster went away, or has no worker left; a finished round is not lost."""


class EngineMissing(EngineError):
    """A cluster is configured, but what talks to it is not installed."""

    def __init__(self) -> None:
        super().__init__("Dask is not installed: pip install priorshift[distributed]")


class TooManyGroups(EngineError):
    """The columns to group by have more values than a job may have answers."""

    def __init__(self, most: int) -> None:
        self.most = most
        super().__init__(f"group_by {too_many(most)}")

    def __reduce__(self) -> "tuple[type[TooManyGroups], tuple[int]]":
        """It may come from another process."""
        return type(self), (self.most,)


class Mergeable(Protocol):
    """A sum over some rows."""

    @property
    def rows(self) -> int:
        """How many rows were read."""

    @property
    def bytes(self) -> int:
        """What they take in memory."""

    def merge(self, other: Self) -> Self:
        """The sum over both; in what order they are merged does not matter but for rounding."""


A = TypeVar("A")
R = TypeVar("R", bound=Mergeable)


@dataclass(frozen=True)
class Progress:
    """How far a round is.

    ``round``: the first is 1.
    ``partitions``: how many are done in this round.
    ``of``: how many there are.
    ``rows``: in those that are done; None where only the end of the round tells.
    """

    round: int
    partitions: int
    of: int
    rows: int | None


@dataclass(frozen=True)
class Observer:
    """Who waits: wants to hear of progress, and may not want the answer any more.

    ``progress``: called from the engine's thread, now and then.
    ``cancelled``: asked now and then; True ends the round with ``Cancelled``.
    ``round``: the one that runs; the first is 1.
    """

    progress: Callable[[Progress], None] = lambda _: None
    cancelled: Callable[[], bool] = lambda: False
    round: int = 1

    def check(self) -> None:
        """``Cancelled`` if the answer is not wanted any more."""
        if self.cancelled():
            raise Cancelled


class Engine(Protocol):
    """Where the rows are read."""

    def sum(
        self,
        function: Callable[[A, Partition], R],
        partitions: Sequence[Partition],
        argument: A,
        observer: Observer,
    ) -> R:
        """``function(argument, partition)`` of every partition, merged in their order.

        ``function`` is one of a module, as another process must find it. At least one partition.
        """
