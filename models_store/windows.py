"""Streams of a monitor, a stream for each segment, and the windows that their rows fall into.

Whoever changes a stream holds its row until the transaction ends: rows are appended to a window,
or it is sealed, never both at once. A window is open, then sealed (no more rows), then closed
(estimated) or failed. Times are microseconds since 1970.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from models_store.errors import NotFound, TooMany
from models_store.records import Page
from models_store.tables import estimates, streams, window_rows, windows


@dataclass(frozen=True)
class StreamRecord:
    """A segment's rows. ``watermark``: the latest time seen; ``state``: what its tests remember."""

    id: int
    monitor_id: str
    segment: str
    watermark: int | None
    state: dict[str, Any]


@dataclass(frozen=True)
class WindowRecord:
    """A window: rows from ``start`` to ``end``; ``due``: when the clock closes it, None for never.

    ``loose``: pieces of rows that were not joined yet; ``sketched``: rows kept as a histogram.
    """

    id: int
    stream_id: int
    number: int
    state: str
    start: int
    end: int
    due: int | None
    size: int
    loose: int
    sketched: int


@dataclass(frozen=True)
class Closing:
    """How a window closed: ``said`` in bytes (``series.packed``); ``note``: why it said nothing."""

    state: str
    said: bytes
    estimate_id: str | None = None
    note: str | None = None


@dataclass(frozen=True)
class WindowPage:
    """A window as lists show it: its segment and what came of it."""

    id: int
    segment: str
    number: int
    state: str
    start: int
    end: int
    size: int
    estimate_id: str | None
    note: str | None


@dataclass(frozen=True)
class RowsRecord:
    """Some rows of a window, as bytes of this kind."""

    id: int
    kind: str
    size: int
    content: bytes


class Windows:
    """Streams, windows and their rows."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def stream(self, monitor_id: str, segment: str, most: int) -> StreamRecord:
        """The stream, locked; made where it is new, unless there are ``most`` (``TooMany``)."""
        found = self._locked(streams.c.monitor_id == monitor_id, streams.c.segment == segment)
        if found is not None:
            return found
        if self.count(monitor_id) >= most:
            raise TooMany(f"the monitor has {most} segments already; a new one is refused")
        values = {"monitor_id": monitor_id, "segment": segment, "state": {}}
        savepoint = self._connection.begin_nested()
        try:
            self._connection.execute(streams.insert().values(values))
            savepoint.commit()
        except sa.exc.IntegrityError:
            savepoint.rollback()
        found = self._locked(streams.c.monitor_id == monitor_id, streams.c.segment == segment)
        if found is None:
            raise NotFound("the monitor was deleted meanwhile")
        return found

    def lock(self, stream_id: int) -> StreamRecord:
        """The stream of this identity, locked; ``NotFound`` where the monitor is gone."""
        found = self._locked(streams.c.id == stream_id)
        if found is None:
            raise NotFound("the monitor was deleted meanwhile")
        return found

    def count(self, monitor_id: str) -> int:
        """How many streams a monitor has."""
        mine = sa.select(sa.func.count()).where(streams.c.monitor_id == monitor_id)
        return self._connection.execute(mine).scalar_one()

    def remember(
        self,
        stream_id: int,
        watermark: int | None = None,
        state: dict[str, Any] | None = None,
    ) -> None:
        """Change the watermark, or what the tests remember."""
        values: dict[str, Any] = {}
        if watermark is not None:
            values["watermark"] = watermark
        if state is not None:
            values["state"] = state
        self._connection.execute(streams.update().where(streams.c.id == stream_id).values(values))

    def last(self, stream_id: int) -> WindowRecord | None:
        """The latest window of a stream."""
        mine = _WINDOW.where(windows.c.stream_id == stream_id)
        row = self._connection.execute(mine.order_by(windows.c.number.desc()).limit(1)).first()
        return None if row is None else WindowRecord(**row._asdict())

    def numbered(self, stream_id: int, numbers: Sequence[int]) -> dict[int, WindowRecord]:
        """Those of these windows that there are."""
        mine = _WINDOW.where(windows.c.stream_id == stream_id, windows.c.number.in_(numbers))
        return {row.number: WindowRecord(**row._asdict()) for row in self._connection.execute(mine)}

    def begin(
        self, stream_id: int, number: int, start: int, end: int, due: int | None
    ) -> WindowRecord:
        """A new, empty window."""
        values = {
            "stream_id": stream_id,
            "number": number,
            "state": "open",
            "start": start,
            "end": end,
            "due": due,
            "size": 0,
            "loose": 0,
            "sketched": 0,
        }
        inserted = self._connection.execute(windows.insert().values(values))
        key = inserted.inserted_primary_key
        assert key is not None
        return WindowRecord(key[0], stream_id, number, "open", start, end, due, 0, 0, 0)

    def grow(self, window: WindowRecord) -> None:
        """Write what changed of an open window: its times, its size and its state."""
        values = {
            "state": window.state,
            "start": window.start,
            "end": window.end,
            "size": window.size,
            "loose": window.loose,
            "sketched": window.sketched,
        }
        mine = windows.update().where(windows.c.id == window.id)
        self._connection.execute(mine.values(values))

    def seal(self, stream_id: int, most_end: int) -> list[int]:
        """Seal the open windows that end by ``most_end``; their numbers."""
        open_ones = (
            windows.c.stream_id == stream_id,
            windows.c.state == "open",
            windows.c.end <= most_end,
        )
        found = self._connection.execute(
            sa.select(windows.c.number).where(*open_ones).order_by(windows.c.number)
        ).scalars()
        numbers = list(found)
        if numbers:
            self._connection.execute(windows.update().where(*open_ones).values(state="sealed"))
        return numbers

    def next_to_close(self, stream_id: int, now: int) -> WindowRecord | None:
        """The earliest window that is sealed, or open and due."""
        due = sa.and_(windows.c.state == "open", windows.c.due <= now)
        statement = (
            _WINDOW.where(windows.c.stream_id == stream_id)
            .where(sa.or_(windows.c.state == "sealed", due))
            .order_by(windows.c.number)
            .limit(1)
        )
        row = self._connection.execute(statement).first()
        return None if row is None else WindowRecord(**row._asdict())

    def next_due(self, stream_id: int) -> int | None:
        """When the clock closes the next open window of a stream; None where it never does."""
        mine = sa.select(sa.func.min(windows.c.due)).where(
            windows.c.stream_id == stream_id, windows.c.state == "open"
        )
        found: int | None = self._connection.execute(mine).scalar_one()
        return found

    def close(self, window_id: int, said: Closing) -> bool:
        """What a sealed window said; whether it was not closed before."""
        mine = windows.update().where(windows.c.id == window_id, windows.c.state == "sealed")
        return self._connection.execute(mine.values(vars(said))).rowcount == 1

    def spans(self, stream_id: int, most: int) -> list[tuple[int, int]]:
        """Start and end of the last windows of a stream that are closed, latest first."""
        mine = (
            sa.select(windows.c.start, windows.c.end)
            .where(windows.c.stream_id == stream_id, windows.c.state == "closed")
            .order_by(windows.c.number.desc())
            .limit(most)
        )
        return [(row.start, row.end) for row in self._connection.execute(mine)]

    def estimates(self, stream_id: int, starts: Sequence[int]) -> dict[int, str]:
        """Ids of the kept estimates of the windows that begin at ``starts``, where one does."""
        mine = (
            sa.select(windows.c.start, estimates.c.id)
            .join_from(windows, estimates, windows.c.estimate_id == estimates.c.id)
            .where(windows.c.stream_id == stream_id, windows.c.start.in_(starts))
        )
        rows = self._connection.execute(mine).all()
        often = Counter(row.start for row in rows)
        return {row.start: row.id for row in rows if often[row.start] == 1}

    def spans_of_monitor(self, monitor_id: str, most: int) -> list[tuple[int, int]]:
        """The same of the stream of a monitor that has the most windows."""
        longest = (
            sa.select(streams.c.id)
            .join(windows, windows.c.stream_id == streams.c.id)
            .where(streams.c.monitor_id == monitor_id)
            .order_by(windows.c.number.desc())
            .limit(1)
        )
        found = self._connection.execute(longest).scalar_one_or_none()
        return [] if found is None else self.spans(found, most)

    def usual_size(self, monitor_id: str, most: int) -> int | None:
        """Mean rows of the last windows of a monitor that are closed; None before the first."""
        last = (
            sa.select(windows.c.size)
            .join_from(windows, streams)
            .where(streams.c.monitor_id == monitor_id, windows.c.state == "closed")
            .order_by(windows.c.id.desc())
            .limit(most)
            .subquery()
        )
        found = self._connection.execute(sa.select(sa.func.avg(last.c.size))).scalar_one()
        return None if found is None else round(float(found))

    def page(
        self,
        monitor_id: str,
        state: str | None,
        segment: str | None,
        before: int | None,
        limit: int,
    ) -> Page[WindowPage]:
        """Windows of a monitor, the latest begun first, from the one before ``before``."""
        statement = _PAGE.where(streams.c.monitor_id == monitor_id)
        if state is not None:
            statement = statement.where(windows.c.state == state)
        if segment is not None:
            statement = statement.where(streams.c.segment == segment)
        if before is not None:
            statement = statement.where(windows.c.id < before)
        ordered = statement.order_by(windows.c.id.desc()).limit(limit + 1)
        rows = self._connection.execute(ordered).all()
        items = tuple(WindowPage(**row._asdict()) for row in rows[:limit])
        return Page(items, (str(items[-1].id),) if len(rows) > limit else None)

    def get(self, monitor_id: str, id: int) -> WindowPage:
        """A window of a monitor, or ``NotFound``."""
        mine = _PAGE.where(streams.c.monitor_id == monitor_id, windows.c.id == id)
        row = self._connection.execute(mine).one_or_none()
        if row is None:
            raise NotFound(f"the monitor has no window {id}")
        return WindowPage(**row._asdict())

    def append(self, window_id: int, kind: str, size: int, content: bytes) -> None:
        """Add rows to a window."""
        values = {"window_id": window_id, "kind": kind, "size": size, "content": content}
        self._connection.execute(window_rows.insert().values(values))

    def rows(self, window_id: int) -> list[RowsRecord]:
        """The rows of a window, in the order in which they came."""
        columns = window_rows.c
        mine = (
            sa.select(columns.id, columns.kind, columns.size, columns.content)
            .where(columns.window_id == window_id)
            .order_by(columns.id)
        )
        return [RowsRecord(*row) for row in self._connection.execute(mine)]

    def drop_rows(self, window_id: int, ids: Sequence[int] | None = None) -> None:
        """Drop rows of a window, all where ``ids`` is None."""
        statement = window_rows.delete().where(window_rows.c.window_id == window_id)
        if ids is not None:
            statement = statement.where(window_rows.c.id.in_(ids))
        self._connection.execute(statement)

    def _locked(self, *conditions: sa.ColumnElement[bool]) -> StreamRecord | None:
        columns = (
            streams.c.id,
            streams.c.monitor_id,
            streams.c.segment,
            streams.c.watermark,
            streams.c.state,
        )
        statement = sa.select(*columns).where(*conditions).with_for_update()
        row = self._connection.execute(statement).one_or_none()
        return None if row is None else StreamRecord(*row)


_PAGE = sa.select(
    windows.c.id,
    streams.c.segment,
    windows.c.number,
    windows.c.state,
    windows.c.start,
    windows.c.end,
    windows.c.size,
    windows.c.estimate_id,
    windows.c.note,
).join_from(windows, streams)
_WINDOW = sa.select(
    windows.c.id,
    windows.c.stream_id,
    windows.c.number,
    windows.c.state,
    windows.c.start,
    windows.c.end,
    windows.c.due,
    windows.c.size,
    windows.c.loose,
    windows.c.sketched,
)
