"""Work that outlives its transaction: an outbox, and leases on what is in it.

A task is written in the transaction that asks for it, so that what is committed will be done.
Whoever takes it owns it until the lease runs out. The effect and ``done`` share one transaction,
which the pair of owner and attempt fences: of two that believe to hold a task, because a lease ran
out, one commits. What leaves the database happens at least once.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from models_store.errors import LostLease
from models_store.records import TaskRecord
from models_store.tables import tasks

LONGEST_ERROR = 1000


class Tasks:
    """Tasks by kind; ``added``: whether this transaction added one, or gave one back."""

    def __init__(self, connection: Connection) -> None:
        self.added = False
        self._connection = connection

    def add(self, kind: str, key: str, payload: dict[str, Any], due: datetime) -> bool:
        """Have something done, not before ``due``; False if its kind and key are there already.

        The one that is there may be under way and have looked at the database before: what must
        be done after this transaction needs a key of its own, or waits for ``done`` as a handler
        does that reads within ``Lease.finish``.
        """
        values = {
            "id": uuid4().hex,
            "kind": kind,
            "key": key,
            "payload": payload,
            "due_at": due,
            "attempts": 0,
            "created_at": datetime.now(due.tzinfo),
        }
        on_postgresql = self._connection.dialect.name == "postgresql"
        insert = postgresql.insert(tasks) if on_postgresql else sqlite.insert(tasks)
        statement = insert.values(values).on_conflict_do_nothing(index_elements=["kind", "key"])
        new = self._connection.execute(statement.returning(tasks.c.id)).first() is not None
        self.added = self.added or new
        return new

    def hasten(self, kind: str, key: str, due: datetime) -> None:
        """Have a task done by ``due`` that waits for a later time; one under way is left alone."""
        later = (
            tasks.c.kind == kind,
            tasks.c.key == key,
            tasks.c.owner.is_(None),
            tasks.c.due_at > due,
        )
        if self._connection.execute(tasks.update().where(*later).values(due_at=due)).rowcount:
            self.added = True

    def next_due(self, kinds: Collection[str]) -> datetime | None:
        """When the first of these tasks may be taken, or taken over; None if there is none."""
        firsts = [sa.select(sa.func.min(tasks.c.due_at)).where(tasks.c.kind == k) for k in kinds]
        if not firsts:
            return None
        found = self._connection.execute(sa.union_all(*firsts)).scalars().all()
        return min((due for due in found if due is not None), default=None)

    def waiting(self, kinds: Collection[str]) -> dict[str, tuple[int, datetime | None]]:
        """By kind: how many tasks there are, and when the first may be taken, or taken over."""
        number, first = sa.func.count(), sa.func.min(tasks.c.due_at)
        statement = (
            sa.select(tasks.c.kind, number, first)
            .where(tasks.c.kind.in_(kinds))
            .group_by(tasks.c.kind)
        )
        rows = self._connection.execute(statement).all()
        found = {kind: (int(count), due) for kind, count, due in rows}
        return {kind: found.get(kind, (0, None)) for kind in kinds}

    def claim(
        self, kinds: Collection[str], owner: str, now: datetime, seconds: float, most: int = 1
    ) -> list[TaskRecord]:
        """Take tasks that are due, or whose lease ran out, for ``seconds``; the longest due first.

        ``owner`` must be nobody else's, of no other time either.
        """
        due = (
            sa.select(tasks)
            .where(tasks.c.kind.in_(kinds), tasks.c.due_at <= now)
            .order_by(tasks.c.due_at, tasks.c.id)
            .limit(most)
            .with_for_update(skip_locked=True)  # SQLite's write transactions are alone
        )
        found = [TaskRecord(**row._asdict()) for row in self._connection.execute(due).all()]
        until = now + timedelta(seconds=seconds)
        return [self._take(task, owner, until) for task in found]

    def take(
        self, kind: str, key: str, owner: str, now: datetime, seconds: float
    ) -> TaskRecord | None:
        """Take this one, as ``claim`` takes any; None if it is another's, not due, or not there."""
        due = (
            sa.select(tasks)
            .where(tasks.c.kind == kind, tasks.c.key == key, tasks.c.due_at <= now)
            .with_for_update(skip_locked=True)
        )
        row = self._connection.execute(due).one_or_none()
        until = now + timedelta(seconds=seconds)
        return None if row is None else self._take(TaskRecord(**row._asdict()), owner, until)

    def get(self, kind: str, key: str) -> TaskRecord | None:
        """The task, while it is there."""
        statement = sa.select(tasks).where(tasks.c.kind == kind, tasks.c.key == key)
        row = self._connection.execute(statement).one_or_none()
        return None if row is None else TaskRecord(**row._asdict())

    def renew(self, task: TaskRecord, now: datetime, seconds: float) -> None:
        """Hold the task for ``seconds`` from now; ``LostLease`` if it is another's."""
        self._fenced(task, tasks.update().values(due_at=now + timedelta(seconds=seconds)))

    def done(self, task: TaskRecord) -> None:
        """Drop the task; ``LostLease`` if it is another's. Its key may be used again at once."""
        self._fenced(task, tasks.delete())

    def retry(self, task: TaskRecord, due: datetime, error: str) -> None:
        """Give the task back, to be taken from ``due`` on; ``LostLease`` if it is another's."""
        kept = error.replace("\0", "")[:LONGEST_ERROR]
        self._fenced(task, tasks.update().values(owner=None, due_at=due, error=kept))
        self.added = True

    def cancel(self, kind: str, keys: Sequence[str]) -> int:
        """Drop tasks, whoever holds them: they finish in vain. How many were there."""
        statement = tasks.delete().where(tasks.c.kind == kind, tasks.c.key.in_(keys))
        return self._connection.execute(statement).rowcount

    def _take(self, task: TaskRecord, owner: str, until: datetime) -> TaskRecord:
        taken = {"owner": owner, "due_at": until, "attempts": task.attempts + 1}
        self._connection.execute(tasks.update().where(tasks.c.id == task.id).values(taken))
        return TaskRecord(**{**vars(task), **taken})

    def _fenced(self, task: TaskRecord, statement: sa.Update | sa.Delete) -> None:
        own = (
            tasks.c.id == task.id,
            tasks.c.owner == task.owner,
            tasks.c.attempts == task.attempts,
        )
        if self._connection.execute(statement.where(*own)).rowcount == 0:
            raise LostLease(f"the {task.kind} task {task.key} was taken by another")
