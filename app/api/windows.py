"""The windows of a monitor: what became of each, and its rows where they are kept."""

import re
from typing import Annotated, Literal

import numpy as np
from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from app.api.monitors import MonitorName
from app.clock import moment
from app.core.errors import InvalidInput, MethodUnavailable
from app.core.names import Spellings
from app.formats import npy
from app.http.audit_trail import CallerDep
from app.http.body import only
from app.http.dependencies import (
    Cursor,
    Limit,
    StoreDep,
    answer,
    bad_cursor,
    decode_cursor,
    encode_cursor,
    problems,
)
from app.http.pieces import Pieces
from app.monitoring.window_rows import WindowRows
from app.schemas.monitors import WindowItemOut, WindowPageOut
from app.schemas.requests import KeptSegment
from app.schemas.validation import checked
from app.stored.monitors import StoredMonitor
from models_store.errors import NotFound
from models_store.monitors import MonitorRecord
from models_store.store import UnitOfWork
from models_store.windows import WindowPage

router = APIRouter(prefix="/v1/monitors/{monitor}/windows", tags=["monitors"])
WindowId = Annotated[int, Path(ge=1, le=2**62)]


@router.get(
    "",
    response_model=WindowPageOut,
    responses=problems(404, 422, 503),
    dependencies=[only("state", "segment", "cursor", "limit")],
)
def list_windows(
    monitor: MonitorName,
    store: StoreDep,
    caller: CallerDep,
    state: Annotated[Literal["open", "sealed", "closed", "failed"] | None, Query()] = None,
    segment: Annotated[str | None, Query(description="All without it")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response:
    """Windows, the latest begun first; a failed one keeps its rows, and says why it failed."""
    checked(KeptSegment, segment, "/query/segment")
    place = decode_cursor(cursor, 1)
    if place is not None and re.fullmatch("[0-9]{1,18}", place[0]) is None:
        raise bad_cursor()
    with store.read() as unit:
        record = unit.monitors.get(monitor, caller.models)
        before = None if place is None else int(place[0])
        segment = None if segment is None else _known(unit, record, segment)
        page = unit.windows.page(record.id, state, segment, before, limit)
    segmented = StoredMonitor.read(record.content).segment_by is not None
    items = [_item(window, segmented) for window in page.items]
    return answer(WindowPageOut(items=items, next_cursor=encode_cursor(page.next)))


def _known(unit: UnitOfWork, record: MonitorRecord, segment: str) -> str:
    """A segment of the monitor as it is spelled there."""
    known = Spellings(list(unit.series.segments(record.id)))
    if known.find(segment) is None:
        raise InvalidInput.at("/query/segment", f"there is no segment {segment[:60]!r}")
    (name,) = known.respelled([segment])
    return name


@router.get(
    "/{id}/rows",
    responses={
        200: {"content": {npy.MEDIA_TYPE: {}}},
        **problems(404, 409, 422, 503),
    },
    dependencies=[only()],
)
def get_rows(monitor: MonitorName, id: WindowId, store: StoreDep, caller: CallerDep) -> Response:
    """The rows of an open window, or of one that keeps them: posteriors, or counts of outputs."""
    with store.read() as unit:
        record = unit.monitors.get(monitor, caller.models)
        window = unit.windows.get(record.id, id)
        held = WindowRows.of(unit.windows.rows(window.id))
    if held.sketched is not None:
        reason = "they are kept as a histogram, as there are so many"
        raise MethodUnavailable("reading the rows of this window", reason)
    rows = held.rows if held.counts is None else held.counts[None, :]
    if rows is None:
        raise NotFound(f"the rows of window {id} are not kept; make monitors with keep_rows")
    return Pieces(list(npy.encode(np.asarray(rows, np.float64))), 200, None, npy.MEDIA_TYPE)


def _item(window: WindowPage, segmented: bool) -> WindowItemOut:
    return WindowItemOut(
        id=window.id,
        segment=window.segment if segmented else None,
        number=window.number,
        state=window.state,
        start=moment(window.start),
        end=moment(window.end),
        size=window.size,
        estimate=window.estimate_id,
        note=window.note,
    )
