"""API keys: who may call. Only digests are kept."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from models_store.errors import NotFound
from models_store.paging import newest
from models_store.records import USE_GRAIN, KeyRecord, Page
from models_store.tables import api_keys


class Keys:
    """API keys by id and by the first characters of the key itself."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, record: KeyRecord) -> None:
        """Keep a new key."""
        values = {**vars(record), "scopes": list(record.scopes)}
        values |= {"models": _listed(record.models), "roots": _listed(record.roots)}
        self._connection.execute(api_keys.insert().values(values))

    def any(self) -> bool:
        """Whether there ever was a key; a revoked one counts."""
        return self._connection.execute(sa.select(api_keys.c.id).limit(1)).first() is not None

    def starting(self, prefix: str) -> Sequence[KeyRecord]:
        """The keys that start like this: one, unless by a rare chance."""
        statement = sa.select(api_keys).where(api_keys.c.prefix == prefix)
        return [_record(row) for row in self._connection.execute(statement).all()]

    def get(self, key_id: str) -> KeyRecord:
        """The key, or ``NotFound``."""
        statement = sa.select(api_keys).where(api_keys.c.id == key_id)
        row = self._connection.execute(statement).one_or_none()
        if row is None:
            raise NotFound(f"there is no API key {key_id}")
        return _record(row)

    def list(self, before: tuple[datetime, str] | None, limit: int) -> Page[KeyRecord]:
        """Keys, newest first."""
        return newest(self._connection, sa.select(api_keys), api_keys, before, limit, _record)

    def revoke(self, key_id: str, now: datetime) -> None:
        """Let the key open nothing any more; the first revocation's time stays."""
        self.get(key_id)
        statement = api_keys.update().where(
            api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None)
        )
        self._connection.execute(statement.values(revoked_at=now))

    def used(self, key_id: str, now: datetime) -> None:
        """Note a use, to ``USE_GRAIN``."""
        last = api_keys.c.last_used_at
        statement = api_keys.update().where(
            api_keys.c.id == key_id, sa.or_(last.is_(None), last < now - USE_GRAIN)
        )
        self._connection.execute(statement.values(last_used_at=now))


def _listed(names: Sequence[str] | None) -> Sequence[str] | None:
    return None if names is None else [*names]


def _record(row: sa.Row[Any]) -> KeyRecord:
    return KeyRecord(
        id=row.id,
        prefix=row.prefix,
        digest=row.digest,
        name=row.name,
        scopes=tuple(row.scopes),
        models=None if row.models is None else tuple(row.models),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
        roots=None if row.roots is None else tuple(row.roots),
    )
