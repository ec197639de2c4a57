"""Observations: rows that are counted into the windows of a monitor."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from zlib import crc32

import numpy as np
from fastapi import APIRouter
from starlette.responses import Response

from app.api.monitors import MonitorName
from app.clock import micros, moment, now
from app.core import deadline
from app.core.arrays import Codes
from app.core.errors import Faults, InvalidInput, pointer
from app.core.json_types import JsonValue
from app.core.names import Spellings
from app.core.prevalence.source import SourceModel
from app.core.warnings import Warning, WarningCode
from app.estimation import Batch, FeatureBatch, OutputBatch, PosteriorBatch
from app.formats.frame import Cells, Column, Frame
from app.http.audit_trail import CallerDep
from app.http.body import Body
from app.http.dependencies import ServicesDep, answer, problems
from app.http.idempotency import OnceDep
from app.intake import parse
from app.monitoring import window_closing
from app.monitoring.specification import ByDuration, Spec
from app.monitoring.window_assignment import Filled, Times, fill
from app.openapi import takes_batch
from app.schemas import presenters
from app.schemas.monitors import ObservationsIn, ObservationsOut, SealedOut, StreamOut
from app.schemas.requests import SegmentValue, Timestamp
from app.schemas.validation import checked
from app.stored.monitors import StoredMonitor
from models_store.monitors import MonitorRecord
from models_store.store import UnitOfWork

router = APIRouter(prefix="/v1/monitors/{monitor}", tags=["monitors"])
MOST_SEGMENTS = 1000
"""Segments of a monitor."""
AHEAD = 24 * 3600 * 1_000_000
"""Microseconds that a row may lie in the future, for clocks that differ."""


@dataclass(frozen=True)
class Rows:
    """Checked rows: when each was observed, and which segment each belongs to."""

    batch: Batch
    times: Times
    segments: tuple[str, ...]
    codes: Codes


@router.post(
    "/observations",
    status_code=202,
    responses={
        202: {"model": ObservationsOut},
        **problems(400, 404, 409, 413, 415, 422, 503),
    },
    openapi_extra=takes_batch(ObservationsIn),
)
def create_observations(
    monitor: MonitorName,
    payload: Body,
    once: OnceDep,
    services: ServicesDep,
    caller: CallerDep,
) -> Response:
    """Count rows. What is acknowledged is in a window; estimates follow when windows close."""
    sent = payload.batch()
    once.require_new()
    given = parse.envelope(ObservationsIn, sent.content, sent.text)
    with services.store.read() as unit:
        record = unit.monitors.get(monitor, caller.models)
        known = unit.series.segments(record.id)
    spec = Spec.of(StoredMonitor.read(record.content))
    version = services.store.version(record.model, spec.version)
    batch = parse.batch(given, version.source, services.classifiers.of(version), sent.frame)
    rows = _rows(given, sent.frame, batch, spec, known)
    takes = _takes(batch, version.source)

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        unit.monitors.settle(record, takes)
        return record.model_id, answer(_counted(unit, record, spec, rows), 202)

    return once.commit(work)


def _counted(unit: UnitOfWork, record: MonitorRecord, spec: Spec, rows: Rows) -> ObservationsOut:
    """The rows in the windows of their streams, locked in the order of their names."""
    streams = {}
    for code in sorted(range(len(rows.segments)), key=rows.segments.__getitem__):
        stream = unit.windows.stream(record.id, rows.segments[code], MOST_SEGMENTS)
        which = np.flatnonzero(rows.codes == code)
        at = micros(now())
        filled = fill(unit, stream, spec.window, rows.batch, which, rows.times[which], at)
        _have_closed(unit, spec, filled)
        streams[rows.segments[code]] = filled
    return _shown(unit, record.shown, spec, streams, rows.batch)


def _have_closed(unit: UnitOfWork, spec: Spec, filled: Filled) -> None:
    """Have a task close the windows that are sealed now, and later those that were opened."""
    if filled.sealed:
        window_closing.ask(unit, filled.stream_id, now())
    elif filled.opened and isinstance(spec.window, ByDuration):
        due = min(window.due for window in filled.opened if window.due is not None)
        window_closing.ask(unit, filled.stream_id, moment(due))


def _takes(batch: Batch, source: SourceModel) -> str:
    """What kind of rows these are; outputs only join others of the same names."""
    if isinstance(batch, PosteriorBatch):
        return "posteriors"
    names = crc32("\0".join(source.outputs).encode())
    return f"outputs:{names:08x}"


def _rows(
    given: ObservationsIn, frame: Frame | None, batch: Batch, spec: Spec, known: Collection[str]
) -> Rows:
    if isinstance(batch, FeatureBatch):
        message = "features that no classifier has scored cannot be watched; send posteriors"
        raise InvalidInput.at("/features", message)
    bare = isinstance(batch, OutputBatch) and batch.codes is None
    n = 1 if bare else batch.size
    times = _times(given.observed_at, frame, n)
    names, codes = _segments(given.segment, frame, n, spec.segment_by, Spellings([*known]))
    return Rows(batch, times, names, codes)


def _times(given: object, frame: Frame | None, n: int) -> Times:
    at = "/observed_at"
    if frame is not None and (given is None or isinstance(given, str)):
        name = "observed_at" if given is None else given
        column = frame.find(name)
        if column is not None:
            return _bounded(_column_times(column, name), pointer(name))
    if given is None:
        return np.full(n, micros(now()), np.int64)
    if not isinstance(given, list):
        return _bounded(np.full(n, _parsed(given, at), np.int64), at)
    if len(given) != n:
        raise InvalidInput.at(at, f"has {len(given)} entries for {n} rows")
    faults, known, found = Faults(), dict[str, int](), np.zeros(n, np.int64)
    for row, text in enumerate(deadline.checked(given)):
        try:
            if not isinstance(text, str) or text not in known:
                known[text] = _parsed(text, f"{at}/{row}")
            found[row] = known[text]
        except InvalidInput as error:
            faults.add(f"{at}/{row}", error.faults[0].message, row)
    faults.raise_if_any()
    return _bounded(found, at)


def _column_times(column: Column, name: str) -> Times:
    times = column.times()
    if times is None:
        coded = column.coded()
        if coded is None or not all(isinstance(level, str) for level in coded.levels):
            message = f"is of type {column.kind[:60]}; send times with a zone, like {A_TIME}"
            raise InvalidInput.at(pointer(name), message)
        times = coded.mapped(
            [_parsed(level, pointer(name)) for level in deadline.checked(coded.levels)], MISSING
        )
    if (times == MISSING).any():
        row = int(np.argmax(times == MISSING))
        raise InvalidInput.at(pointer(name, row), "is missing; every row needs a time", row)
    return times


MISSING = int(np.iinfo(np.int64).min)
A_TIME = "2026-01-31T00:00:00Z"


def _parsed(text: JsonValue, at: str) -> int:
    found: datetime | None = checked(Timestamp, text, at)
    if found is None:
        raise InvalidInput.at(at, "is missing; every row needs a time")
    return micros(found)


def _bounded(times: Times, at: str) -> Times:
    if int(times.max()) > micros(now()) + AHEAD:
        row = int(times.argmax())
        shown = moment(int(times[row])).isoformat() if times[row] < 2**57 else "a time"
        raise InvalidInput.at(at, f"{shown} lies more than a day in the future", row)
    if int(times.min()) < EARLIEST:
        raise InvalidInput.at(at, "must lie after the year 1900", int(times.argmin()))
    return times


EARLIEST = -2_208_988_800_000_000


def _segments(
    given: dict[str, object], frame: Frame | None, n: int, key: str | None, known: Spellings
) -> tuple[tuple[str, ...], Codes]:
    if key is None:
        if given:
            message = "this monitor has no segment_by; leave it out, or make one that has"
            raise InvalidInput.at("/segment", message)
        return ("",), np.zeros(n, np.intp)
    unknown = [name for name in given if name != key]
    if unknown:
        message = f"this monitor has segments by {key} only"
        raise InvalidInput.at("/segment" + pointer(unknown[0]), message)
    at = "/segment" + pointer(key)
    if key not in given:
        if frame is None or frame.find(key) is None:
            raise InvalidInput.at(at, f"is missing; this monitor has segments by {key}")
        return _used(*frame.text(key, at), known, pointer(key))
    value = given[key]
    if not isinstance(value, list):
        return (_segment(value, known, at),), np.zeros(n, np.intp)
    if len(value) != n:
        raise InvalidInput.at(at, f"has {len(value)} entries for {n} rows")
    listed = Frame({key: Cells(value)}, n, "/segment")
    return _used(*listed.text(key, at), known, at)


def _used(
    levels: tuple[str, ...], codes: Codes, known: Spellings, at: str
) -> tuple[tuple[str, ...], Codes]:
    """The levels that occur, each once however it is spelled, and where."""
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise InvalidInput.at(f"{at}/{row}", "is missing; every row needs a segment", row)
    used, place = np.unique(codes, return_inverse=True)
    if len(used) > MOST_SEGMENTS:
        raise InvalidInput.at(at, f"has {len(used)} segments, at most {MOST_SEGMENTS} are allowed")
    places: dict[str, int] = {}
    named = [_segment(levels[code], known, at) for code in used]
    merged = np.array([places.setdefault(name, len(places)) for name in named], np.intp)
    return tuple(places), merged[place]


def _segment(value: JsonValue, known: Spellings, at: str) -> str:
    """A segment as the monitor has it, if it has it, whatever it may be; else by the rules."""
    place = known.find(value) if isinstance(value, str) else None
    if place is not None:
        return known.names[place]
    found: str = checked(SegmentValue, value, at)
    return found


def _shown(
    unit: UnitOfWork, name: str, spec: Spec, found: dict[str, Filled], batch: Batch
) -> ObservationsOut:
    streams = []
    for segment, filled in found.items():
        known = unit.windows.numbered(filled.stream_id, filled.sealed) if filled.sealed else {}
        shown = [
            SealedOut(number=w.number, start=moment(w.start), end=moment(w.end), size=w.size)
            for w in known.values()
        ]
        streams.append(
            StreamOut(
                segment=None if spec.segment_by is None else segment,
                accepted=filled.accepted,
                late=filled.late,
                closed=shown,
            )
        )
    accepted, late = (sum(getattr(f, of) for f in found.values()) for of in ("accepted", "late"))
    return ObservationsOut(
        monitor=name,
        accepted=accepted,
        late=late,
        streams=streams,
        warnings=presenters.warnings(_notes(batch, late)),
    )


def _notes(batch: Batch, late: int) -> list[Warning]:
    notes: list[Warning] = []
    if isinstance(batch, PosteriorBatch):
        notes += batch.notes
        if batch.renormalised:
            message = f"{batch.renormalised} rows did not sum to 1 within 1e-6 and were rescaled"
            notes.append(Warning(WarningCode.RENORMALISED, message))
    if late:
        message = f"{late} rows belong to windows that are closed, and count nowhere: raise grace"
        notes.append(Warning(WarningCode.LATE_ROWS, message))
    return notes
