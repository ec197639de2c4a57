"""A few rows of a partition, evenly spaced, without knowing beforehand how many there are."""

from dataclasses import dataclass, field

import numpy as np

from app.core.prevalence.blocks import AnyFloats
from app.engines.sums import Numbers


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
    kept: int = 0

    def add(self, rows: AnyFloats) -> None:
        """Some rows more."""
        first = -self.seen % self.step
        picked = rows[first :: self.step]
        self.seen += len(rows)
        if not len(picked):
            return
        self.rows.append(picked.copy())
        self.kept += len(picked)
        while self.kept > self.most:
            together = np.concatenate(self.rows)[::2]
            self.rows, self.kept, self.step = [together], len(together), 2 * self.step

    def joined(self, step: int) -> dict[str, Numbers]:
        """Every ``step``-th of the rows, and what each weighs."""
        rows = np.concatenate(self.rows)[::step]
        return {"sample": rows, "weights": np.full(len(rows), self.seen / len(rows))}
