"""What is kept of the rows of an open window: pieces that join, bounded in all.

Posteriors are float32; of two classes more than ``MOST_EXACT`` rows become a histogram of the
log-odds (``LogOddsSketch``) and the decisions beside it. Predicted outputs are counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import AnyFloats, Codes, Floats
from app.core.errors import MethodUnavailable
from app.core.prevalence.estimators.confusion import decision_counts
from app.core.prevalence.estimators.sketch import BINS, LogOddsSketch
from app.estimation import Batch, OutputBatch, PosteriorBatch
from models_store import arrays
from models_store.windows import RowsRecord, WindowRecord, Windows

MOST_EXACT = 65_536
"""Rows of two classes that are kept as they are; they take half a megabyte."""
MOST_NUMBERS = 16_777_216
"""Numbers of posteriors of more classes that one window may hold: 64 MiB."""
SMALL = 4096
"""Rows of a piece that is joined with others when there are ``MOST_LOOSE`` of them."""
MOST_LOOSE = 128
TINY = np.finfo(np.float32).tiny
Float32s = NDArray[np.float32]
Floating = AnyFloats


def narrowed(posteriors: Floats) -> Float32s:
    """The rows in single precision, in which no class that was possible becomes impossible."""
    rows = posteriors.astype(np.float32)
    lost = (rows < TINY) & (posteriors > 0)
    if lost.any():
        rows[lost] = TINY
    return rows


@dataclass(frozen=True, eq=False)
class Sketched:
    """Many rows of two classes: their histogram, and how many were decided for each class."""

    sketch: LogOddsSketch
    decided: Floats

    @classmethod
    def of(cls, rows: Float32s) -> "Sketched":
        """Of n × 2 rows."""
        return cls(LogOddsSketch.of(rows), decision_counts(rows.astype(np.float64)))

    def merge(self, other: "Sketched") -> "Sketched":
        """Of both sets of rows."""
        return Sketched(self.sketch.merge(other.sketch), self.decided + other.decided)

    def encoded(self) -> bytes:
        """As bytes, the empty bins left out."""
        sketch = self.sketch
        used = np.flatnonzero(sketch.weight)
        head = [*sketch.certain, sketch.unsupported, *self.decided]
        parts = (head, used, sketch.weight[used], sketch.first[used], sketch.second[used])
        return arrays.encode(np.concatenate([np.asarray(p, np.float64) for p in parts]))

    @classmethod
    def decoded(cls, content: bytes) -> "Sketched":
        """From these bytes."""
        values = arrays.decode(content)
        used, *sums = values[5:].reshape(4, -1)
        dense = np.zeros((3, BINS))
        dense[:, used.astype(np.intp)] = sums
        weight, first, second = dense
        sketch = LogOddsSketch(weight, first, second, values[:2], float(values[2]))
        return cls(sketch, values[3:5])


@dataclass(frozen=True, eq=False)
class WindowRows:
    """The rows of a window, joined; ``kind`` of what they are, else they are empty."""

    rows: Float32s | None = None
    counts: Floats | None = None
    sketched: Sketched | None = None

    @classmethod
    def of(cls, pieces: Sequence[RowsRecord]) -> "WindowRows":
        """Of all the pieces of a window."""
        rows = [arrays.decode(p.content) for p in pieces if p.kind == "rows"]
        counts = [arrays.decode(p.content) for p in pieces if p.kind == "counts"]
        sketches = [Sketched.decoded(p.content) for p in pieces if p.kind == "sketch"]
        joined: Sketched | None = None
        for sketch in sketches:
            joined = sketch if joined is None else joined.merge(sketch)
        return cls(
            np.concatenate(rows) if rows else None,
            np.sum(counts, axis=0) if counts else None,
            joined,
        )

    def batch(self) -> Batch:
        """What to estimate from."""
        if self.counts is not None:
            return OutputBatch(self.counts)
        rows = np.zeros((0, 2), np.float32) if self.rows is None else self.rows
        if self.sketched is None:
            return PosteriorBatch(rows.astype(np.float64))
        whole = self.sketched if len(rows) == 0 else self.sketched.merge(Sketched.of(rows))
        posteriors, weights = whole.sketch.atoms()
        return PosteriorBatch(posteriors, weights=weights, decided=whole.decided)


def part(batch: Batch, rows: Codes) -> tuple[str, Floating]:
    """Some rows of a batch, and the kind of piece that they are."""
    if isinstance(batch, PosteriorBatch):
        return "rows", narrowed(batch.posteriors[rows])
    assert isinstance(batch, OutputBatch)
    if batch.codes is None:
        return "counts", batch.counts
    counts = np.bincount(batch.codes[rows], minlength=len(batch.counts))
    return "counts", counts.astype(np.float64)


def require_room(window: WindowRecord, kind: str, part: Floating, size: int) -> None:
    """``MethodUnavailable`` where the window would hold more than it may."""
    if kind != "rows" or part.shape[1] == 2:
        return
    most = MOST_NUMBERS // part.shape[1]
    if window.size + size > most:
        reason = f"a window of {part.shape[1]} classes holds at most {most} rows; make it shorter"
        raise MethodUnavailable("holding these rows", reason)


def joined(windows: Windows, window: WindowRecord, kind: str, width: int) -> WindowRecord:
    """The window with its small pieces joined where they are many, or with a histogram.

    ``width``: columns of the pieces.
    """
    exact = window.size - window.sketched
    if kind == "rows" and width == 2 and exact > MOST_EXACT:
        held = WindowRows.of(windows.rows(window.id))
        assert held.rows is not None
        whole = Sketched.of(held.rows)
        if held.sketched is not None:
            whole = whole.merge(held.sketched)
        windows.drop_rows(window.id)
        windows.append(window.id, "sketch", window.size, whole.encoded())
        return replace(window, sketched=window.size, loose=0)
    if window.loose < MOST_LOOSE:
        return window
    pieces = windows.rows(window.id)
    small = [p for p in pieces if p.kind == kind and (kind == "counts" or p.size < SMALL)]
    held = WindowRows.of(small)
    joint = held.rows if kind == "rows" else held.counts
    assert joint is not None
    windows.drop_rows(window.id, [p.id for p in small])
    windows.append(window.id, kind, sum(p.size for p in small), arrays.encode(joint))
    return replace(window, loose=1)
