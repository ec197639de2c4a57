"""Pages of what has a moment and an identity, newest first: every such list is read here."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from models_store.records import Page

T = TypeVar("T")
Place = tuple[datetime, str] | tuple[datetime, int]
"""The moment and identity of the last item of the page before."""


def newest(
    connection: Connection,
    statement: sa.Select[Any],
    table: sa.Table,
    before: Place | None,
    limit: int,
    record: Callable[[sa.Row[Any]], T],
    moment: str = "created_at",
) -> Page[T]:
    """``limit`` rows of ``statement`` from the one before ``before``, each as a ``record``.

    ``table``: which has the columns ``moment`` and ``id``, by which rows are ordered.
    """
    at, id = table.c[moment], table.c.id
    if before is not None:
        earlier = sa.and_(at == before[0], id < before[1])
        statement = statement.where(sa.or_(at < before[0], earlier))
    ordered = statement.order_by(at.desc(), id.desc()).limit(limit + 1)
    rows = connection.execute(ordered).all()
    items = tuple(record(row) for row in rows[:limit])
    if len(rows) <= limit:
        return Page(items, None)
    last = rows[limit - 1]._mapping
    return Page(items, (last[at].isoformat(), str(last[id])))
