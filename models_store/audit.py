"""The trail of writes: who, what, when, from where. Rows are only ever added."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from models_store.records import AuditRecord, Page
from models_store.tables import audit

LONGEST_TARGET = 512


@dataclass(frozen=True)
class AuditFilter:
    """Which entries: of a key, of a time (since ≤ at < until)."""

    key_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class Audit:
    """Entries of the trail."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, entry: AuditRecord) -> None:
        """Write an entry in the transaction of what it tells."""
        values = {**vars(entry), "target": entry.target[:LONGEST_TARGET]}
        del values["id"]
        self._connection.execute(audit.insert().values(values))

    def list(
        self, which: AuditFilter, before: tuple[datetime, int] | None, limit: int
    ) -> Page[AuditRecord]:
        """Entries that match, newest first."""
        statement = sa.select(audit).order_by(audit.c.at.desc(), audit.c.id.desc())
        if which.key_id is not None:
            statement = statement.where(audit.c.key_id == which.key_id)
        if which.since is not None:
            statement = statement.where(audit.c.at >= which.since)
        if which.until is not None:
            statement = statement.where(audit.c.at < which.until)
        if before is not None:
            earlier = sa.and_(audit.c.at == before[0], audit.c.id < before[1])
            statement = statement.where(sa.or_(audit.c.at < before[0], earlier))
        rows = self._connection.execute(statement.limit(limit + 1)).all()
        items = tuple(_record(row) for row in rows[:limit])
        last = (items[-1].at.isoformat(), str(items[-1].id)) if len(rows) > limit else None
        return Page(items, last)


def _record(row: sa.Row[Any]) -> AuditRecord:
    return AuditRecord(**row._asdict())
