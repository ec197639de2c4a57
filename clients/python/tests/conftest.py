"""A real service for the client, on a database of its own."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from app.main import create_app
from app.settings import Settings
from priorshift_client import Client, Source
from tests.api.sources import CLASSES, validation
from tests.conftest import no_threads_left, served, sqlite_template, sqlite_url, workspace

__all__ = ["no_threads_left", "sqlite_template", "sqlite_url", "workspace"]


@pytest.fixture(scope="module")
def base(workspace: Path, sqlite_template: Path) -> Iterator[str]:
    """The address of one service for a whole module."""
    path = workspace / f"c{uuid4().hex}.db"
    shutil.copy(sqlite_template, path)
    settings = Settings(database_url=f"sqlite:///{path}", max_body_bytes=2_000_000)
    with served(create_app(settings)) as opened:
        yield str(opened.base_url)


@pytest.fixture(scope="module")
def client(base: str) -> Iterator[Client]:
    with Client(base) as opened:
        yield opened


@pytest.fixture(scope="module")
def cards(client: Client) -> str:
    """A model with a validation set of 400 rows."""
    given = validation()
    client.models.create("cards", CLASSES, Source(given["labels"], given["posteriors"]))
    return "cards"
