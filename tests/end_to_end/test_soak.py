"""A few of the kills, outages and broken disks that ``make soak`` brings by the hundred."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks.soak.disk import NoMount, full, read_only
from benchmarks.soak.kills import killed
from benchmarks.soak.ledger import BATCH
from benchmarks.soak.outages import interrupted
from benchmarks.soak.servers import Postgres, Service, faults, migrated
from benchmarks.soak.streams import watched
from models_store import schema
from models_store.engine import connect
from tests.end_to_end.processes import caller
from tests.patience import patience, until


@pytest.fixture(scope="module")
def postgres(workspace: Path) -> Iterator[Postgres]:
    folder = workspace / "soak"
    folder.mkdir()
    server = Postgres(folder)
    migrated(server.url)
    yield server
    server.close()


def test_kills_lose_nothing_and_double_nothing(workspace: Path, postgres: Postgres) -> None:
    for url, times in ((f"sqlite:///{workspace / 'killed.db'}", 3), (postgres.url, 2)):
        verdict = killed(Service(migrated(url)), times, clients=4)
        assert verdict.good, verdict
        assert verdict.estimates > 20
        assert verdict.retried > 0
        assert faults(url) == []


def test_killed_workers_neither_lose_rows_nor_count_them_twice(workspace: Path) -> None:
    url = migrated(f"sqlite:///{workspace / 'streams.db'}")
    found = watched(url, 5.0)
    assert found.wrong == []
    assert found.windows > 10
    assert faults(url) == []


def test_an_outage_of_the_database_passes(postgres: Postgres) -> None:
    service = Service(postgres.url)
    with service.running():
        with caller(service.base) as http:
            http.delete("/v1/models/m", params={"force": "true"})
        found = interrupted(service, postgres, 1, clients=4, up_seconds=patience(5.0))
    assert found.wrong == []
    assert found.not_ready == 1
    assert found.stateless_failures == 0
    assert found.statuses["estimates 503"] > 0
    assert found.seconds[0] < patience(5)
    assert found.connections <= 20


def test_a_database_that_comes_later(postgres: Postgres) -> None:
    postgres.stop()
    service = Service(postgres.url)
    service.start()
    try:
        answer = until(lambda: answered(f"{service.base}/readyz"))
        assert answer.status_code == 503
        assert "database" in answer.json()["detail"]
        assert httpx.get(f"{service.base}/livez", timeout=patience(10)).status_code == 200
        models = httpx.get(f"{service.base}/v1/models", timeout=patience(10))
        assert models.status_code == 503
        assert models.headers["retry-after"]
        postgres.start()
        assert service.ready() < patience(5)
        assert httpx.get(f"{service.base}/v1/models", timeout=patience(10)).status_code == 200
    finally:
        service.stop()


def answered(url: str) -> httpx.Response | None:
    try:
        return httpx.get(url, timeout=patience(20))
    except httpx.TransportError:
        return None


@pytest.mark.parametrize(("breaks", "said"), [(full, "full"), (read_only, "written to")])
def test_a_disk_that_takes_nothing(tmp_path: Path, breaks: object, said: str) -> None:
    assert callable(breaks)
    try:
        found = breaks(tmp_path / "disk")
    except NoMount as reason:
        pytest.skip(str(reason))
    assert found.status == 503
    assert said in found.detail
    assert found.there == found.acknowledged
    assert found.reads == 200
    assert found.recovered


def test_a_database_of_another_release_is_not_served(workspace: Path) -> None:
    url = f"sqlite:///{workspace / 'other.db'}"
    engine = connect(migrated(url))
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    engine.dispose()
    command = [sys.executable, "-m", "app.cli", "serve", "--port", "0"]
    environment = {**os.environ, "PRIORSHIFT_DATABASE_URL": url}
    found = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=patience(60)
    )
    assert found.returncode == 2
    said = " ".join(found.stderr.split())
    assert f"at revision 0001, this release needs {schema.head()}" in said
    assert "priorshift migrate" in said
    assert "Traceback" not in said


def test_a_backup_of_a_service_that_runs(workspace: Path, tmp_path: Path) -> None:
    url = migrated(f"sqlite:///{workspace / 'saved.db'}")
    environment = {**os.environ, "PRIORSHIFT_DATABASE_URL": url}
    file = tmp_path / "copy.db"

    def command(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "app.cli", *words],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=patience(60),
        )

    address = "/v1/models/m/versions/1/estimates"
    with (
        Service(url).running() as service,
        caller(service.base) as http,
    ):
        source = {"priors": {"legit": 0.9, "fraud": 0.1}}
        first = {"name": "m", "classes": ["legit", "fraud"], "source": source}
        assert http.post("/v1/models", json=first).status_code == 201
        kept = http.post(address, json={"posteriors": BATCH}).headers["location"]
        saved = command("backup", str(file))
        assert saved.returncode == 0, saved.stderr
        later = http.post(address, json={"posteriors": BATCH}).headers["location"]
        busy = command("restore", str(file), "--overwrite")
        assert busy.returncode == 2
        assert "stop the service" in " ".join(busy.stderr.split())
    restored = command("restore", str(file), "--overwrite")
    assert restored.returncode == 0, restored.stderr
    with (
        Service(url).running() as service,
        caller(service.base) as http,
    ):
        assert http.get(kept).status_code == 200
        assert http.get(later).status_code == 404


def test_beyond_this_machine_it_asks_for_keys_before_the_database_answers() -> None:
    settings = {"HOST": "0.0.0.0"}
    service = Service("postgresql://me@127.0.0.1:1/y", settings)
    service.start()
    try:
        answer = until(lambda: answered(f"{service.base}/v1/models"))
        assert answer.status_code == 401
    finally:
        service.stop()
