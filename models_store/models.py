"""Registered models."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from models_store.errors import AlreadyExists, NotFound, StillInUse
from models_store.records import ModelRecord, Page
from models_store.tables import adaptations, estimates, evaluations, models, versions


class Models:
    """Models by name."""

    def __init__(self, connection: Connection, changed: set[str]) -> None:
        self._connection = connection
        self._changed = changed

    def create(
        self, name: str, kind: str, classes: Sequence[str], description: str, now: datetime
    ) -> ModelRecord:
        """Register a name; ``AlreadyExists`` if it is taken."""
        statement = models.insert().values(
            name=name,
            kind=kind,
            classes=list(classes),
            description=description,
            created_at=now,
            updated_at=now,
        )
        try:
            self._connection.execute(statement)
        except sa.exc.IntegrityError:
            raise AlreadyExists(f"a model named {name} exists; choose another name") from None
        return self.get(name)

    def get(self, name: str) -> ModelRecord:
        """The model, or ``NotFound``."""
        row = self._connection.execute(_SELECT.where(models.c.name == name)).one_or_none()
        if row is None:
            raise NotFound(f"there is no model named {name}")
        return _record(row)

    def lock(self, name: str) -> ModelRecord:
        """The model, locked against other writers until this transaction ends, to change it."""
        statement = sa.select(models.c.id).where(models.c.name == name).with_for_update()
        if self._connection.execute(statement).one_or_none() is None:
            raise NotFound(f"there is no model named {name}")
        self._changed.add(name)
        return self.get(name)

    def list(
        self, after: str | None, limit: int, only: Collection[str] | None = None
    ) -> Page[ModelRecord]:
        """Models by name, from the one after ``after``; ``only`` these, None for all."""
        statement = _SELECT.order_by(models.c.name).limit(limit + 1)
        if after is not None:
            statement = statement.where(models.c.name > after)
        if only is not None:
            statement = statement.where(models.c.name.in_(sorted(only)))
        rows = self._connection.execute(statement).all()
        items = tuple(_record(row) for row in rows[:limit])
        return Page(items, (items[-1].name,) if len(rows) > limit else None)

    def describe(self, name: str, description: str, now: datetime) -> ModelRecord:
        """Change the description."""
        statement = models.update().where(models.c.name == name)
        self._connection.execute(statement.values(description=description, updated_at=now))
        return self.get(name)

    def delete(self, name: str, force: bool) -> None:
        """Delete the model with its versions; what was kept of it too, but only with ``force``."""
        model = self.lock(name)
        # An estimate that is being written holds its version: wait for it, then count.
        own = sa.select(versions.c.id).where(versions.c.model_id == model.id).with_for_update()
        self._connection.execute(own).all()
        count = sum(
            self._connection.execute(
                sa.select(sa.func.count())
                .select_from(table.join(versions, versions.c.id == table.c.version_id))
                .where(versions.c.model_id == model.id)
            ).scalar_one()
            for table in (estimates, evaluations, adaptations)
        )
        if count and not force:
            raise StillInUse(
                f"{name} has {count} kept estimates, evaluations and adaptations; delete with "
                "?force=true to lose them"
            )
        self._connection.execute(models.delete().where(models.c.id == model.id))


_COUNT = (
    sa.select(sa.func.count())
    .select_from(versions)
    .where(versions.c.model_id == models.c.id)
    .scalar_subquery()
)
_SELECT = sa.select(models, _COUNT.label("versions"))


def _record(row: sa.Row[Any]) -> ModelRecord:
    return ModelRecord(
        id=row.id,
        name=row.name,
        kind=row.kind,
        classes=tuple(row.classes),
        description=row.description,
        created_at=row.created_at,
        updated_at=row.updated_at,
        versions=row.versions,
    )
