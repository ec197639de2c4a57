"""The unit of work: one transaction, one commit, every repository on it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from app.core.warnings import Warning, WarningCode
from models_store import schema
from models_store.adaptations import Adaptations, Sources
from models_store.alerts import Alerts
from models_store.aliases import Aliases
from models_store.audit import Audit
from models_store.engine import WRITING
from models_store.errors import Unavailable
from models_store.estimates import Estimates
from models_store.evaluations import Evaluations
from models_store.idempotency import Idempotency
from models_store.jobs import Jobs
from models_store.keys import Keys
from models_store.models import Models
from models_store.monitor_standings import Standings
from models_store.monitors import Monitors
from models_store.records import VersionRecord
from models_store.selections import Selections
from models_store.series import Series
from models_store.sessions import Sessions
from models_store.tasks import Tasks
from models_store.versions import VersionCache, Versions
from models_store.webhooks import Webhooks
from models_store.windows import Windows

PATIENCE_SECONDS = 0.5
"""Before the database is asked again what a selector means, after it did not answer."""
STALE = (
    "the database cannot be reached: the version is the one that was meant when it last answered"
)
NOT_MIGRATED = "the database is not at this release; run priorshift migrate"
FULL = "the disk of the database is full and nothing was written; make room, then try again"
READ_ONLY = "the database cannot be written to; check the permissions of its files"
UNOPENED = "the database file cannot be opened; check its path and permissions"
SIGNS = {
    "no such table": NOT_MIGRATED,
    "no such column": NOT_MIGRATED,
    "does not exist": NOT_MIGRATED,
    "is full": FULL,
    "No space left": FULL,
    "readonly": READ_ONLY,
    "read-only": READ_ONLY,
    "unable to open database file": UNOPENED,
}
"""What the databases say, and what that means to a caller."""


class UnitOfWork:
    """The repositories on one open transaction; ``changed``: models whose versions it changes."""

    def __init__(self, connection: Connection, cache: VersionCache) -> None:
        self.changed: set[str] = set()
        self.models = Models(connection, self.changed)
        self.versions = Versions(connection, cache, self.changed)
        self.aliases = Aliases(connection, self.changed)
        self.sources = Sources(connection, self.versions)
        self.adaptations = Adaptations(connection, self.sources)
        self.estimates = Estimates(connection)
        self.evaluations = Evaluations(connection)
        self.monitors = Monitors(connection)
        self.windows = Windows(connection)
        self.series = Series(connection)
        self.standings = Standings(connection)
        self.alerts = Alerts(connection)
        self.jobs = Jobs(connection)
        self.idempotency = Idempotency(connection)
        self.keys = Keys(connection)
        self.sessions = Sessions(connection)
        self.audit = Audit(connection)
        self.tasks = Tasks(connection)
        self.webhooks = Webhooks(connection, self.tasks)


class Store:
    """Opens transactions on a migrated database."""

    def __init__(
        self,
        engine: Engine,
        cache_bytes: int = 64 * 1024 * 1024,
        selection_seconds: float = 1.0,
    ) -> None:
        self.engine = engine
        self._cache = VersionCache(cache_bytes)
        self._selections = Selections(selection_seconds)
        self._down_until = 0.0
        self._listeners: list[Callable[[], None]] = []

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener``, which must not fail, after every commit here that left tasks."""
        self._listeners.append(listener)

    def version(self, model: str, selector: str) -> VersionRecord:
        """A version as it was selected within the last moments; or ``NotFound``."""
        known = self._selections.get(model, selector)
        found = None if known is None else self._cache.get(known)
        if found is not None:
            return found
        asked = monotonic()
        if asked < self._down_until:
            return self._remembered(model, selector)
        try:
            with self.read() as unit:
                found = unit.versions.get(model, selector)
        except Unavailable:
            self._down_until = monotonic() + PATIENCE_SECONDS
            return self._remembered(model, selector)
        self._selections.put(model, selector, found.id, asked)
        return found

    def _remembered(self, model: str, selector: str) -> VersionRecord:
        """A version as it was selected before the database went; else ``Unavailable`` still."""
        known = self._selections.last(model, selector)
        found = None if known is None else self._cache.get(known)
        if found is None:
            raise Unavailable("the database cannot be reached, and this version is not at hand")
        notes = (*found.source.warnings, Warning(WarningCode.STALE_SELECTION, STALE))
        return replace(found, source=replace(found.source, warnings=notes))

    @contextmanager
    def read(self) -> Iterator[UnitOfWork]:
        """A transaction that only reads."""
        with self._transaction(writing=False) as unit:
            yield unit

    @contextmanager
    def write(self) -> Iterator[UnitOfWork]:
        """A transaction that commits when the block ends and rolls back when it raises."""
        with self._transaction(writing=True) as unit:
            yield unit

    @contextmanager
    def _transaction(self, writing: bool) -> Iterator[UnitOfWork]:
        engine = self.engine.execution_options(**{WRITING: writing})
        try:
            with engine.begin() as connection:
                unit = UnitOfWork(connection, self._cache)
                yield unit
            self._selections.forget(unit.changed)
            if unit.tasks.added:
                for listener in self._listeners:
                    listener()
        except (sa.exc.OperationalError, sa.exc.ProgrammingError) as error:
            if "readonly" in str(error.orig):
                # SQLite's connections stay as they were opened, when writing is possible again too.
                self.engine.dispose()
            raise _unavailable(error) from error
        except sa.exc.TimeoutError as error:
            raise Unavailable("every database connection is taken; try again") from error

    def revision(self) -> str | None:
        """Of the database's schema; None where there is none."""
        try:
            return schema.current(self.engine)
        except sa.exc.SQLAlchemyError as error:
            raise Unavailable("the database cannot be reached") from error

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()


def _unavailable(error: sa.exc.DBAPIError) -> Unavailable:
    text = str(error.orig)
    for sign, message in SIGNS.items():
        if sign in text:
            return Unavailable(message)
    return Unavailable("the database cannot be reached or is busy; try again")
