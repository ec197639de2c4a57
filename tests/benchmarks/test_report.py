import sys

import pytest

from benchmarks.report import heading


def test_the_place_of_the_data_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["benchmarks/thesis", "--data", "/home/me/sets", "--runs", "3"]
    monkeypatch.setattr(sys, "argv", given)
    told = heading("thesis")
    assert "`python -m benchmarks.thesis --data DIR --runs 3`" in told
    assert "/home/me" not in told
