"""Monitors by name: what is watched, and how.

A name belongs to one model, so that nobody learns from a name what other models have. A caller says
the name alone: it means, of the monitors that he may see, the one that was made first. Any other of
that name is shown to him as ``model:name``, which always means the one.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from models_store.errors import AlreadyExists, NotFound, OtherInput
from models_store.records import Page
from models_store.tables import models, monitors

Only = Collection[str] | None
"""The models that exist for a caller, None for all."""


@dataclass(frozen=True)
class MonitorRecord:
    """A monitor; ``content`` is its JSON form, ``takes`` what its rows are, once there are some.

    ``name``: within its model; ``shown``: what whoever asked calls it.
    """

    id: str
    name: str
    shown: str
    model: str
    model_id: int
    classes: tuple[str, ...]
    takes: str | None
    content: dict[str, Any]
    created_at: datetime
    updated_at: datetime


def shown(only: Only) -> sa.ColumnElement[str]:
    """What whoever sees these models calls a monitor, in a statement on monitors and models."""
    first, its = monitors.alias(), models.alias()
    earlier = sa.or_(
        first.c.created_at < monitors.c.created_at,
        sa.and_(first.c.created_at == monitors.c.created_at, first.c.id < monitors.c.id),
    )
    taken = sa.select(sa.literal(1)).select_from(first.join(its, its.c.id == first.c.model_id))
    taken = taken.where(first.c.name == monitors.c.name, earlier).correlate(monitors)
    if only is not None:
        taken = taken.where(its.c.name.in_(sorted(only)))
    return sa.case((sa.exists(taken), models.c.name + ":" + monitors.c.name), else_=monitors.c.name)


class Monitors:
    """Monitors, each of one model, which takes them with it when it goes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(
        self,
        id: str,
        name: str,
        model_id: int,
        content: dict[str, Any],
        now: datetime,
        only: Only = None,
    ) -> MonitorRecord:
        """Make one, or ``AlreadyExists`` where there is one of its name among those of ``only``."""
        taken = AlreadyExists(f"a monitor named {name} exists; choose another name")
        if self._named(name, only) is not None:
            raise taken
        statement = monitors.insert().values(
            id=id, name=name, model_id=model_id, content=content, created_at=now, updated_at=now
        )
        try:
            self._connection.execute(statement)
        except sa.exc.IntegrityError:
            raise taken from None
        return self.by_id(id, only)

    def get(self, name: str, only: Only = None) -> MonitorRecord:
        """The monitor that is called so, or ``NotFound``; ``only`` of these models."""
        row = self._named(name, only)
        if row is None:
            raise NotFound(f"there is no monitor named {name}")
        return _record(row)

    def _named(self, name: str, only: Only) -> sa.Row[Any] | None:
        model, _, own = name.rpartition(":")
        statement = _select(only).where(monitors.c.name == own)
        if model:
            statement = statement.where(models.c.name == model)
        first = statement.order_by(monitors.c.created_at, monitors.c.id).limit(1)
        return self._connection.execute(first).one_or_none()

    def by_id(self, id: str, only: Only = None) -> MonitorRecord:
        """The monitor of this identity, or ``NotFound``, as whoever sees ``only`` calls it."""
        row = self._connection.execute(_select(only).where(monitors.c.id == id)).one_or_none()
        if row is None:
            raise NotFound("the monitor was deleted meanwhile")
        return _record(row)

    def list(
        self,
        after: str | None,
        limit: int,
        model: str | None = None,
        only: Only = None,
    ) -> Page[MonitorRecord]:
        """Monitors by what they are called, from the one after ``after``; of a model."""
        called = shown(only)
        statement = _select(only).order_by(called).limit(limit + 1)
        if after is not None:
            statement = statement.where(called > after)
        if model is not None:
            statement = statement.where(models.c.name == model)
        rows = self._connection.execute(statement).all()
        items = tuple(_record(row) for row in rows[:limit])
        return Page(items, (items[-1].shown,) if len(rows) > limit else None)

    def change(
        self, monitor: MonitorRecord, content: dict[str, Any], now: datetime
    ) -> MonitorRecord:
        """Give it another content."""
        statement = monitors.update().where(monitors.c.id == monitor.id)
        self._connection.execute(statement.values(content=content, updated_at=now))
        return replace(monitor, content=content, updated_at=now)

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

    def delete(self, monitor: MonitorRecord) -> None:
        """Delete it, with its windows and alerts; estimates stay in the history."""
        self._connection.execute(monitors.delete().where(monitors.c.id == monitor.id))


def _select(only: Only) -> sa.Select[Any]:
    statement = sa.select(
        monitors,
        shown(only).label("shown"),
        models.c.name.label("model"),
        models.c.classes.label("classes"),
    ).join_from(monitors, models)
    return statement if only is None else statement.where(models.c.name.in_(sorted(only)))


def _record(row: sa.Row[Any]) -> MonitorRecord:
    return MonitorRecord(
        id=row.id,
        name=row.name,
        shown=row.shown,
        model=row.model,
        model_id=row.model_id,
        classes=tuple(row.classes),
        takes=row.takes,
        content=row.content,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
