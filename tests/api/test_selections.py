"""What ``latest`` and aliases mean: at once where it was changed, soon everywhere else."""

import time
from collections.abc import Iterator

import httpx
import pytest

from app.main import create_app
from app.settings import Settings
from tests.api.sources import register
from tests.conftest import served
from tests.patience import patience

BATCH = {"posteriors": [[0.9, 0.1], [0.2, 0.8]]}


@pytest.fixture
def two(database_url: str) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """Two processes on one database."""
    settings = Settings(database_url=database_url, selection_seconds=patience(0.4))
    with served(create_app(settings)) as first, served(create_app(settings)) as second:
        yield first, second


def asked(client: httpx.Client, selector: str) -> int:
    answer = client.post(f"/v1/models/m/versions/{selector}/shift-tests", json=BATCH)
    if answer.status_code == 404:
        return 0
    number: int = answer.json()["version"]
    return number


def version(client: httpx.Client, fraud: float) -> None:
    source = {"priors": {"legit": 1 - fraud, "fraud": fraud}}
    answer = client.post("/v1/models/m/versions", json={"source": source})
    assert answer.status_code == 201


def point(client: httpx.Client, number: int) -> None:
    answer = client.put("/v1/models/m/aliases/champion", json={"version": number})
    assert answer.status_code in (200, 201)


def test_changes_are_seen(two: tuple[httpx.Client, httpx.Client]) -> None:
    first, second = two
    register(first, "m", {"priors": {"legit": 0.5, "fraud": 0.5}})
    point(first, 1)
    for client in two:
        assert (asked(client, "@champion"), asked(client, "latest"), asked(client, "2")) == (
            1,
            1,
            0,
        )
    version(first, 0.1)
    point(first, 2)
    assert (asked(first, "@champion"), asked(first, "latest"), asked(first, "2")) == (2, 2, 2)
    assert asked(second, "2") == 2
    time.sleep(patience(0.4))
    assert (asked(second, "@champion"), asked(second, "latest")) == (2, 2)
    assert first.delete("/v1/models/m/aliases/champion").status_code == 204
    assert asked(first, "@champion") == 0
    time.sleep(patience(0.4))
    assert asked(second, "@champion") == 0


def test_a_deleted_model_gets_no_estimates(two: tuple[httpx.Client, httpx.Client]) -> None:
    first, second = two
    register(first, "m", {"priors": {"legit": 0.5, "fraud": 0.5}})
    assert asked(second, "1") == 1
    assert first.delete("/v1/models/m").status_code == 204
    assert asked(first, "1") == 0
    kept = second.post("/v1/models/m/versions/1/estimates", json=BATCH)
    assert kept.status_code == 404
    assert "deleted" in kept.json()["detail"]
    time.sleep(patience(0.4))
    assert asked(second, "1") == 0


def test_nothing_is_believed_for_no_time_at_all(database_url: str) -> None:
    settings = Settings(database_url=database_url, selection_seconds=0)
    with served(create_app(settings)) as first, served(create_app(settings)) as second:
        register(first, "m", {"priors": {"legit": 0.5, "fraud": 0.5}})
        assert asked(second, "latest") == 1
        version(first, 0.2)
        assert asked(second, "latest") == 2
