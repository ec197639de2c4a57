"""How many rows of a batch count, and whether any must be left out or rescaled.

It takes a look at every row's mass, which can be had while the rows are read for something else.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from app.core.arrays import Floats
from app.core.prevalence.likelihood.blocks import Block, Blocks
from app.core.prevalence.numerics.logs import log_sum

SAFE_MASS = 1e-100
"""Rows with less mass than this on the known classes are rescaled before 1/d is taken."""
FEW = 100
"""So many masses mostly tell what the others are like."""
ROUNDING = 1e-12
"""The root of the summed squares of what rounding makes of masses of one, at most."""


@dataclass(frozen=True)
class Census:
    """What one look at the row sums tells.

    ``rows``: their number.
    ``size``: weight of the informative rows.
    ``unsupported``: weight of the others.
    ``log_mass``: weighted sum of ln Σ_k g_ik, which makes ℓ(p0) zero.
    ``tidy``: whether no row has to be left out or rescaled.
    """

    rows: int
    size: float
    unsupported: float
    log_mass: float
    tidy: bool


def all_of(rows: int) -> Census:
    """Of tidy rows that all count once; their masses, nobody asked for."""
    return Census(rows, float(rows), 0.0, 0.0, tidy=True)


@dataclass
class Count:
    """A census in the making; a row's mass is its product with ``factors`` (K values)."""

    factors: Floats
    rows: int = 0
    total: float = 0.0
    size: float = 0.0
    log_mass: float = 0.0
    tidy: bool = True

    def watch(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """The blocks, counted as they pass by; when one is not tidy, that was the last."""
        work = np.empty(0)
        for block, weights in blocks:
            work = work if len(block) <= len(work) else np.empty(len(block))
            mass = np.dot(block, self.factors, out=work[: len(block)])
            self._add(mass, weights)
            if self.tidy:
                yield block, weights

    def finished(self, blocks: Blocks) -> Census:
        """The census, after all of ``blocks`` were watched."""
        log_mass = self.log_mass
        if not self.tidy:
            tidied = blocks.tidied()
            log_mass = sum(
                log_sum(np.dot(block, self.factors), weights) for block, weights in tidied
            )
        return Census(self.rows, self.size, self.total - self.size, log_mass, self.tidy)

    def _add(self, mass: Floats, weights: Floats | None) -> None:
        self.rows += len(mass)
        self.total += _weight(mass, weights)
        if weights is None and _normalised(mass):
            self.size += len(mass)
            return
        if mass.min(initial=1.0) < SAFE_MASS or (weights is not None and not weights.all()):
            self.tidy = False
            useful = mass > 0 if weights is None else (mass > 0) & (weights > 0)
            mass = mass[useful]
            weights = None if weights is None else weights[useful]
        self.size += _weight(mass, weights)
        if self.tidy:
            self.log_mass += log_sum(mass, weights)


def _weight(mass: Floats, weights: Floats | None) -> float:
    return float(len(mass)) if weights is None else float(weights.sum())


def _normalised(mass: Floats) -> bool:
    """Whether no mass differs from one by more than rounding; their logarithms then vanish."""
    if np.abs(mass[:FEW] - 1.0).max(initial=0.0) > ROUNDING:
        return False
    excess = mass - 1.0
    return bool(np.dot(excess, excess) <= ROUNDING**2)
