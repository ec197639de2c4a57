"""Databases written by earlier releases: what they hold reads as it did.

To the digit where a number was kept. What is computed when it is read (of a version, say) depends
on the processor's order of summation, so the last digits of a float64 are its own.
"""

import gzip
import json
import math
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from app.main import create_app
from models_store import schema
from models_store.engine import connect
from tests.conftest import served
from tests.history.writing import content, scores, settings, wait_until

KEPT = Path(__file__).parent.parent / "data" / "history"
ROUNDING = 1e-12
"""Of a sum of some thousand float64, in whatever order."""
RELEASES = sorted(path.name.removesuffix(".sql.gz") for path in KEPT.glob("*.sql.gz"))


def missing(before: Any, after: Any, place: str = "") -> list[str]:
    """Where ``after`` lacks or changes something of ``before``; later releases may add fields."""
    if isinstance(before, dict) and isinstance(after, dict):
        faults = [f"{place}/{name} is gone" for name in before.keys() - after.keys()]
        for name in before.keys() & after.keys():
            faults += missing(before[name], after[name], f"{place}/{name}")
        return faults
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [fault for k, pair in pairs for fault in missing(*pair, f"{place}/{k}")]
    if isinstance(before, float) and isinstance(after, float):
        equal = math.isclose(before, after, rel_tol=ROUNDING, abs_tol=ROUNDING)
    else:
        equal = before == after
    return [] if equal else [f"{place}: {before!r} became {after!r}"]


def restored(release: str, folder: Path) -> str:
    """The URL of the database that a release wrote, upgraded."""
    path = folder / "history.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            gzip.decompress((KEPT / f"{release}.sql.gz").read_bytes()).decode()
        )
    connection.close()
    url = f"sqlite:///{path}"
    engine = connect(url)
    schema.migrate(engine)
    engine.dispose()
    return url


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_release_wrote_reads_the_same(release: str, tmp_path: Path) -> None:
    url = restored(release, tmp_path)
    answers = json.loads(gzip.decompress((KEPT / f"{release}.json.gz").read_bytes()))
    assert len(answers) > 100
    with served(create_app(settings(url, tmp_path))) as client:
        for address, before in answers.items():
            answer = client.get(address)
            assert answer.status_code == 200, (address, answer.text)
            assert missing(before, content(answer)) == [], address


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_release_wrote_is_shown_and_built_upon(release: str, tmp_path: Path) -> None:
    url = restored(release, tmp_path)
    with served(create_app(settings(url, tmp_path))) as client:
        for place in ("estimates", "models", "monitors"):
            for item in client.get(f"/v1/{place}?limit=200").json()["items"]:
                page = client.get(f"/{place}/{item.get('id') or item['name']}")
                assert page.status_code == 200, page.text
        overview = client.get("/").text
        assert "Alert open" in overview or "Alert acknowledged" in overview
        for estimate in client.get("/v1/estimates?model=cards&version=1").json()["items"]:
            labels = ["fraud"] * estimate["size"]
            address = "/v1/models/cards/versions/1/evaluations"
            answer = client.post(address, json={"labels": labels, "estimate": estimate["id"]})
            assert answer.status_code == 201, answer.text
            assert answer.json()["warnings"] == estimate["warnings"]


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_release_watched_goes_on(release: str, tmp_path: Path) -> None:
    url = restored(release, tmp_path)
    with served(create_app(settings(url, tmp_path))) as client:
        (alert,) = client.get("/v1/alerts").json()["items"]
        for day in range(6, 16):
            sent = {"posteriors": scores(day, 50, 0.2)[1], "segment": {"country": "BE"}}
            at = {"observed_at": f"2026-02-{day:02}T12:00:00Z"}
            answer = client.post("/v1/monitors/watch/observations", json=sent | at)
            assert answer.status_code == 202, answer.text
        address = f"/v1/alerts/{alert['id']}"
        wait_until(lambda: client.get(address).json()["state"] == "closed")
        closed = client.get(address).json()
        assert closed == alert | {
            "state": "closed",
            "closed_at": closed["closed_at"],
            "closed_by": "recovery",
        }
