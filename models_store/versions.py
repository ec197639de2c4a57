"""Immutable versions of a model, content-addressed, and the cache of loaded ones."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from app.core.arrays import Codes, Floats
from app.core.prevalence.matching.version import Exact
from app.core.prevalence.source import ValidationSet
from models_store import arrays, matchings, sources, trainings
from models_store.cache import Cache
from models_store.engine import WRITING
from models_store.errors import NotFound, OtherKind, Unavailable
from models_store.models import Models
from models_store.records import Page, VersionRecord
from models_store.sources import Prepared
from models_store.tables import aliases, models, version_arrays, versions

CLASSIFIER = "classifier"


class VersionCache(Cache[int, VersionRecord]):
    """Loaded versions by id."""

    def put(self, record: VersionRecord) -> None:
        """Keep a version."""
        self.add(record.id, record, _size(record))


def _size(record: VersionRecord) -> int:
    source = record.source
    cells = 0 if source.confusion is None else source.confusion.counts.size
    for matrix in (source.nuisance, source.second_moment, source.soft):
        cells += 0 if matrix is None else matrix.size
    cells += 0 if source.matching is None else 2 * source.matching.embedding.numbers
    cells += 0 if source.bins is None else source.bins.counts.size
    texts = len(repr(record.metadata)) + len(repr(record.training))
    return 4096 + 8 * (cells + 16 * len(source.classes)) + 2 * texts


class Versions:
    """Versions by model and selector: a number, ``latest`` or ``@alias``."""

    def __init__(self, connection: Connection, cache: VersionCache, changed: set[str]) -> None:
        self._connection = connection
        self._cache = cache
        self._models = Models(connection, changed)

    def register(
        self,
        model: str,
        source: Prepared,
        metadata: dict[str, Any],
        now: datetime,
    ) -> tuple[VersionRecord, bool]:
        """Store a source; the version, and whether it is new (False: the content was there)."""
        number, new = self.add(model, source, metadata, now)
        return self.get(model, str(number)), new

    def add(
        self, model: str, source: Prepared, metadata: dict[str, Any], now: datetime
    ) -> tuple[int, bool]:
        """The same for a model of any kind; the version's number."""
        owner = self._models.lock(model)
        same = sa.select(versions.c.number).where(
            versions.c.model_id == owner.id, versions.c.digest == source.digest
        )
        existing = self._connection.execute(same).scalar_one_or_none()
        if existing is not None:
            return existing, False
        if not source.derived:
            raise Unavailable("the version with this content was deleted meanwhile; try again")
        highest = sa.select(sa.func.max(versions.c.number)).where(versions.c.model_id == owner.id)
        number = (self._connection.execute(highest).scalar_one() or 0) + 1
        insert = versions.insert().values(
            model_id=owner.id,
            number=number,
            digest=source.digest,
            derived=source.derived,
            metadata=metadata,
            created_at=now,
        )
        key = self._connection.execute(insert).inserted_primary_key
        assert key is not None
        for name, content in source.matrices.items():
            row = {"version_id": key[0], "name": name, "content": content}
            self._connection.execute(version_arrays.insert().values(row))
        return number, True

    def has(self, model: str, digest: str) -> bool:
        """Whether a version of the model has this content."""
        statement = (
            sa.select(versions.c.id)
            .join_from(versions, models)
            .where(models.c.name == model, versions.c.digest == digest)
        )
        return self._connection.execute(statement).one_or_none() is not None

    def get(self, model: str, selector: str) -> VersionRecord:
        """The version, from the cache if it was loaded before; or ``NotFound``."""
        version_id = self.resolve(model, selector)
        cached = self._cache.get(version_id)
        if cached is not None:
            return cached
        record = self._load(version_id)
        if not self._connection.get_execution_options().get(WRITING):
            self._cache.put(record)
        return record

    def list(self, model: str, before: int | None, limit: int) -> Page[VersionRecord]:
        """Versions of a model, newest first, from the one before ``before``."""
        numbers = self.numbers(model, before, limit + 1)
        items = tuple(self.get(model, str(number)) for number in numbers[:limit])
        return Page(items, (str(items[-1].number),) if len(numbers) > limit else None)

    def numbers(self, model: str, before: int | None, most: int) -> Sequence[int]:
        """Numbers of the versions of a model of any kind, newest first."""
        owner = self._models.get(model)
        statement = (
            sa.select(versions.c.number)
            .where(versions.c.model_id == owner.id)
            .order_by(versions.c.number.desc())
            .limit(most)
        )
        if before is not None:
            statement = statement.where(versions.c.number < before)
        return self._connection.execute(statement).scalars().all()

    def validation(self, record: VersionRecord) -> ValidationSet | None:
        """The validation rows of a version; None if it has none."""
        if record.source.validation_size is None:
            return None
        kept = self._arrays(record.id, ("labels", "posteriors"))
        return ValidationSet(kept["labels"].astype(np.intp), kept["posteriors"])

    def exact(self, record: VersionRecord) -> Exact | None:
        """The rows of features of a version for the exact kernels; None if it keeps none."""
        matching = record.source.matching
        if matching is None or not matching.exact:
            return None
        kept = self._arrays(record.id, matchings.EXACT)
        if not kept:
            raise NotFound(f"version {record.number} of {record.model} was deleted")
        return matchings.exact(kept)

    def trained(self, record: VersionRecord) -> dict[str, NDArray[Any]]:
        """The arrays of the classifier that was trained for a version."""
        prefix = trainings.PREFIX
        statement = sa.select(version_arrays.c.name, version_arrays.c.content).where(
            version_arrays.c.version_id == record.id, version_arrays.c.name.startswith(prefix)
        )
        rows = self._connection.execute(statement).all()
        if not rows:
            raise NotFound(f"version {record.number} of {record.model} was deleted")
        return {name.removeprefix(prefix): arrays.decode(content) for name, content in rows}

    def training_rows(self, record: VersionRecord) -> tuple[Floats, Codes]:
        """The table and the labels that a version was trained on."""
        kept = self._arrays(record.id, (trainings.ROWS, "labels"))
        if not kept:
            raise NotFound(f"version {record.number} of {record.model} was deleted")
        return kept[trainings.ROWS], kept["labels"].astype(np.intp)

    def resolve(self, model: str, selector: str) -> int:
        """The id of the version that a selector means; or ``NotFound``."""
        statement = (
            sa.select(versions.c.id).join_from(versions, models).where(models.c.name == model)
        )
        if selector == "latest":
            statement = statement.order_by(versions.c.number.desc()).limit(1)
        elif re.fullmatch(r"@[a-z0-9][a-z0-9._-]*", selector):
            statement = statement.join(aliases, aliases.c.version_id == versions.c.id)
            statement = statement.where(aliases.c.alias == selector[1:])
        elif selector.isascii() and selector.isdigit() and len(selector) < 10:
            statement = statement.where(versions.c.number == int(selector))
        else:
            raise NotFound(f"{selector[:80]!r} is not a version: use a number, latest or @alias")
        found: int | None = self._connection.execute(statement).scalar_one_or_none()
        if found is None:
            self._models.get(model)
            what = f"alias {selector}" if selector.startswith("@") else f"version {selector}"
            raise NotFound(f"model {model} has no {what}")
        return found

    def _load(self, version_id: int) -> VersionRecord:
        statement = (
            sa.select(versions, models.c.name.label("model"), models.c.kind)
            .join_from(versions, models)
            .where(versions.c.id == version_id)
        )
        row = self._connection.execute(statement).one()
        if row.kind != CLASSIFIER:
            raise OtherKind(
                f"{row.model} is a {row.kind}: it takes …/adaptations, and what is asked here "
                "takes a classifier"
            )
        names = ("confusion", "nuisance", "second_moment", "soft", *matchings.LOADED)
        matrices = self._arrays(version_id, names)
        return VersionRecord(
            id=row.id,
            model_id=row.model_id,
            model=row.model,
            number=row.number,
            digest=row.digest,
            source=sources.from_json(row.derived, matrices),
            metadata=row.metadata,
            created_at=row.created_at,
            training=row.derived.get("training"),
        )

    def _arrays(self, version_id: int, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
        statement = sa.select(version_arrays.c.name, version_arrays.c.content).where(
            version_arrays.c.version_id == version_id, version_arrays.c.name.in_(names)
        )
        rows = self._connection.execute(statement).all()
        return {name: arrays.decode(content) for name, content in rows}

    def arrays(self, version_id: int) -> dict[str, NDArray[Any]]:
        """Every array of a version."""
        own = version_arrays.c.version_id == version_id
        statement = sa.select(version_arrays.c.name, version_arrays.c.content).where(own)
        rows = self._connection.execute(statement).all()
        return {name: arrays.decode(content) for name, content in rows}
