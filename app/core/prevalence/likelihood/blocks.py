"""A batch of rows as a sequence of small float64 blocks, read as often as asked.

The batch stays as it was given: float16, float32 or float64, C or Fortran order, one array or
an iterable of arrays that may be larger than memory. A block is at most ``BLOCK`` numbers, cast,
calibrated and freed of useless rows and columns on its way; nothing else is ever copied.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from app.core import deadline
from app.core.arrays import AnyFloats, Codes, Floats, row_sums
from app.core.lazy import cached_property
from app.core.prevalence.calibration import Calibration

Block = tuple[Floats, Floats | None]
"""n × K rows, and their n weights (None: all one)."""

BLOCK = 1 << 17
"""Numbers in a block: one MiB of float64, so that a block and its products stay in cache. A batch
of no more than that is cast and calibrated once, and kept."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """N × C ``rows`` (an array, or a re-readable iterable of arrays) and their ``weights``.

    ``weights``: N numbers, or arrays along the chunks; None for all one. ``columns``: positions
    of the K columns to keep, None for all. ``calibration``: its powers are taken, without
    e^bias. ``labels``: of an array's N rows, -1 where unknown; a labelled row has all its mass
    on its class. ``tidy``: leave out rows without mass on these columns or without weight, and
    rescale the others to mass one.
    """

    rows: AnyFloats | Iterable[AnyFloats]
    weights: AnyFloats | Iterable[AnyFloats] | None = None
    columns: Codes | None = None
    calibration: Calibration | None = None
    labels: Codes | None = None
    tidy: bool = False

    def __post_init__(self) -> None:
        for values in (self.rows, self.weights):
            if isinstance(values, Iterator):
                raise TypeError("the chunks are read several times; give a list, not an iterator")

    def __iter__(self) -> Iterator[Block]:
        deadline.check()
        return iter(self._cached) if self._cached is not None else self._fresh()

    @property
    def length(self) -> int | None:
        """Number of rows; None for chunks, which tell only when they are read."""
        return len(self.rows) if isinstance(self.rows, np.ndarray) else None

    @property
    def few(self) -> bool:
        """Whether the batch is small enough to be one block that is kept."""
        return isinstance(self.rows, np.ndarray) and self.rows.size <= BLOCK

    def tidied(self) -> "Blocks":
        """The same rows, without those that say nothing."""
        return replace(self, tidy=True)

    def uncalibrated(self) -> "Blocks":
        """The same rows as they were given."""
        return replace(self, calibration=None)

    def strided(self, step: int) -> "Blocks":
        """Every ``step``-th row of the array, or of each chunk: a view, or a small copy."""
        if isinstance(self.rows, np.ndarray):
            rows = self.rows[::step]
            if rows.size <= BLOCK:
                rows = np.ascontiguousarray(rows)
            weights = None if self.weights is None else np.asarray(self.weights)[::step]
            labels = None if self.labels is None else self.labels[::step]
            return replace(self, rows=rows, weights=weights, labels=labels)
        picked = [(rows[::step].copy(), weights) for rows, weights in self._chunks()]
        weights = None
        if self.weights is not None:
            weights = np.concatenate([part[::step] for _, part in picked if part is not None])
        return replace(self, rows=np.concatenate([rows for rows, _ in picked]), weights=weights)

    @cached_property
    def _cached(self) -> list[Block] | None:
        if not self.few:
            return None
        return [self._block(rows, weights, self.labels) for rows, weights in self._chunks()]

    def _chunks(self) -> Iterator[tuple[AnyFloats, AnyFloats | None]]:
        """The rows as given, with the weights that belong to them."""
        if isinstance(self.rows, np.ndarray):
            yield self.rows, None if self.weights is None else np.asarray(self.weights)
        elif self.weights is None:
            yield from ((rows, None) for rows in self.rows)
        elif isinstance(self.weights, np.ndarray):
            start = 0
            for rows in self.rows:
                yield rows, self.weights[start : start + len(rows)]
                start += len(rows)
        else:
            yield from zip(self.rows, self.weights, strict=True)

    def _fresh(self) -> Iterator[Block]:
        for rows, weights in self._chunks():
            length = max(BLOCK // rows.shape[1], 1)
            buffer = None
            if rows.dtype != np.float64 and self.calibration is None:
                buffer = np.empty_like(rows[:length], np.float64)
            for start in range(0, len(rows), length):
                deadline.check()
                stop = start + length
                part = None if weights is None else weights[start:stop]
                labels = None if self.labels is None else self.labels[start:stop]
                yield self._block(rows[start:stop], part, labels, buffer)

    def _block(
        self,
        rows: AnyFloats,
        weights: AnyFloats | None,
        labels: Codes | None,
        buffer: Floats | None = None,
    ) -> Block:
        block: Floats
        if self.calibration is not None:
            block = self.calibration.powers(rows)
        elif buffer is None:
            block = rows.astype(np.float64, copy=False)
        else:
            block = buffer[: len(rows)]
            np.copyto(block, rows)
        if labels is not None:
            block = with_labels(block, labels)
        if self.columns is not None:
            block = block[:, self.columns]
        w: Floats | None = None if weights is None else weights.astype(np.float64, copy=False)
        return _tidied(block, w) if self.tidy else (block, w)


def with_labels(rows: Floats, labels: Codes) -> Floats:
    """A copy of n × C ``rows`` in which labelled ones are certain; -1: no label."""
    certain = np.flatnonzero(labels >= 0)
    known = rows.copy()
    known[certain] = 0.0
    known[certain, labels[certain]] = 1.0
    return known


def _tidied(block: Floats, weights: Floats | None) -> Block:
    mass = row_sums(block)
    useful = mass > 0
    if weights is not None:
        useful &= weights > 0
        weights = weights[useful]
    return block[useful] / mass[useful, None], weights
