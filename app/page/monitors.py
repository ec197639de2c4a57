"""A monitor: its windows over time, what alarmed, and how much alarm was agreed upon."""

from collections.abc import Mapping, Sequence

import numpy as np
from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.monitors import MonitorName, described
from app.clock import micros, now, rfc3339
from app.core.errors import InvalidInput
from app.http.audit_trail import CallerDep
from app.http.dependencies import StoreDep
from app.monitoring.thinning import thinned
from app.page.render import page
from app.page.selection import RANGES, Choice, ChoiceDep
from app.page.series import ROWS, of_windows
from app.page.watching import state_of
from app.stored.alerts import StoredAlert
from models_store.alerts import AlertFilter
from models_store.monitors import MonitorRecord
from models_store.series import Columns
from models_store.store import UnitOfWork

POINTS = 1_000
ALERTS = 20
router = APIRouter(include_in_schema=False)


@router.get("/monitors/{monitor}")
def monitor_page(
    monitor: MonitorName, request: Request, store: StoreDep, caller: CallerDep, choice: ChoiceDep
) -> Response:
    """A monitor."""
    with store.read() as unit:
        record = unit.monitors.get(monitor, caller.models)
        about = described(unit, record, None)
        found = unit.alerts.list(AlertFilter(record.id), None, ALERTS).items
        alerts = [StoredAlert.read(alert.content) for alert in found]
        streams = unit.series.segments(record.id)
        segment = _segment(choice, streams, alerts)
        series = None if segment is None else _columns(unit, record, streams[segment], choice)
        last = None if segment is None else _last(unit, record, segment, streams[segment])
    shown = choice.among(record.classes, _first(record, last))
    return page(
        request,
        "monitor.html",
        monitor=about,
        classes=record.classes,
        alerts=alerts,
        segments=sorted(streams) if about.segment_by is not None else [],
        segment=segment or "",
        choice=choice,
        ranges=RANGES,
        shown=shown,
        series=None
        if series is None
        else of_windows(series[0], record.classes, shown, _alarms(alerts, segment), series[1]),
        any_kept=last is not None,
        told=state_of(alerts, last is not None),
        may=caller.may("estimate"),
        csv=_csv(choice, shown, segment, about.segment_by is not None),
        at=now(),
    )


def _segment(
    choice: Choice, streams: Mapping[str, int], alerts: Sequence[StoredAlert]
) -> str | None:
    """The one asked for, else the one that alarmed last, else the first; None of none."""
    if choice.segment:
        if choice.segment not in streams:
            raise InvalidInput.at("/query/segment", "is not a segment of this monitor")
        return choice.segment
    under_way = [a.segment or "" for a in alerts if a.state != "closed"]
    return next((name for name in [*under_way, *streams] if name in streams), None)


def _columns(
    unit: UnitOfWork, record: MonitorRecord, stream: int, choice: Choice
) -> tuple[Columns, Mapping[int, str]]:
    """The points, and the estimates behind those of the table that are one window each."""
    since, until = choice.span()
    span = (None if since is None else micros(since), None if until is None else micros(until))
    found = unit.series.columns(stream, "", len(record.classes), *span)
    points, behind = thinned(found, POINTS)
    alone = [] if (behind > 1).any() else points.start[-ROWS:].tolist()
    return points, unit.windows.estimates(stream, alone)


def _last(unit: UnitOfWork, record: MonitorRecord, segment: str, stream: int) -> Columns | None:
    """The newest window, whatever the range; None before the first is closed."""
    found = unit.series.newest(stream, segment, len(record.classes), 1)
    return found if len(found.start) else None


def _first(record: MonitorRecord, last: Columns | None) -> Sequence[str]:
    """The class that moved most in the newest window."""
    if last is None or np.isnan(last.shares).all():
        return record.classes[:1]
    estimate, source = last.shares[-1, :, 0], last.shares[-1, :, 3]
    change = np.round(np.nan_to_num(np.abs(estimate - source)), 9)
    best = sorted(range(len(change)), key=lambda k: (-change[k], source[k]))
    return [record.classes[best[0]]]


def _alarms(alerts: Sequence[StoredAlert], segment: str | None) -> list[str]:
    """When alerts of a segment were opened: the starts of their windows."""
    return [rfc3339(a.start) for a in alerts if (a.segment or "") == (segment or "")]


def _csv(
    choice: Choice, shown: Sequence[str], segment: str | None, segmented: bool
) -> dict[str, str]:
    """The query of the same numbers as CSV."""
    since, until = choice.span()
    query = {"format": "csv"}
    if len(shown) == 1:
        query["class"] = shown[0]
    if segmented and segment:
        query["segment"] = segment
    if since is not None:
        query["since"] = since.isoformat()
    if until is not None:
        query["until"] = until.isoformat()
    return query
