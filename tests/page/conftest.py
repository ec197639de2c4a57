"""A service that a real run has filled, and a real Chromium to look at it."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from app.main import create_app
from app.settings import Settings
from benchmarks.filled import fill
from tests.conftest import served
from tests.packages import program

NAMES = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True)
class Filled:
    """The service's address, and the last estimate of each model."""

    base: str
    last: dict[str, str]


@pytest.fixture(scope="module")
def filled(workspace: Path, sqlite_template: Path) -> Iterator[Filled]:
    """A service with models, estimates, monitors and an alert."""
    path = workspace / "filled.db"
    shutil.copy(sqlite_template, path)
    with served(create_app(Settings(database_url=f"sqlite:///{path}"))) as client:
        yield Filled(str(client.base_url).rstrip("/"), fill(client))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, installed if it is missing.

    It keeps an event loop running in this thread, in which nobody else could start one.
    """
    executable = program("chromium", *NAMES)
    with sync_playwright() as playwright:
        # As root its sandbox does not start; what it opens is our own.
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()
