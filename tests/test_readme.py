import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.main import create_app
from app.settings import Settings
from tests.conftest import served
from tests.readme import BASE, PAGES, README, configured, examples, run, same

TEXT = README.read_text()


@pytest.fixture
def service(sqlite_url: str, tmp_path: Path) -> Iterator[httpx.Client]:
    """A service whose data root is the folder that examples run in."""
    with served(create_app(configured(sqlite_url, tmp_path))) as client:
        yield client


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_example_prints_what_it_says(
    service: httpx.Client, tmp_path: Path, page: Path
) -> None:
    base = str(service.base_url).rstrip("/")
    found = examples(page.read_text())
    assert len(found) > 10
    for example in found:
        printed = run(example, base, tmp_path).replace(base, BASE)
        if example.answer is None:
            continue
        if example.answer.startswith(("{", "[")):
            wrong = f"{example.command}\nprinted\n{printed}"
            assert same(json.loads(example.answer), json.loads(printed)), wrong
        else:
            assert example.answer.strip() == printed.strip()


def test_the_demo_prints_what_it_says(tmp_path: Path) -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "app.cli", "demo"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    ).stdout
    block = re.search(r"make demo\n```\n+```text\n(.*?)```", TEXT, re.DOTALL)
    assert block is not None
    assert printed.strip() == block.group(1).strip()


def test_every_setting_is_explained() -> None:
    for name, field in Settings.model_fields.items():
        line = rf"\| `PRIORSHIFT_{name.upper()}` \| `{re.escape(str(field.default))}` \|"
        assert re.search(line, TEXT), name
