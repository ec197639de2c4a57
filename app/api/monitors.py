"""Monitors as resources: made, listed, changed, deleted."""

import re
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response

from app.clock import now
from app.core.errors import MethodUnavailable
from app.core.prevalence.source import SourceModel
from app.core.prevalence.watching.budget import LARGEST
from app.core.warnings import Warning
from app.estimation import availability
from app.estimation.methods import canonical
from app.http.audit_trail import CallerDep, TrailDep, seen
from app.http.body import Body, only
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
from app.http.idempotency import OnceDep
from app.intake import parse
from app.monitoring import levels
from app.monitoring.specification import ByRows, Spec
from app.monitoring.window_tests import advice
from app.openapi import takes
from app.schemas import presenters
from app.schemas.monitors import (
    AlertSpecIn,
    AlertSpecOut,
    MonitorIn,
    MonitorOut,
    MonitorPage,
    MonitorPatch,
    WindowOut,
)
from app.schemas.requests import MONITOR_NAME, NAME
from app.stored.monitors import StoredBudget, StoredMonitor, StoredWindow
from models_store.errors import NotFound, OtherKind
from models_store.monitors import MonitorRecord
from models_store.store import Store, UnitOfWork

router = APIRouter(prefix="/v1/monitors", tags=["monitors"])
UNSUITABLE = ("kmm-gaussian", "kmm-energy", "rffm", "em-stop", "cde")
"""Methods that need more of the rows than is kept of a window."""


async def _name(
    monitor: Annotated[str, Path(description="The monitor's name, or model:name")],
) -> str:
    if re.fullmatch(MONITOR_NAME, monitor) is None:
        raise NotFound(f"{monitor[:80]!r} cannot be a monitor's name; names match {MONITOR_NAME}")
    return monitor


MonitorName = Annotated[str, Depends(_name)]


@router.post(
    "",
    status_code=201,
    responses={201: {"model": MonitorOut}, **problems(400, 404, 409, 413, 415, 422, 503)},
    openapi_extra=takes(MonitorIn),
)
def create_monitor(payload: Body, store: StoreDep, once: OnceDep, caller: CallerDep) -> Response:
    """Watch a stream of rows; the answer says at which level each window will be tested."""
    given = parse.envelope(MonitorIn, payload.json())
    seen(caller, given.model)
    once.require_new()
    kept = _kept(given)
    source = _source(store, given.model, kept.version)
    _require_method(source, given.method)

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        model = unit.models.get(given.model)
        made = (uuid4().hex, given.name, model.id, kept.written(), now())
        record = unit.monitors.add(*made, caller.models)
        shown = described(unit, record, source)
        return model.id, answer(shown, 201, {"Location": f"/v1/monitors/{record.shown}"})

    return once.commit(work)


@router.get(
    "",
    response_model=MonitorPage,
    responses=problems(404, 422, 503),
    dependencies=[only("model", "cursor", "limit")],
)
def list_monitors(
    store: StoreDep,
    caller: CallerDep,
    model: Annotated[str | None, Query(pattern=NAME)] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response:
    """Monitors by name."""
    place = decode_cursor(cursor, 1)
    if place is not None and re.fullmatch(MONITOR_NAME, place[0]) is None:
        raise bad_cursor()
    with store.read() as unit:
        if model is not None:
            seen(caller, model)
            unit.models.get(model)
        after = None if place is None else place[0]
        page = unit.monitors.list(after, limit, model, caller.models)
        items = [described(unit, record, None) for record in page.items]
    return answer(MonitorPage(items=items, next_cursor=encode_cursor(page.next)))


@router.get(
    "/{monitor}",
    responses={200: {"model": MonitorOut}, **problems(404, 422, 503)},
    dependencies=[only()],
)
def get_monitor(monitor: MonitorName, store: StoreDep, caller: CallerDep) -> Response:
    """A monitor, and the level of its windows as things stand."""
    with store.read() as unit:
        record = unit.monitors.get(monitor, caller.models)
    try:
        source = _source(store, record.model, StoredMonitor.read(record.content).version)
    except NotFound:
        source = None
    with store.read() as unit:
        return answer(described(unit, record, source))


@router.patch(
    "/{monitor}",
    responses={200: {"model": MonitorOut}, **problems(400, 404, 409, 413, 415, 422, 503)},
    openapi_extra=takes(MonitorPatch),
)
def change_monitor(
    monitor: MonitorName, payload: Body, once: OnceDep, caller: CallerDep
) -> Response:
    """Change what alarms, or the description; windows that are closed stay as they are."""
    sent = payload.json()
    given = parse.envelope(MonitorPatch, sent)

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        record = unit.monitors.get(monitor, caller.models)
        kept = StoredMonitor.read(record.content)
        if "alert" in sent:
            kept = kept.model_copy(update={"alert": _budget(given.alert)})
        if given.description is not None:
            kept = kept.model_copy(update={"description": given.description})
        record = unit.monitors.change(record, kept.written(), now())
        return record.model_id, answer(described(unit, record, None))

    return once.write(work)


@router.delete(
    "/{monitor}",
    status_code=204,
    responses=problems(404, 422, 503),
    dependencies=[only()],
)
def delete_monitor(
    monitor: MonitorName, store: StoreDep, caller: CallerDep, trail: TrailDep
) -> None:
    """Delete a monitor with its windows and alerts; its estimates stay in the history."""
    with store.write() as unit:
        unit.monitors.delete(unit.monitors.get(monitor, caller.models))
        trail.note(unit)


def _kept(given: MonitorIn) -> StoredMonitor:
    """What is kept of a monitor, with every default filled in."""
    selector = "latest" if given.version is None else str(given.version)
    if given.alias is not None:
        selector = f"@{given.alias}"
    window = given.window.model_dump()
    if given.window.duration is not None:
        window["grace"] = given.window.grace or "PT0S"
        window["minimum_rows"] = given.window.minimum_rows or 1
    return StoredMonitor(
        version=selector,
        method=given.method,
        window=StoredWindow(**window),
        segment_by=given.segment_by,
        alert=_budget(given.alert),
        interval_level=given.interval_level,
        keep_rows=given.keep_rows,
        description=given.description,
    )


def _budget(given: AlertSpecIn | None) -> StoredBudget | None:
    return None if given is None else StoredBudget(**given.model_dump())


def _source(store: Store, model: str, selector: str) -> SourceModel:
    with store.read() as unit:
        if unit.models.get(model).kind != "classifier":
            raise OtherKind(f"{model} is no classifier; only classifiers are watched")
    return store.version(model, selector).source


def _require_method(source: SourceModel, method: str) -> None:
    """``InvalidInput`` or ``MethodUnavailable`` for what no window could be estimated with."""
    if method == "auto":
        return
    if method in UNSUITABLE:
        reason = "it needs more of the rows than is kept of a window; choose mle or acc-qp"
        raise MethodUnavailable(method, reason)
    known = {a.method: a.reason for a in availability(source)}
    lacking = known[canonical(method)]
    if lacking is not None:
        raise MethodUnavailable(method, lacking)


def described(unit: UnitOfWork, record: MonitorRecord, source: SourceModel | None) -> MonitorOut:
    """A monitor; with the ``source`` of its version, what to say of its budget too."""
    kept, segments = StoredMonitor.read(record.content), unit.windows.count(record.id)
    alert, notes = _alert(unit, record, kept, segments, source)
    return MonitorOut(
        name=record.shown,
        model=record.model,
        version=kept.version,
        method=kept.method,
        window=WindowOut.model_validate(kept.window),
        segment_by=kept.segment_by,
        alert=alert,
        interval_level=kept.interval_level,
        keep_rows=kept.keep_rows,
        description=kept.description,
        takes=None if record.takes is None else record.takes.partition(":")[0],
        segments=segments,
        created_at=record.created_at,
        updated_at=record.updated_at,
        warnings=presenters.warnings(notes),
    )


def _alert(
    unit: UnitOfWork,
    record: MonitorRecord,
    kept: StoredMonitor,
    segments: int,
    source: SourceModel | None,
) -> tuple[AlertSpecOut | None, tuple[Warning, ...]]:
    """The budget with the level that follows, and what to say of it."""
    spec = Spec.of(kept)
    if spec.alert is None or kept.alert is None:
        return None, ()
    spans = []
    if isinstance(spec.window, ByRows):
        spans = unit.windows.spans_of_monitor(record.id, levels.PACED_BY)
    level = levels.of(spec.alert, spec.window, segments, spans)
    notes: tuple[Warning, ...] = ()
    if source is not None:
        outputs = record.takes is not None and record.takes != "posteriors"
        rows = _usual_rows(unit, record, spec)
        notes = advice(source, outputs, rows, level.value or LARGEST)
    shown = AlertSpecOut(
        **vars(kept.alert),
        level=level.value,
        windows_per_period=level.windows,
        segments=max(segments, 1),
    )
    return shown, notes


def _usual_rows(unit: UnitOfWork, record: MonitorRecord, spec: Spec) -> int | None:
    """Rows of a window, as far as anybody can tell."""
    if isinstance(spec.window, ByRows):
        return spec.window.rows
    known = unit.windows.usual_size(record.id, levels.PACED_BY)
    if known is None and spec.window.minimum_rows > 1:
        return spec.window.minimum_rows
    return known
