"""What late truth said of estimates."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from models_store.errors import NotFound
from models_store.paging import newest
from models_store.records import EvaluationRecord, Page
from models_store.tables import evaluations, models, versions


@dataclass(frozen=True)
class EvaluationFilter:
    """Which evaluations: of a model, a version, an estimate; only of ``models``, None for all."""

    model: str | None = None
    version: int | None = None
    estimate: str | None = None
    models: Collection[str] | None = None


class Evaluations:
    """Kept evaluations; they never change."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(
        self, version_id: int, estimate_id: str | None, now: datetime, content: dict[str, Any]
    ) -> None:
        """Keep an evaluation under ``content["id"]``."""
        row = {
            "id": content["id"],
            "version_id": version_id,
            "estimate_id": estimate_id,
            "created_at": now,
            "content": content,
        }
        try:
            self._connection.execute(evaluations.insert().values(row))
        except sa.exc.IntegrityError:
            raise NotFound("the model was deleted meanwhile") from None

    def get(self, evaluation_id: str, only: Collection[str] | None = None) -> EvaluationRecord:
        """The evaluation, or ``NotFound``; ``only`` of these models, None for all."""
        statement = _SELECT.where(evaluations.c.id == evaluation_id)
        row = self._connection.execute(statement).one_or_none()
        if row is None or (only is not None and row.model not in only):
            raise NotFound(f"there is no evaluation {evaluation_id}")
        return _record(row)

    def list(
        self, which: EvaluationFilter, before: tuple[datetime, str] | None, limit: int
    ) -> Page[EvaluationRecord]:
        """Evaluations that match, newest first, from the one before ``before``."""
        statement = _SELECT
        if which.models is not None:
            statement = statement.where(models.c.name.in_(sorted(which.models)))
        if which.model is not None:
            statement = statement.where(models.c.name == which.model)
        if which.version is not None:
            statement = statement.where(versions.c.number == which.version)
        if which.estimate is not None:
            statement = statement.where(evaluations.c.estimate_id == which.estimate)
        return newest(self._connection, statement, evaluations, before, limit, _record)


_SELECT = (
    sa.select(evaluations, models.c.name.label("model"))
    .join_from(evaluations, versions)
    .join(models, models.c.id == versions.c.model_id)
)


def _record(row: sa.Row[Any]) -> EvaluationRecord:
    return EvaluationRecord(row.id, row.created_at, row.content)
