"""Alerts: listed, looked at, acknowledged."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from app.http.audit_trail import CallerDep
from app.http.body import Body, only
from app.http.dependencies import Cursor, Limit, StoreDep, answer, encode_cursor, problems
from app.http.idempotency import OnceDep
from app.http.paging import before, identity
from app.intake import parse
from app.monitoring import alerting
from app.openapi import takes
from app.schemas import presenters
from app.schemas.monitors import AlertOut, AlertPage, AlertPatch
from app.schemas.requests import MONITOR_NAME, Timestamp
from app.schemas.validation import checked
from app.stored.alerts import StoredAlert
from models_store.alerts import AlertFilter
from models_store.store import UnitOfWork

router = APIRouter(prefix="/v1/alerts", tags=["monitors"])
AlertId = Annotated[str, Path(description="The id of the alert")]


@router.get(
    "",
    response_model=AlertPage,
    responses=problems(404, 422, 503),
    dependencies=[only("monitor", "state", "since", "until", "cursor", "limit")],
)
def list_alerts(
    store: StoreDep,
    caller: CallerDep,
    monitor: Annotated[str | None, Query(pattern=MONITOR_NAME)] = None,
    state: Literal["open", "acknowledged", "closed"] | None = None,
    since: Annotated[str | None, Query(description="Earliest opened_at, inclusive")] = None,
    until: Annotated[str | None, Query(description="Latest opened_at, exclusive")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response:
    """Alerts, newest first."""
    first = checked(Timestamp, since, "/query/since")
    last = checked(Timestamp, until, "/query/until")
    with store.read() as unit:
        id = None if monitor is None else unit.monitors.get(monitor, caller.models).id
        which = AlertFilter(id, state, first, last, caller.models)
        page = unit.alerts.list(which, before(cursor), limit)
    kept = [StoredAlert.read(record.content) for record in page.items]
    items = [presenters.kept_alert(alert) for alert in kept]
    return answer({"items": items, "next_cursor": encode_cursor(page.next)})


@router.get(
    "/{id}",
    responses={200: {"model": AlertOut}, **problems(404, 422, 503)},
    dependencies=[only()],
)
def get_alert(id: AlertId, store: StoreDep, caller: CallerDep) -> Response:
    """An alert."""
    with store.read() as unit:
        content = unit.alerts.get(identity(id, "alert"), caller.models).content
    return answer(presenters.kept_alert(StoredAlert.read(content)))


@router.patch(
    "/{id}",
    responses={200: {"model": AlertOut}, **problems(400, 404, 409, 413, 415, 422, 503)},
    openapi_extra=takes(AlertPatch),
)
def change_alert(id: AlertId, payload: Body, once: OnceDep, caller: CallerDep) -> Response:
    """Say that somebody has seen an alert, or that it is over; a closed one stays closed."""
    given = parse.envelope(AlertPatch, payload.json())

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        record = unit.alerts.get(identity(id, "alert"), caller.models)
        # Whoever closes windows of the stream may be about to change it too.
        unit.windows.lock(record.stream_id)
        alert = StoredAlert.read(unit.alerts.get(id, caller.models).content)
        alert = _changed(unit, alert, given, caller.name)
        return unit.models.get(record.model).id, answer(presenters.kept_alert(alert))

    return once.write(work)


def _changed(unit: UnitOfWork, alert: StoredAlert, given: AlertPatch, by: str) -> StoredAlert:
    if alert.state == "closed":
        return alert
    change = alerting.closed if given.state == "closed" else alerting.acknowledged
    return change(unit, alert, by, given.note)
