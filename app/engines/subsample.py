"""A few rows of a partition, evenly spaced: to start from, and to tell whether shift fits them."""

from dataclasses import dataclass, field

import numpy as np

from app.core.arrays import AnyFloats, Floats
from app.core.prevalence.matching.posterior_fit import Bins
from app.engines.tallies import Numbers


@dataclass
class Sample:
    """At most ``most`` rows, every ``step``-th of those seen; doubled whenever they are too many.

    The driver solves the likelihood on the samples of all partitions first, each row weighing as
    many as it stands for. No answer depends on them, only how many rounds it takes.
    """

    most: int
    step: int = 1
    seen: int = 0
    rows: list[AnyFloats] = field(default_factory=list)
    size: int = 0

    def add(self, rows: AnyFloats) -> None:
        """Take every ``step``-th of some further rows."""
        part = self._of(rows)
        while self.size + len(part) > self.most:
            self.rows = [np.concatenate(self.rows)[::2]] if self.rows else []
            self.size = sum(map(len, self.rows))
            self.step *= 2
            part = self._of(rows)
        self.seen += len(rows)
        if len(part):
            self.rows.append(part.copy())
            self.size += len(part)

    def _of(self, rows: AnyFloats) -> AnyFloats:
        return rows[-self.seen % self.step :: self.step]

    def joined(self, step: int) -> dict[str, Numbers]:
        """Every ``step``-th of the rows, and what each weighs."""
        rows = np.concatenate(self.rows)[::step]
        return {"sample": rows, "weights": np.full(len(rows), self.seen / len(rows))}


FEW, EVERY = 1 << 12, 16
FULL = 1 << 17
"""Numbers of rows that are looked at together: a look costs the same for few."""


@dataclass
class BinCounter:
    """Counts of rows by bin: of each piece every ``EVERY``-th, or ``FEW`` rows if that is more."""

    bins: Bins | None
    counts: Floats | float = 0.0
    rows: list[AnyFloats] = field(default_factory=list)
    numbers: int = 0

    def add(self, rows: AnyFloats) -> None:
        """Take some of some further rows, to be counted when they are many."""
        if self.bins is None:
            return
        some = rows[:: min(max(len(rows) // FEW, 1), EVERY)].copy()
        self.rows.append(some)
        self.numbers += some.size
        if self.numbers >= FULL:
            self._look(self.bins)

    def counted(self) -> dict[str, Numbers]:
        """The counts, if there are bins."""
        if self.bins is None:
            return {}
        self._look(self.bins)
        return {"bins": np.asarray(self.counts)}

    def _look(self, bins: Bins) -> None:
        if self.rows:
            self.counts = self.counts + bins.count_all(np.concatenate(self.rows))
            self.rows, self.numbers = [], 0
