"""Copies of a SQLite database, made while it is served, and put back.

SQLite's own backup call reads page by page; what is written meanwhile is in the copy whole or not
at all.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from alembic.script import ScriptDirectory
from sqlalchemy.engine import URL

from models_store import schema
from models_store.engine import normalise

PAGES = 1000
"""Pages that are copied at once; others write in between."""
PAUSE_SECONDS = 0.01
POSTGRESQL = (
    "backups of PostgreSQL are its own: pg_dump --format=custom --file=FILE URL, and "
    "pg_restore --clean --if-exists --dbname=URL FILE, with PRIORSHIFT_DATABASE_URL for URL"
)


class NotABackup(ValueError):
    """The file is no whole database of this service."""


class NotWritten(ValueError):
    """The copy could not be made; what was there before is as it was."""


class InUse(ValueError):
    """Somebody has the database open."""


def save(url: str, target: Path, overwrite: bool) -> int:
    """Copy the database of ``url`` into ``target``, all of it or nothing; its bytes."""
    source = _path(url)
    if not source.exists():
        raise ValueError("there is no database yet; nothing was saved")
    if target.exists() and not overwrite:
        raise ValueError(f"{target} exists; say --overwrite to replace it")
    unfinished = target.with_name(f"{target.name}.part")
    unfinished.unlink(missing_ok=True)
    try:
        with _connected(source) as given, _connected(unfinished) as copy:
            given.backup(copy, pages=PAGES, sleep=PAUSE_SECONDS)
            copy.execute("PRAGMA journal_mode = DELETE")
            _check(copy)
        _sync(unfinished)
        unfinished.replace(target)
    except (sqlite3.OperationalError, OSError) as error:
        raise NotWritten(f"{target} was not written: {error}") from None
    finally:
        unfinished.unlink(missing_ok=True)
    _sync(target.parent)
    return target.stat().st_size


def restore(url: str, given: Path, overwrite: bool) -> str | None:
    """Put a copy in place of the database of ``url``, which nobody may use; its revision."""
    target = _path(url)
    if not given.is_file():
        raise ValueError(f"there is no file {given}")
    if target.exists() and target.stat().st_size and not overwrite:
        raise ValueError(f"{target} exists; say --overwrite to lose what is in it")
    with _connected(given, read_only=True) as copy:
        revision = _check(copy)
        with _connected(target) as database:
            _require_alone(database)
            copy.backup(database)
            database.execute("PRAGMA locking_mode = NORMAL")
    return revision


def _path(url: str) -> Path:
    parsed: URL = normalise(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        raise ValueError(POSTGRESQL)
    return Path(parsed.database)


@contextmanager
def _connected(path: Path, read_only: bool = False) -> Iterator[sqlite3.Connection]:
    address = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
    try:
        opened = sqlite3.connect(address, uri=True, timeout=10.0, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise NotWritten(f"{path}: {error}; check its folder and permissions") from None
    with closing(opened):
        yield opened


def _check(database: sqlite3.Connection) -> str | None:
    """The revision of a database that is whole and ours."""
    try:
        (found,) = database.execute("PRAGMA integrity_check(1)").fetchone()
        (revision,) = database.execute("SELECT version_num FROM alembic_version").fetchone()
    except (sqlite3.DatabaseError, TypeError) as error:
        raise NotABackup(f"this is not a database of this service: {error}") from None
    if found != "ok":
        raise NotABackup(f"the database is damaged: {found}")
    known = {script.revision for script in _scripts().walk_revisions()}
    if revision not in known:
        raise NotABackup(f"the database is at revision {revision}, which this release lacks")
    return str(revision)


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(schema.configuration())


def _require_alone(database: sqlite3.Connection) -> None:
    """In this mode the lock is of the file, and nobody else may have it open."""
    database.execute("PRAGMA busy_timeout = 500")
    database.execute("PRAGMA locking_mode = EXCLUSIVE")
    try:
        database.execute("BEGIN EXCLUSIVE")
        database.execute("COMMIT")
    except sqlite3.OperationalError as error:
        message = f"the database is in use ({error}); stop the service, then restore"
        raise InUse(message) from None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
