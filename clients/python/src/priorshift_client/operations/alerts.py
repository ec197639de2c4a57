"""Alerts: listed, looked at, acknowledged, closed."""

from datetime import datetime

from priorshift_client.bodies import json_body
from priorshift_client.calls import Call, Listing, change, get, into, place, query
from priorshift_client.monitoring import Alert, AlertState, Monitor
from priorshift_client.operations.models import PAGE


def list_alerts(
    monitor: Monitor | str | None = None,
    *,
    state: AlertState | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    limit: int = PAGE,
) -> Listing[Alert]:
    """Alerts by when they opened, newest first; ``until`` is exclusive, ``limit`` is of a page."""
    name = monitor.name if isinstance(monitor, Monitor) else monitor
    which = query(monitor=name, state=state, since=since, until=until, limit=limit)
    return Listing(place("alerts"), Alert, which)


def get_alert(id: str) -> Call[Alert]:
    """An alert."""
    return get(place("alerts", id), into(Alert))


def acknowledge(alert: Alert | str, note: str = "") -> Call[Alert]:
    """Say that somebody looks into it, and what they make of it; a closed one stays closed."""
    return _change(alert, "acknowledged", note)


def close(alert: Alert | str, note: str = "") -> Call[Alert]:
    """Say that it is over."""
    return _change(alert, "closed", note)


def _change(alert: Alert | str, state: AlertState, note: str) -> Call[Alert]:
    id = alert.id if isinstance(alert, Alert) else alert
    body = json_body({"state": state, "note": note})
    return change("PATCH", place("alerts", id), body, into(Alert))
