"""Jobs whose server is killed: another goes on, and what comes out is as if nothing had been."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from benchmarks.soak.servers import Service, migrated
from models_store.engine import WRITING, connect
from models_store.tables import jobs, tasks
from tests.api.sources import CLASSES, register, scores, validation
from tests.jobs.places import over, settings, write
from tests.patience import Deadline, patience

FILES, ROWS = 16, 250_000


@pytest.fixture(scope="module")
def folder(workspace: Path) -> Path:
    """Files of four million rows."""
    found = workspace / "killed-jobs"
    posteriors = scores(np.random.default_rng(1), ROWS, 0.35)[1]
    for k in range(FILES):
        path = found / "data" / "scores" / f"p{k:02d}.parquet"
        write(path, np.roll(posteriors, 1000 * k, axis=0), single=True)
    return found


@pytest.fixture(scope="module")
def pair(workspace: Path, folder: Path) -> Iterator[tuple[Service, Service, sa.Engine]]:
    """Two servers on one database."""
    url = migrated(f"sqlite:///{workspace / 'killed-jobs.db'}")
    given = {k.upper(): v for k, v in settings(url, folder).items() if k != "database_url"}
    given["DATA_ROOTS"] = f'["{folder / "data"}"]'
    servers = Service(url, given), Service(url, given)
    engine = connect(url)
    for server in servers:
        server.start()
    for server in servers:
        server.ready()
    with httpx.Client(base_url=servers[0].base, timeout=patience(60)) as client:
        register(client, "cards", {"validation": validation(2000)})
    yield (*servers, engine)
    for server in servers:
        server.stop()
    engine.dispose()


def ask(server: Service, **given: Any) -> str:
    body = {"model": "cards", "dataset": {"path": "scores/*.parquet"}, **given}
    answer = httpx.post(f"{server.base}/v1/jobs", json=body, timeout=patience(60))
    assert answer.status_code == 202, answer.text
    id: str = answer.json()["id"]
    return id


def begun(engine: sa.Engine, id: str, files: Path | None) -> bool:
    """Wait for a finished round, or a few files; whether the job was still going on then."""
    deadline = Deadline(60)
    statement = sa.select(jobs.c.state, jobs.c.checkpoint.is_not(None)).where(jobs.c.id == id)
    while not deadline.over():
        with engine.connect() as connection:
            state, kept = connection.execute(statement).one()
        if state == "done":
            return False
        if kept if files is None else len(list(files.glob("part-*.parquet"))) > 2:
            return True
        time.sleep(0.005)
    raise AssertionError("the job did not begin")


def take_over(engine: sa.Engine) -> None:
    """Let the leases of the dead run out now."""
    with engine.execution_options(**{WRITING: True}).begin() as connection:
        connection.execute(tasks.update().values(due_at=sa.func.current_timestamp()))


def killed(
    pair: tuple[Service, Service, sa.Engine], id: str, files: Path | None = None
) -> dict[str, Any]:
    """The job, both of its servers having been killed one after the other."""
    engine, kills = pair[2], 0
    for server in pair[:2]:
        if begun(engine, id, files):
            kills += 1
        # Whichever runs it: both die, and the first is back before the second goes.
        server.stop()
        take_over(engine)
        server.start()
        server.ready()
    assert kills > 0
    with httpx.Client(base_url=pair[0].base, timeout=patience(60)) as client:
        return over(client, id, 120)


def test_an_estimate_goes_on_from_its_last_round(
    pair: tuple[Service, Service, sa.Engine],
) -> None:
    with httpx.Client(base_url=pair[0].base, timeout=patience(60)) as client:
        plain = over(client, ask(pair[0], kind="estimate"), 120)
        job = killed(pair, ask(pair[0], kind="estimate"))
        assert (plain["state"], job["state"]) == ("done", "done"), job
        assert job["rows"] == FILES * ROWS
        found = [
            client.get(f"/v1/estimates/{one['estimates'][0]['estimate']}").json()
            for one in (plain, job)
        ]
        assert found[0]["prevalence"] == found[1]["prevalence"]
        kept = client.get("/v1/estimates?limit=200").json()["items"]
        assert len(kept) == 2


def test_adjusted_files_are_whole_and_the_same(
    pair: tuple[Service, Service, sa.Engine], folder: Path
) -> None:
    target = {"legit": 0.9, "fraud": 0.1}
    out = folder / "out"
    with httpx.Client(base_url=pair[0].base, timeout=patience(60)) as client:
        given: dict[str, Any] = {"kind": "adjust", "target_priors": target}
        plain = over(client, ask(pair[0], output="plain", **given), 120)
        job = killed(pair, ask(pair[0], output="killed", **given), out / "killed")
    assert (plain["state"], job["state"]) == ("done", "done"), job
    names = [sorted(f.name for f in (out / which).iterdir()) for which in ("plain", "killed")]
    assert names[0] == names[1]
    assert len(names[0]) == FILES + 1
    for name in names[0][1:]:
        tables = [pq.read_table(out / which / name) for which in ("plain", "killed")]
        assert tables[0].equals(tables[1])
        assert tables[0].column_names == list(CLASSES)
