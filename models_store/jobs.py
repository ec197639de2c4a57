"""Jobs: what was asked, how far it is, what is needed to go on, and what came of it."""

import json
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from models_store.errors import NotFound
from models_store.paging import newest
from models_store.records import Page
from models_store.tables import jobs, models

JOB = "job"
"""The kind of task that runs one; its key is the job's id."""
OVER = ("done", "failed", "cancelled")
WRITING = "adjust"
"""The kind of jobs that write files, below the output root."""


@dataclass(frozen=True)
class JobRecord:
    """A job: queued, running, cancelling, and at last done, failed or cancelled.

    ``asked`` and ``result`` are JSON forms; ``progress`` is None before the first round.
    """

    id: str
    model: str
    kind: str
    state: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    asked: dict[str, Any]
    progress: dict[str, Any] | None
    result: dict[str, Any] | None

    @property
    def over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state in OVER


@dataclass(frozen=True)
class JobFilter:
    """Which jobs: of a model, in a state; only of ``models``, None for all."""

    model: str | None = None
    state: str | None = None
    models: Collection[str] | None = None


class Jobs:
    """Jobs, each of one model, which takes them with it when it goes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, id: str, model_id: int, kind: str, asked: dict[str, Any], now: datetime) -> None:
        """A new job; whoever adds it adds its task."""
        values = {"id": id, "model_id": model_id, "kind": kind, "asked": asked}
        statement = jobs.insert().values(**values, state="queued", created_at=now)
        self._connection.execute(statement)

    def get(self, id: str, only: Collection[str] | None = None) -> JobRecord:
        """The job, or ``NotFound``; ``only`` of these models, None for all."""
        row = self._connection.execute(_SELECT.where(jobs.c.id == id)).one_or_none()
        if row is None or (only is not None and row.model not in only):
            raise NotFound(f"there is no job {id}")
        return _record(row)

    def start(self, id: str, now: datetime) -> None:
        """It runs, for the first time or again."""
        queued = jobs.update().where(jobs.c.id == id, jobs.c.state == "queued")
        self._connection.execute(queued.values(state="running", started_at=now))

    def cancel(self, id: str, now: datetime) -> bool:
        """Have it end; whether it had not begun, and so is over now."""
        queued = jobs.update().where(jobs.c.id == id, jobs.c.state == "queued")
        over = queued.values(state="cancelled", finished_at=now)
        if self._connection.execute(over).rowcount:
            return True
        running = jobs.update().where(jobs.c.id == id, jobs.c.state == "running")
        self._connection.execute(running.values(state="cancelling"))
        return False

    def note(self, id: str, progress: dict[str, Any] | None) -> str | None:
        """Write how far it is; its state, None where it is gone."""
        mine = jobs.update().where(jobs.c.id == id)
        if progress is not None:
            self._connection.execute(mine.values(progress=progress))
        return self.state(id)

    def state(self, id: str) -> str | None:
        """Its state alone, None where it is gone."""
        statement = sa.select(jobs.c.state).where(jobs.c.id == id)
        return self._connection.execute(statement).scalar_one_or_none()

    def checkpoint(self, id: str, state: dict[str, Any]) -> None:
        """What is needed to go on from here."""
        content = zlib.compress(json.dumps(state).encode(), 1)
        self._connection.execute(jobs.update().where(jobs.c.id == id).values(checkpoint=content))

    def resumed(self, id: str) -> dict[str, Any] | None:
        """The last of these; None if there is none."""
        statement = sa.select(jobs.c.checkpoint).where(jobs.c.id == id)
        content = self._connection.execute(statement).scalar_one_or_none()
        return None if content is None else json.loads(zlib.decompress(content))

    def end(
        self,
        id: str,
        state: str,
        result: dict[str, Any],
        now: datetime,
        progress: dict[str, Any] | None = None,
    ) -> None:
        """It is over; what was needed to go on is dropped."""
        values = {"state": state, "result": result, "finished_at": now, "checkpoint": None}
        if progress is not None:
            values["progress"] = progress
        self._connection.execute(jobs.update().where(jobs.c.id == id).values(values))

    def writing(self) -> Sequence[JobRecord]:
        """Jobs that write files and are not over; until this transaction ends nobody adds one.

        SQLite's write transaction is alone by itself.
        """
        if self._connection.dialect.name == "postgresql":
            self._connection.execute(sa.text("SELECT pg_advisory_xact_lock(7460272)"))
        going = _SELECT.where(jobs.c.kind == WRITING, jobs.c.state.not_in(OVER))
        return [_record(row) for row in self._connection.execute(going)]

    def list(
        self, which: JobFilter, before: tuple[datetime, str] | None, limit: int
    ) -> Page[JobRecord]:
        """Jobs that match, newest first, from the one before ``before``."""
        statement = _SELECT
        if which.model is not None:
            statement = statement.where(models.c.name == which.model)
        if which.state is not None:
            statement = statement.where(jobs.c.state == which.state)
        if which.models is not None:
            statement = statement.where(models.c.name.in_(sorted(which.models)))
        return newest(self._connection, statement, jobs, before, limit, _record)


_SELECT: sa.Select[Any] = sa.select(
    jobs.c.id,
    models.c.name.label("model"),
    jobs.c.kind,
    jobs.c.state,
    jobs.c.created_at,
    jobs.c.started_at,
    jobs.c.finished_at,
    jobs.c.asked,
    jobs.c.progress,
    jobs.c.result,
).join_from(jobs, models)


def _record(row: sa.Row[Any]) -> JobRecord:
    return JobRecord(**row._asdict())
