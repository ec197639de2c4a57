"""Models of the kinds that are adapted to a sample, and their adaptations."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from models_store import arrays
from models_store.errors import NotFound
from models_store.records import Page
from models_store.sources import Prepared
from models_store.tables import adaptation_arrays, adaptations, models, versions
from models_store.versions import Versions

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class SourceRecord:
    """An immutable version of a model that is no classifier; its arrays stay in the store."""

    id: int
    model_id: int
    model: str
    kind: str
    classes: tuple[str, ...]
    number: int
    digest: str
    content: dict[str, Any]
    metadata: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True)
class AdaptationRecord:
    """A kept adaptation: its JSON form, and its source."""

    id: str
    content: dict[str, Any]
    source: SourceRecord


class Sources:
    """Versions of the models that are no classifiers."""

    def __init__(self, connection: Connection, every: Versions) -> None:
        self._connection = connection
        self._every = every

    def register(
        self, model: str, source: Prepared, metadata: dict[str, Any], now: datetime
    ) -> tuple[SourceRecord, bool]:
        """Store a source; the version, and whether it is new (False: the content was there)."""
        number, new = self._every.add(model, source, metadata, now)
        return self.get(model, str(number)), new

    def get(self, model: str, selector: str) -> SourceRecord:
        """The version; or ``NotFound``."""
        return self._load(self._every.resolve(model, selector))

    def list(self, model: str, before: int | None, limit: int) -> Page[SourceRecord]:
        """Versions of a model, newest first, from the one before ``before``."""
        numbers = self._every.numbers(model, before, limit + 1)
        items = tuple(self.get(model, str(number)) for number in numbers[:limit])
        return Page(items, (str(items[-1].number),) if len(numbers) > limit else None)

    def arrays(self, record: SourceRecord) -> Arrays:
        """Everything of a version that is an array; ``NotFound`` if it was deleted meanwhile."""
        found = self._every.arrays(record.id)
        if not found:
            raise NotFound(f"version {record.number} of {record.model} was deleted")
        return found

    def of(self, version_id: int) -> SourceRecord:
        """The version of an adaptation."""
        return self._load(version_id)

    def _load(self, version_id: int) -> SourceRecord:
        statement = (
            sa.select(versions, models.c.name.label("model"), models.c.kind, models.c.classes)
            .join_from(versions, models)
            .where(versions.c.id == version_id)
        )
        row = self._connection.execute(statement).one()
        return SourceRecord(
            id=row.id,
            model_id=row.model_id,
            model=row.model,
            kind=row.kind,
            classes=tuple(row.classes),
            number=row.number,
            digest=row.digest,
            content=row.derived,
            metadata=row.metadata,
            created_at=row.created_at,
        )


class Adaptations:
    """Kept adaptations; they never change."""

    def __init__(self, connection: Connection, sources: Sources) -> None:
        self._connection = connection
        self._sources = sources

    def add(
        self, version_id: int, now: datetime, content: dict[str, Any], kept: Mapping[str, bytes]
    ) -> None:
        """Keep an adaptation under ``content["id"]``, with encoded arrays."""
        row = {
            "id": content["id"],
            "version_id": version_id,
            "created_at": now,
            "content": content,
        }
        try:
            self._connection.execute(adaptations.insert().values(row))
        except sa.exc.IntegrityError:
            raise NotFound("the model was deleted meanwhile") from None
        rows = [
            {"adaptation_id": content["id"], "name": name, "content": encoded}
            for name, encoded in kept.items()
        ]
        if rows:
            self._connection.execute(adaptation_arrays.insert(), rows)

    def get(self, adaptation_id: str, only: Collection[str] | None = None) -> AdaptationRecord:
        """The adaptation, or ``NotFound``; ``only`` of these models, None for all."""
        statement = (
            sa.select(adaptations, models.c.name.label("model"))
            .join_from(adaptations, versions)
            .join(models, models.c.id == versions.c.model_id)
            .where(adaptations.c.id == adaptation_id)
        )
        row = self._connection.execute(statement).one_or_none()
        if row is None or (only is not None and row.model not in only):
            raise NotFound(f"there is no adaptation {adaptation_id}")
        return AdaptationRecord(row.id, row.content, self._sources.of(row.version_id))

    def arrays(self, adaptation_id: str) -> Arrays:
        """What an adaptation predicts with, beside its JSON form."""
        own = adaptation_arrays.c.adaptation_id == adaptation_id
        found = sa.select(adaptation_arrays.c.name, adaptation_arrays.c.content).where(own)
        rows = self._connection.execute(found).all()
        return {name: arrays.decode(content) for name, content in rows}
