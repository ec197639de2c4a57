"""Alerts: opened by a window, acknowledged by a person, closed by recovery."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from models_store.errors import NotFound
from models_store.monitors import shown
from models_store.paging import newest
from models_store.records import Page
from models_store.tables import alerts, models, monitors

UNDER_WAY = ("open", "acknowledged")


@dataclass(frozen=True)
class AlertRecord:
    """An alert; ``content`` is its JSON form, which holds its state too.

    ``monitor``: what whoever asked calls it; so does the content.
    """

    id: str
    monitor: str
    model: str
    stream_id: int
    state: str
    opened_at: datetime
    content: dict[str, Any]


@dataclass(frozen=True)
class AlertFilter:
    """Which alerts: of a monitor's identity, in a state, a time; only of ``models``."""

    monitor_id: str | None = None
    state: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    models: Collection[str] | None = None


class Alerts:
    """Alerts of monitors."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def open(self, monitor_id: str, stream_id: int, content: dict[str, Any], at: datetime) -> None:
        """A new alert under ``content["id"]``."""
        values = {
            "id": content["id"],
            "monitor_id": monitor_id,
            "stream_id": stream_id,
            "state": content["state"],
            "opened_at": at,
            "content": content,
        }
        self._connection.execute(alerts.insert().values(values))

    def under_way(self, stream_id: int) -> AlertRecord | None:
        """The alert of a stream that is not closed; its stream is locked by whoever asks."""
        mine = _select(None).where(alerts.c.stream_id == stream_id, alerts.c.state.in_(UNDER_WAY))
        row = self._connection.execute(mine).first()
        return None if row is None else _record(row)

    def stream_of(self, id: str, only: Collection[str] | None = None) -> int:
        """The stream that an alert belongs to, or ``NotFound``; to lock before it is changed."""
        return self.get(id, only).stream_id

    def get(self, id: str, only: Collection[str] | None = None) -> AlertRecord:
        """The alert, or ``NotFound``; ``only`` of these models, None for all."""
        row = self._connection.execute(_select(only).where(alerts.c.id == id)).one_or_none()
        if row is None or (only is not None and row.model not in only):
            raise NotFound(f"there is no alert {id}")
        return _record(row)

    def change(self, id: str, content: dict[str, Any]) -> None:
        """Give it another content, and the state in it."""
        mine = alerts.update().where(alerts.c.id == id)
        self._connection.execute(mine.values(state=content["state"], content=content))

    def list(
        self, which: AlertFilter, before: tuple[datetime, str] | None, limit: int
    ) -> Page[AlertRecord]:
        """Alerts that match, newest first, from the one before ``before``."""
        statement, moment = _select(which.models), alerts.c.opened_at
        if which.monitor_id is not None:
            statement = statement.where(alerts.c.monitor_id == which.monitor_id)
        if which.state is not None:
            statement = statement.where(alerts.c.state == which.state)
        if which.since is not None:
            statement = statement.where(moment >= which.since)
        if which.until is not None:
            statement = statement.where(moment < which.until)
        if which.models is not None:
            statement = statement.where(models.c.name.in_(sorted(which.models)))
        return newest(self._connection, statement, alerts, before, limit, _record, "opened_at")


def _select(only: Collection[str] | None) -> sa.Select[Any]:
    return (
        sa.select(alerts, shown(only).label("monitor"), models.c.name.label("model"))
        .join_from(alerts, monitors)
        .join(models, models.c.id == monitors.c.model_id)
    )


def _record(row: sa.Row[Any]) -> AlertRecord:
    content = {**row.content, "monitor": row.monitor}
    return AlertRecord(
        row.id, row.monitor, row.model, row.stream_id, row.state, row.opened_at, content
    )
