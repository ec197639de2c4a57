"""Monitors by name: what is watched, and how."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from models_store.errors import AlreadyExists, NotFound, OtherInput
from models_store.records import Page
from models_store.tables import models, monitors


@dataclass(frozen=True)
class MonitorRecord:
    """A monitor; ``content`` is its JSON form, ``takes`` what its rows are, once there are some."""

    id: str
    name: str
    model: str
    model_id: int
    classes: tuple[str, ...]
    takes: str | None
    content: dict[str, Any]
    created_at: datetime
    updated_at: datetime


class Monitors:
    """Monitors, each of one model, which takes them with it when it goes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(
        self, id: str, name: str, model_id: int, content: dict[str, Any], now: datetime
    ) -> MonitorRecord:
        """Make one, or ``AlreadyExists``."""
        statement = monitors.insert().values(
            id=id, name=name, model_id=model_id, content=content, created_at=now, updated_at=now
        )
        try:
            self._connection.execute(statement)
        except sa.exc.IntegrityError:
            raise AlreadyExists(f"a monitor named {name} exists; choose another name") from None
        return self.get(name)

    def get(self, name: str, only: Collection[str] | None = None) -> MonitorRecord:
        """The monitor, or ``NotFound``; ``only`` of these models, None for all."""
        row = self._connection.execute(_SELECT.where(monitors.c.name == name)).one_or_none()
        if row is None or (only is not None and row.model not in only):
            raise NotFound(f"there is no monitor named {name}")
        return _record(row)

    def by_id(self, id: str) -> MonitorRecord:
        """The monitor of this identity, or ``NotFound``."""
        row = self._connection.execute(_SELECT.where(monitors.c.id == id)).one_or_none()
        if row is None:
            raise NotFound("the monitor was deleted meanwhile")
        return _record(row)

    def list(
        self,
        after: str | None,
        limit: int,
        model: str | None = None,
        only: Collection[str] | None = None,
    ) -> Page[MonitorRecord]:
        """Monitors by name, from the one after ``after``; of a model, ``only`` of these."""
        statement = _SELECT.order_by(monitors.c.name).limit(limit + 1)
        if after is not None:
            statement = statement.where(monitors.c.name > after)
        if model is not None:
            statement = statement.where(models.c.name == model)
        if only is not None:
            statement = statement.where(models.c.name.in_(sorted(only)))
        rows = self._connection.execute(statement).all()
        items = tuple(_record(row) for row in rows[:limit])
        return Page(items, (items[-1].name,) if len(rows) > limit else None)

    def change(self, name: str, content: dict[str, Any], now: datetime) -> MonitorRecord:
        """Give it another content."""
        statement = monitors.update().where(monitors.c.name == name)
        self._connection.execute(statement.values(content=content, updated_at=now))
        return self.get(name)

    def settle(self, monitor: MonitorRecord, takes: str) -> None:
        """What its rows are, from the first on; ``OtherInput`` for anything else."""
        if monitor.takes == takes:
            return
        mine = monitors.update().where(monitors.c.id == monitor.id, monitors.c.takes.is_(None))
        if self._connection.execute(mine.values(takes=takes)).rowcount == 0:
            found = self.by_id(monitor.id).takes or ""
            if found != takes:
                held, sent = found.partition(":")[0], takes.partition(":")[0]
                other = "outputs of other names" if held == sent else sent
                raise OtherInput(
                    f"the windows of {monitor.name} hold {held}, which cannot be joined with "
                    f"{other}; make another monitor for them"
                )

    def delete(self, name: str) -> None:
        """Delete it, with its windows and alerts; estimates stay in the history."""
        self._connection.execute(monitors.delete().where(monitors.c.name == name))


_SELECT = sa.select(
    monitors, models.c.name.label("model"), models.c.classes.label("classes")
).join_from(monitors, models)


def _record(row: sa.Row[Any]) -> MonitorRecord:
    return MonitorRecord(
        id=row.id,
        name=row.name,
        model=row.model,
        model_id=row.model_id,
        classes=tuple(row.classes),
        takes=row.takes,
        content=row.content,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
