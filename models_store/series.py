"""Closed windows as columns, for charts: read in bulk, without an object for each.

What a window said is kept as one row of numbers, so that a hundred thousand are read as one array.
"""

from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from app.core.arrays import Floats
from models_store.tables import streams, windows

Ints = NDArray[np.int64]
FETCHED = 1000
"""Rows that are fetched at once; very many at a time only busy the garbage collector."""
SCALARS = 7
"""Start, end, size, version, p-value, level and detected, before the shares."""


@dataclass(frozen=True, eq=False)
class Columns:
    """W windows of one stream, oldest first; NaN where a window says nothing.

    ``start`` and ``end``: microseconds since 1970. ``detected``: 0 or 1. ``shares``: W × C × 4,
    estimate, lower and upper end, source.
    """

    segment: str
    start: Ints
    end: Ints
    size: Ints
    version: Floats
    p_value: Floats
    level: Floats
    detected: Floats
    shares: Floats


def packed(
    start: int,
    end: int,
    size: int,
    version: int | None = None,
    test: tuple[float, float, bool] | None = None,
    shares: Floats | None = None,
    classes: int = 0,
) -> bytes:
    """What a window said; ``test``: p-value, level, detected; ``shares``: C × 4, or of nothing."""
    if shares is None:
        shares = np.full((classes, 4), np.nan)
    tested = (np.nan,) * 3 if test is None else test
    head = [start, end, size, np.nan if version is None else version, *tested]
    return np.concatenate([np.asarray(head, np.float64), shares.ravel()]).tobytes()


class Series:
    """What the windows of a monitor said."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def segments(self, monitor_id: str) -> dict[str, int]:
        """The streams of a monitor, by segment."""
        mine = sa.select(streams.c.segment, streams.c.id).where(streams.c.monitor_id == monitor_id)
        found = self._connection.execute(mine.order_by(streams.c.segment)).all()
        return {row.segment: row.id for row in found}

    def columns(
        self, stream_id: int, segment: str, classes: int, since: int | None, until: int | None
    ) -> Columns:
        """The closed windows of a stream that start at ``since`` or later, before ``until``."""
        c = windows.c
        statement = sa.select(c.said).where(c.stream_id == stream_id, c.said.is_not(None))
        if since is not None:
            statement = statement.where(c.start >= since)
        if until is not None:
            statement = statement.where(c.start < until)
        found = self._connection.execute(statement.order_by(c.start)).yield_per(FETCHED).scalars()
        return unpacked(segment, b"".join(found), classes)

    def newest(self, stream_id: int, segment: str, classes: int, most: int) -> Columns:
        """The newest ``most`` closed windows of a stream."""
        c = windows.c
        statement = sa.select(c.said).where(c.stream_id == stream_id, c.said.is_not(None))
        statement = statement.order_by(c.start.desc()).limit(most)
        found = self._connection.execute(statement).scalars().all()
        return unpacked(segment, b"".join(reversed(found)), classes)


def unpacked(segment: str, said: bytes, classes: int) -> Columns:
    """Windows of ``packed``, one after the other."""
    table = np.frombuffer(said, np.float64).reshape(-1, SCALARS + 4 * classes)
    start, end, size = table[:, :3].astype(np.int64).T
    version, p_value, level, detected = table[:, 3:SCALARS].T
    shares = table[:, SCALARS:].reshape(-1, classes, 4)
    return Columns(segment, start, end, size, version, p_value, level, detected, shares)
