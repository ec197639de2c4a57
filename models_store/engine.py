"""Engines: SQLite with WAL by default, PostgreSQL by its URL."""

import sqlite3
import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine, make_url

WRITING = "priorshift_writing"
RECYCLE_SECONDS = 1800
"""A connection older than this is replaced, before whatever stands between forgets it."""


def normalise(url: str) -> URL:
    """The URL with the driver that is installed: psycopg 3 for PostgreSQL."""
    try:
        parsed = make_url(url)
    except (sa.exc.ArgumentError, ValueError):  # both may quote a password
        raise ValueError("PRIORSHIFT_DATABASE_URL: not a database URL") from None
    if parsed.drivername in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    return parsed


def connect(url: str, pool_size: int = 10, busy_timeout: float = 10.0) -> Engine:
    """An engine for ``url``; ``busy_timeout`` in seconds."""
    parsed = normalise(url)
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        if parsed.database in (None, "", ":memory:"):
            raise ValueError("PRIORSHIFT_DATABASE_URL: an in-memory SQLite database keeps nothing")
        engine = sa.create_engine(
            parsed,
            pool_size=pool_size,
            max_overflow=10,
            hide_parameters=True,
            connect_args={"timeout": busy_timeout},
        )
        _prepare_sqlite(engine, busy_timeout)
        return engine
    if backend == "postgresql":
        return sa.create_engine(
            parsed,
            pool_size=pool_size,
            max_overflow=10,
            pool_pre_ping=True,
            pool_recycle=RECYCLE_SECONDS,
            hide_parameters=True,
            connect_args={"connect_timeout": 10, "options": "-c timezone=UTC"},
        )
    raise ValueError(f"PRIORSHIFT_DATABASE_URL: {backend} is not supported")


def _write_ahead(cursor: sqlite3.Cursor, busy_timeout: float) -> None:
    """Switch to WAL; SQLite does not wait by itself when two connections switch at once."""
    deadline = time.monotonic() + busy_timeout
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _prepare_sqlite(engine: Engine, busy_timeout: float) -> None:
    """Durable, concurrent, referentially sound SQLite, with transactions that we begin.

    The driver's own transaction handling starts writes late, where a concurrent writer makes
    them fail instead of wait; BEGIN IMMEDIATE takes the write lock first.
    """

    @sa.event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, record: Any) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {int(busy_timeout * 1000)}")
        _write_ahead(cursor, busy_timeout)
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writing = connection.get_execution_options().get(WRITING, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
