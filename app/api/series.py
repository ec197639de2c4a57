"""The series of a monitor: what its windows said, as columns or as CSV."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query
from starlette.responses import Response

from app.api.monitors import MonitorName
from app.clock import micros
from app.core import sheets
from app.core.arrays import Floats
from app.core.errors import InvalidInput
from app.core.json_types import JsonObject
from app.core.names import Spellings
from app.http.audit_trail import CallerDep
from app.http.body import only
from app.http.dependencies import StoreDep, answer, problems
from app.monitoring.thinning import thinned
from app.schemas.monitors import SeriesOut
from app.schemas.requests import KeptSegment, Timestamp
from app.schemas.validation import checked
from app.stored.monitors import StoredMonitor
from models_store.monitors import MonitorRecord
from models_store.series import Columns, Ints
from models_store.store import UnitOfWork

router = APIRouter(prefix="/v1/monitors/{monitor}", tags=["monitors"])
SHARES = ("estimate", "lower", "upper", "source")
MOST_SHARES = 4_000_000
"""Numbers of one answer: points × classes × 4."""


@router.get(
    "/series",
    responses={
        200: {"model": SeriesOut, "content": {"text/csv": {}}},
        **problems(404, 422, 503),
    },
    dependencies=[only("since", "until", "class", "segment", "points", "format")],
)
def get_series(
    monitor: MonitorName,
    store: StoreDep,
    caller: CallerDep,
    since: Annotated[str | None, Query(description="Earliest start, inclusive")] = None,
    until: Annotated[str | None, Query(description="Latest start, exclusive")] = None,
    class_: Annotated[str | None, Query(alias="class", description="All without it")] = None,
    segment: Annotated[str | None, Query(description="All without it")] = None,
    points: Annotated[int, Query(ge=1, le=10_000, description="Most points in all")] = 2000,
    format: Literal["json", "csv"] = "json",
) -> Response:
    """What windows said over time; long ranges are made shorter, to ``points``."""
    first, last = (
        checked(Timestamp, since, "/query/since"),
        checked(Timestamp, until, "/query/until"),
    )
    checked(KeptSegment, segment, "/query/segment")
    with store.read() as unit:
        record = unit.monitors.get(monitor, caller.models)
        which = _classes(record, class_)
        streams = _streams(unit, record, segment)
        most = max(points // max(len(streams), 1), 1)
        if most * max(len(streams), 1) * len(which) * 4 > MOST_SHARES:
            raise InvalidInput.at("/query/class", "is needed: there are too many classes for all")
        columns = [
            thinned(unit.series.columns(id, name, len(record.classes), *_range(first, last)), most)
            for name, id in streams.items()
        ]
    joined = _joined(record, columns, which)
    if format == "csv":
        disposition = {"Content-Disposition": f'attachment; filename="{record.name}.csv"'}
        return Response(_csv(joined), 200, disposition, "text/csv; charset=utf-8")
    return answer(joined)


def _range(since: Any, until: Any) -> tuple[int | None, int | None]:
    return None if since is None else micros(since), None if until is None else micros(until)


def _classes(record: MonitorRecord, name: str | None) -> list[int]:
    """Positions of the classes asked for."""
    if name is None:
        return list(range(len(record.classes)))
    place = Spellings(record.classes).find(name)
    if place is None:
        raise InvalidInput.at("/query/class", f"{name[:60]!r} is not a class of {record.model}")
    return [place]


def _streams(unit: UnitOfWork, record: MonitorRecord, segment: str | None) -> dict[str, int]:
    """Streams of a monitor by segment: all, or the one."""
    streams = dict(unit.series.segments(record.id))
    if segment is None:
        return streams
    (name,) = Spellings(list(streams)).respelled([segment])
    if name not in streams:
        raise InvalidInput.at("/query/segment", f"there is no segment {segment[:60]!r}")
    return {name: streams[name]}


def _joined(
    record: MonitorRecord, found: Sequence[tuple[Columns, Floats]], which: list[int]
) -> JsonObject:
    """All streams as one set of columns."""
    parts = [columns for columns, _ in found]
    segmented = StoredMonitor.read(record.content).segment_by is not None
    shares = _stacked([c.shares for c in parts], (0, len(record.classes), 4))
    names = [record.classes[k] for k in which]
    by_class = {
        of: {name: _numbers(shares[:, k, j]) for name, k in zip(names, which, strict=True)}
        for j, of in enumerate(SHARES)
    }
    segments = [c.segment if segmented else None for c in parts for _ in range(len(c.start))]
    return {
        "monitor": record.shown,
        "classes": names,
        "count": int(sum(counts.sum() for _, counts in found)),
        "time": _times(_stacked([c.start for c in parts])),
        "end": _times(_stacked([c.end for c in parts])),
        "segment": segments,
        "size": _stacked([c.size for c in parts]).tolist(),
        "windows": _stacked([counts for _, counts in found]).astype(np.int64).tolist(),
        "p_value": _numbers(_stacked([c.p_value for c in parts])),
        "level": _numbers(_stacked([c.level for c in parts])),
        "detected": _numbers(_stacked([c.detected for c in parts]), bool),
        "version": _numbers(_stacked([c.version for c in parts]), int),
        **by_class,
    }


def _stacked(parts: list[Any], empty: tuple[int, ...] = (0,)) -> Any:
    return np.concatenate(parts) if parts else np.zeros(empty)


def _numbers(values: Floats, kind: Callable[[float], object] | None = None) -> list[object]:
    """Numbers, of this kind, None for NaN."""
    found = values.tolist() if kind is None else list(map(kind, np.nan_to_num(values)))
    for k in np.flatnonzero(np.isnan(values)):
        found[k] = None
    return found


def _times(micros: Ints) -> list[str]:
    """ISO 8601 in UTC."""
    texts = np.datetime_as_string(micros.astype("datetime64[us]"), unit="us", timezone="UTC")
    return [str(text) for text in texts]


def _csv(joined: JsonObject) -> str:
    """One line for each point and class."""
    plain = ("time", "end", "segment")
    after = ("p_value", "level", "detected", "size", "windows", "version")
    lines = [",".join([*plain, "class", *SHARES, *after])]
    for name in joined["classes"]:
        shares = [joined[of][name] for of in SHARES]
        columns = [joined[of] for of in plain], [joined[of] for of in after]
        cells = zip(*columns[0], *shares, *columns[1], strict=True)
        label = _cell(name)
        for row in cells:
            texts = [_cell(value) for value in row]
            lines.append(",".join([*texts[:3], label, *texts[3:]]))
    return "\n".join(lines) + "\n"


def _cell(value: str | float | bool | None) -> str:
    """Text quoted where it must be, and never a formula to a spreadsheet."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return sheets.quoted(value) if isinstance(value, str) else repr(value)
