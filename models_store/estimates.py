"""The history of estimates."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from app.core.names import spellings
from models_store.errors import NotFound
from models_store.paging import newest
from models_store.records import EstimateRecord, Page
from models_store.tables import estimate_segments, estimates, models, versions


@dataclass(frozen=True)
class Filter:
    """Which estimates: of a model, a version, a time (since ≤ moment < until), segments.

    Only of ``models``, None for all.
    """

    model: str | None = None
    version: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    segment: Mapping[str, str] = field(default_factory=dict)
    models: Collection[str] | None = None


class Estimates:
    """Kept estimates; they never change."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(
        self,
        version_id: int,
        moment: datetime,
        created_at: datetime,
        segment: Mapping[str, str],
        content: dict[str, Any],
    ) -> None:
        """Keep an estimate under ``content["id"]``."""
        row = {
            "id": content["id"],
            "version_id": version_id,
            "moment": moment,
            "created_at": created_at,
            "content": content,
        }
        try:
            self._connection.execute(estimates.insert().values(row))
        except sa.exc.IntegrityError:
            raise NotFound("the model was deleted meanwhile") from None
        labels = [
            {"estimate_id": content["id"], "key": key, "value": value}
            for key, value in segment.items()
        ]
        if labels:
            self._connection.execute(estimate_segments.insert(), labels)

    def get(self, estimate_id: str, only: Collection[str] | None = None) -> EstimateRecord:
        """The estimate, or ``NotFound``; ``only`` of these models, None for all."""
        row = self._connection.execute(_SELECT.where(estimates.c.id == estimate_id)).one_or_none()
        if row is None or (only is not None and row.model not in only):
            raise NotFound(f"there is no estimate {estimate_id}")
        return _record(row)

    def any_before(self, oldest: datetime) -> bool:
        """Whether there are estimates made before ``oldest``."""
        old = sa.select(sa.literal(1)).where(estimates.c.created_at < oldest).limit(1)
        return self._connection.execute(old).one_or_none() is not None

    def prune(self, oldest: datetime, most: int) -> int:
        """Drop estimates made before ``oldest``, with their evaluations, ``most`` at once."""
        created_at = estimates.c.created_at
        old = sa.select(estimates.c.id).where(created_at < oldest).order_by(created_at)
        statement = estimates.delete().where(estimates.c.id.in_(old.limit(most)))
        return self._connection.execute(statement).rowcount

    def list(
        self, which: Filter, before: tuple[datetime, str] | None, limit: int
    ) -> Page[EstimateRecord]:
        """Estimates that match, newest moment first, from the one before ``before``."""
        statement = _SELECT
        for condition in _conditions(which):
            statement = statement.where(condition)
        return newest(self._connection, statement, estimates, before, limit, _record, "moment")


def _conditions(which: Filter) -> list[sa.ColumnElement[bool]]:
    conditions: list[sa.ColumnElement[bool]] = []
    if which.model is not None:
        conditions.append(models.c.name == which.model)
    if which.models is not None:
        conditions.append(models.c.name.in_(sorted(which.models)))
    if which.version is not None:
        conditions.append(versions.c.number == which.version)
    if which.since is not None:
        conditions.append(estimates.c.moment >= which.since)
    if which.until is not None:
        conditions.append(estimates.c.moment < which.until)
    for key, value in which.segment.items():
        labelled = sa.exists().where(
            estimate_segments.c.estimate_id == estimates.c.id,
            estimate_segments.c.key == key,
            estimate_segments.c.value.in_(spellings(value)),
        )
        conditions.append(labelled)
    return conditions


_SELECT = (
    sa.select(estimates, models.c.name.label("model"), versions.c.number.label("version"))
    .join_from(estimates, versions)
    .join(models, models.c.id == versions.c.model_id)
)


def _record(row: sa.Row[Any]) -> EstimateRecord:
    return EstimateRecord(row.id, row.model, row.version, row.moment, row.content)
