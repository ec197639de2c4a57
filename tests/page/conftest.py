"""A service that a real run has filled, and a real Chromium to look at it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from app.main import create_app
from app.settings import Settings
from benchmarks.filled import fill
from tests.conftest import served

NAMES = ("chromium", "chromium-browser", "google-chrome")
INSTALL = (
    ["apt-get", "update", "-qq"],
    ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"],
)


@dataclass(frozen=True)
class Filled:
    """The service's address, and the last estimate of each model."""

    base: str
    last: dict[str, str]


@pytest.fixture(scope="session")
def filled(workspace: Path, sqlite_template: Path) -> Iterator[Filled]:
    """A service with models, estimates, monitors and an alert."""
    path = workspace / "filled.db"
    shutil.copy(sqlite_template, path)
    with served(create_app(Settings(database_url=f"sqlite:///{path}"))) as client:
        yield Filled(str(client.base_url).rstrip("/"), fill(client))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, installed if it is missing."""
    with sync_playwright() as playwright:
        # As root its sandbox does not start; what it opens is our own.
        browser = playwright.chromium.launch(executable_path=_executable(), args=["--no-sandbox"])
        yield browser
        browser.close()


def _executable() -> str:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in INSTALL:
            subprocess.run(command, check=False, capture_output=True)
        found = shutil.which(NAMES[0])
    if found is None:
        reason = "there is no Chromium, and it cannot be installed here: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found
