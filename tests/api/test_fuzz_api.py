"""Requests drawn from the service's own description: a short run of ``make fuzz-api``."""

import re
from pathlib import Path

import pytest

from app.main import create_app
from app.settings import Settings
from benchmarks import fuzz_api
from tests.conftest import served


def test_every_answer_is_as_described(
    sqlite_url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "admin-key"
    key.write_text(fuzz_api.ADMIN)
    values = {"database_url": sqlite_url, "admin_key_file": key, "key_secret": "fuzz " * 10}
    with served(create_app(Settings.model_validate(values))) as client:
        base = str(client.base_url).rstrip("/")
        status = fuzz_api.fuzz(base, examples=5, seed=1, phases="fuzzing")
    said = capfd.readouterr().out
    assert status == 0, said
    cases = re.search(r"(\d+) generated", said)
    assert cases is not None
    assert int(cases[1]) >= 150
