"""The trail of writes: who, what, when, from where. Rows are only ever added."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from models_store.paging import newest
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
        statement = sa.select(audit)
        if which.key_id is not None:
            statement = statement.where(audit.c.key_id == which.key_id)
        if which.since is not None:
            statement = statement.where(audit.c.at >= which.since)
        if which.until is not None:
            statement = statement.where(audit.c.at < which.until)
        return newest(self._connection, statement, audit, before, limit, _record, "at")


def _record(row: sa.Row[Any]) -> AuditRecord:
    return AuditRecord(**row._asdict())
