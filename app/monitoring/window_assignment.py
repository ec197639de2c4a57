"""Rows into windows: which one each row belongs to, in the transaction that acknowledges them."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Codes
from app.core.errors import MethodUnavailable
from app.estimation import Batch, OutputBatch
from app.monitoring import window_rows
from app.monitoring.specification import ByDuration, ByRows
from models_store import arrays
from models_store.store import UnitOfWork
from models_store.windows import StreamRecord, WindowRecord

Times = NDArray[np.int64]
"""Microseconds since 1970."""
PATIENCE = 60_000_000
"""Microseconds that a window of the past waits for more rows, unless later ones come: what is sent
afterwards, day by day, is not cut short by the clock."""


@dataclass
class Filled:
    """What became of the rows of one stream; windows by their number."""

    stream_id: int
    accepted: int = 0
    late: int = 0
    opened: list[WindowRecord] = field(default_factory=list)
    sealed: list[int] = field(default_factory=list)


def fill(
    unit: UnitOfWork,
    stream: StreamRecord,
    spec: ByRows | ByDuration,
    batch: Batch,
    which: Codes,
    times: Times,
    now: int,
) -> Filled:
    """Put the rows ``which`` of ``batch``, of these ``times``, into windows of a locked stream."""
    filled = Filled(stream.id)
    if isinstance(spec, ByRows):
        _by_rows(unit, filled, spec, batch, which, times)
    else:
        _by_time(unit, filled, spec, stream, batch, which, times, now)
    latest = int(times.max())
    if stream.watermark is None or latest > stream.watermark:
        unit.windows.remember(stream.id, watermark=latest)
        if isinstance(spec, ByDuration):
            filled.sealed += unit.windows.seal(stream.id, min(latest, now) - spec.grace)
    return filled


def weight(batch: Batch, which: Codes) -> int:
    """How many rows these are: bare counts are one entry that stands for all of them."""
    return batch.size if isinstance(batch, OutputBatch) and batch.codes is None else len(which)


def _by_rows(
    unit: UnitOfWork, filled: Filled, spec: ByRows, batch: Batch, which: Codes, times: Times
) -> None:
    bare = isinstance(batch, OutputBatch) and batch.codes is None
    if bare and batch.size > spec.rows:
        reason = (
            f"{batch.size} bare counts do not fit windows of {spec.rows} rows; send predictions"
        )
        raise MethodUnavailable("splitting counts", reason)
    window = unit.windows.last(filled.stream_id)
    start = 0
    while start < len(which):
        if window is None or window.state != "open":
            window = _next(unit, filled, window, int(times[start]))
        space = spec.rows - window.size
        if bare:
            if batch.size > space:
                window = _sealed(unit, filled, window)
                continue
            taken = slice(0, 1)
        else:
            taken = slice(start, start + space)
        window = _append(unit, window, batch, which[taken], times[taken])
        filled.accepted += weight(batch, which[taken])
        if window.size >= spec.rows:
            window = replace(window, state="sealed")
            filled.sealed.append(window.number)
        unit.windows.grow(window)
        start += len(which[taken])


def _next(unit: UnitOfWork, filled: Filled, last: WindowRecord | None, time: int) -> WindowRecord:
    number = 0 if last is None else last.number + 1
    window = unit.windows.begin(filled.stream_id, number, time, time, None)
    filled.opened.append(window)
    return window


def _sealed(unit: UnitOfWork, filled: Filled, window: WindowRecord) -> WindowRecord:
    """A window that counts did not fill exactly."""
    window = replace(window, state="sealed")
    filled.sealed.append(window.number)
    unit.windows.grow(window)
    return window


def _by_time(
    unit: UnitOfWork,
    filled: Filled,
    spec: ByDuration,
    stream: StreamRecord,
    batch: Batch,
    which: Codes,
    times: Times,
    now: int,
) -> None:
    numbers = times // spec.duration
    used = np.unique(numbers)
    known = unit.windows.numbered(stream.id, used.tolist())
    passed = None if stream.watermark is None else min(stream.watermark, now) - spec.grace
    for number in used.tolist():
        end = (number + 1) * spec.duration
        mine = slice(None) if len(used) == 1 else numbers == number
        window = known.get(number)
        gone = window is not None and window.state != "open"
        if gone or (window is None and passed is not None and end <= passed):
            filled.late += weight(batch, which[mine])
            continue
        if window is None:
            due = max(end, now + min(spec.duration, PATIENCE)) + spec.grace
            window = unit.windows.begin(stream.id, number, number * spec.duration, end, due)
            filled.opened.append(window)
        unit.windows.grow(_append(unit, window, batch, which[mine], None))
        filled.accepted += weight(batch, which[mine])


def _append(
    unit: UnitOfWork, window: WindowRecord, batch: Batch, which: Codes, times: Times | None
) -> WindowRecord:
    """Add rows to an open window, and join its pieces where there are many."""
    kind, part = window_rows.part(batch, which)
    size = weight(batch, which)
    window_rows.require_room(window, kind, part, size)
    unit.windows.append(window.id, kind, size, arrays.encode(part))
    window = replace(window, size=window.size + size, loose=window.loose + 1)
    if times is not None:
        start, end = int(times.min()), int(times.max())
        window = replace(window, start=min(window.start, start), end=max(window.end, end))
    return window_rows.joined(unit.windows, window, kind, part.shape[-1])
