"""Jobs on a small data set, run by a real service."""

import asyncio
import json
import pickle
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest

from app.main import create_app
from app.settings import Settings
from clients.python.tests.servers import hanging_up, scripted
from priorshift_client import (
    AsyncClient,
    Client,
    Conflict,
    Dataset,
    InvalidInput,
    Job,
    JobCancelled,
    JobError,
    JobFailed,
    JobTimeout,
    NotFound,
    Retries,
    Source,
)
from tests.api.sources import CLASSES, scores, validation
from tests.conftest import served
from tests.jobs.places import fill, settings, write
from tests.patience import patience


@pytest.fixture(scope="module")
def folder(workspace: Path) -> Path:
    found = workspace / f"jobs{uuid4().hex}"
    found.mkdir()
    return found


@pytest.fixture(scope="module")
def base(folder: Path, sqlite_template: Path) -> Iterator[str]:
    """A service with a root of data sets, and three files of scores below it."""
    path = folder / "jobs.db"
    path.write_bytes(sqlite_template.read_bytes())
    given = Settings.model_validate(settings(f"sqlite:///{path}", folder))
    fill(folder / "data")
    with served(create_app(given)) as opened:
        yield str(opened.base_url)


@pytest.fixture(scope="module")
def cards(client: Client) -> str:
    client.models.create("cards", CLASSES, source())
    client.aliases.put("cards", "champion", 1)
    return "cards"


@pytest.fixture
def queued(client: Client, cards: str, folder: Path) -> Iterator[Job]:
    """A job that waits for another one, which takes longer than any of these tests looks."""
    long = folder / "data" / "long"
    if not long.exists():
        posteriors = scores(np.random.default_rng(4), 5, 0.3)[1]
        write(long / "0.parquet", np.tile(posteriors, (100_000, 1)))
        for k in range(1, 400):
            shutil.copyfile(long / "0.parquet", long / f"{k}.parquet")
    running = client.jobs.adjust(
        cards, "long/", uuid4().hex, target_priors={"legit": 0.9, "fraud": 0.1}
    )
    next(moment for moment in client.jobs.follow(running) if moment.partitions > 0)
    yield client.jobs.estimate(cards, "scores/*.parquet")
    client.jobs.cancel(running)
    last = list(client.jobs.follow(running))[-1]
    assert last.state == "cancelled"


def source() -> Source:
    given = validation(2000)
    return Source(given["labels"], given["posteriors"])


class TestEstimating:
    def test_each_group_has_an_ordinary_estimate(self, client: Client, cards: str) -> None:
        data = Dataset("scores/*.parquet", group_by=("country",))
        job = client.jobs.estimate(cards, data, method="mle", segment={"month": "2026-01"})
        assert (job.kind, job.model, job.version, job.over) == ("estimate", "cards", 1, False)
        done = client.jobs.wait(job, timeout=patience(60))
        assert (done.id, done.state, done.rows, done.skipped_rows) == (job.id, "done", 1100, 0)
        assert done.asked["dataset"] == {"path": "scores/*.parquet"}
        found = list(client.jobs.estimates(done))
        assert [estimate.id for estimate in found] == [item.estimate for item in done.estimates]
        assert [estimate.segment["country"] for estimate in found] == ["BE", "NL"]
        assert [item.group for item in done.estimates] == [{"country": "BE"}, {"country": "NL"}]
        assert sum(estimate.size for estimate in found) == 1100
        assert {estimate.method for estimate in found} == {"mle"}

    def test_it_equals_the_estimate_of_the_rows(
        self, client: Client, cards: str, folder: Path
    ) -> None:
        files = sorted((folder / "data" / "scores").glob("*.parquet"))
        parts = [np.column_stack([pq.read_table(f)[c] for c in CLASSES]) for f in files]
        observed = datetime(2026, 1, 31, tzinfo=UTC)
        options: dict[str, Any] = {
            "interval": {"level": 0.9},
            "shift": {"significance": 0.01},
            "observed_at": observed,
        }
        job = client.jobs.estimate(cards, "scores/*.parquet", "@champion", **options)
        (mine,) = client.jobs.estimates(job)
        direct = client.estimate(cards, np.concatenate(parts), keep=False, **options)
        np.testing.assert_allclose(mine.prevalence.array, direct.prevalence.array, atol=1e-6)
        assert mine.observed_at == observed
        assert mine.interval == direct.interval
        assert mine.shift is not None
        assert mine.shift.significance == 0.01

    def test_columns_filters_and_wrong_rows(self, client: Client, cards: str, folder: Path) -> None:
        posteriors = scores(np.random.default_rng(5), 200, 0.3)[1]
        posteriors[7] = [0.9, 0.3]
        write(folder / "data" / "other" / "named.parquet", posteriors, day=list(range(200)))
        data = Dataset(
            "other/named.parquet",
            columns={"legit": "legit", "fraud": "fraud"},
            filter="day < 100",
            on_error="skip",
        )
        done = client.jobs.wait(client.jobs.estimate(cards, data, 1))
        assert (done.rows, done.skipped_rows) == (99, 1)
        assert [warning.code for warning in done.warnings] == ["skipped-rows"]


class TestRegisteringAndAdjusting:
    def test_labelled_rows_become_a_version(self, client: Client, folder: Path) -> None:
        client.models.create("mail", CLASSES, source())
        labels, posteriors = scores(np.random.default_rng(9), 800, 0.2)
        path = folder / "data" / "labelled.parquet"
        write(path, posteriors, truth=[CLASSES[k] for k in labels])
        data = Dataset("labelled.parquet", label="truth")
        job = client.jobs.register("mail", data, calibration="bcts", metadata={"commit": "4f2a9c1"})
        assert job.version is None
        done = client.jobs.wait(job)
        assert (done.version, done.rows) == (2, 800)
        assert client.versions.get("mail", 2).metadata == {"commit": "4f2a9c1"}
        assert list(client.jobs.estimates(done)) == []

    def test_adjusted_rows_are_written(self, client: Client, cards: str, folder: Path) -> None:
        target = {"legit": 0.9, "fraud": 0.1}
        data = Dataset("scores/", keys="country")
        job = client.jobs.adjust(cards, data, "2026-01", target_priors=target)
        done = client.jobs.wait(job)
        assert (done.output, done.files, done.rows) == ("2026-01", 3, 1100)
        first = pq.read_table(folder / "out" / "2026-01" / "part-00000.parquet")
        assert first.column_names == ["country", *CLASSES]


class TestFollowing:
    def test_until_it_is_done(self, client: Client, cards: str) -> None:
        job = client.jobs.estimate(cards, "scores/*.parquet", method="mle")
        moments = list(client.jobs.follow(job))
        last = moments[-1]
        assert (last.state, last.partitions, last.of) == ("done", 3, 3)
        assert last.round == last.job.rounds
        assert last.job == client.jobs.get(job)
        assert all(a.job != b.job for a, b in pairwise(moments))

    def test_one_that_is_over(self, client: Client, cards: str) -> None:
        done = client.jobs.wait(client.jobs.estimate(cards, "scores/*.parquet"))
        assert [moment.job for moment in client.jobs.follow(done.id)] == [done]

    def test_one_that_waits_may_be_left(self, client: Client, queued: Job) -> None:
        for moment in client.jobs.follow(queued):
            assert (moment.state, moment.round, moment.partitions) == ("queued", 0, 0)
            assert (moment.of, moment.rows) == (None, None)
            break
        assert client.health() == "ready"


class TestEnds:
    def test_a_job_that_fails(self, client: Client, cards: str, folder: Path) -> None:
        posteriors = scores(np.random.default_rng(3), 50, 0.3)[1]
        posteriors[7] = [0.9, 0.3]
        write(folder / "data" / "broken" / "part9.parquet", posteriors)
        job = client.jobs.estimate(cards, "broken/*.parquet")
        with pytest.raises(JobFailed, match=r"part9\.parquet") as raised:
            client.jobs.wait(job)
        assert raised.value.job.state == "failed"
        assert raised.value.job.errors[0].message in str(raised.value)
        with pytest.raises(JobFailed):
            next(client.jobs.estimates(job.id))
        assert [moment.state for moment in client.jobs.follow(job)] == ["failed"]
        again = pickle.loads(pickle.dumps(raised.value))
        assert (again.job, str(again)) == (raised.value.job, str(raised.value))

    def test_a_job_that_is_cancelled(self, client: Client, queued: Job) -> None:
        assert client.jobs.cancel(queued).state == "cancelled"
        with pytest.raises(JobCancelled, match="was cancelled") as raised:
            client.jobs.wait(queued)
        assert raised.value.job == client.jobs.get(queued.id)
        with pytest.raises(Conflict, match="cancelled"):
            client.jobs.cancel(queued.id)

    def test_a_job_that_is_not_over_in_time(self, client: Client, queued: Job) -> None:
        for seconds in (0.0, 0.2):
            with pytest.raises(JobTimeout, match="queued still") as raised:
                client.jobs.wait(queued, timeout=seconds)
            assert raised.value.job == queued
        assert isinstance(raised.value, TimeoutError)
        assert isinstance(raised.value, JobError)
        assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


class TestAskingForJobs:
    def test_lists_are_newest_first(self, client: Client, cards: str) -> None:
        made = [client.jobs.estimate(cards, "scores/*.parquet") for _ in range(3)]
        for job in made:
            client.jobs.wait(job)
        found = [job.id for job in client.jobs.list(cards, "done", limit=2)]
        assert found[:3] == [job.id for job in made[::-1]]
        assert list(client.jobs.list(cards, "running")) == []

    def test_the_same_key_is_one_job(self, client: Client, cards: str) -> None:
        path, other = "scores/*.parquet", "scores/"
        one = client.jobs.estimate(cards, path, idempotency_key="nightly")
        assert client.jobs.estimate(cards, path, idempotency_key="nightly").id == one.id
        with pytest.raises(Conflict):
            client.jobs.estimate(cards, other, idempotency_key="nightly")

    def test_a_line_that_is_cut_asks_once(self, base: str, client: Client) -> None:
        client.models.create("line", CLASSES, source())
        port = httpx.URL(base).port
        assert port is not None
        soon = Retries(most=3, first=0.001, longest=0.01)
        with hanging_up(port, times=2) as line, Client(line, retries=soon) as shaky:
            job = shaky.jobs.estimate("line", "scores/*.parquet")
        assert [found.id for found in client.jobs.list("line")] == [job.id]
        client.jobs.wait(job)

    def test_fields_of_a_newer_service_are_left_out(self, base: str, queued: Job) -> None:
        content = httpx.get(f"{base}/v1/jobs/{queued.id}").json()
        newer = json.dumps({**content, "hue": "blue"}).encode()
        with scripted((200, {}, newer)) as server, Client(server.base) as client:
            assert client.jobs.get("x") == queued

    @pytest.mark.parametrize(
        ("data", "asked", "pointer", "words"),
        [
            (Dataset("nothing/*.parquet"), {}, "/dataset/path", "stands for no file"),
            (Dataset("../secrets.parquet"), {}, "/dataset/path", ""),
            (Dataset("scores/", filter="country ="), {}, "/dataset/filter", ""),
            (Dataset("scores/", columns={"legit": "no"}), {}, "/dataset", "no"),
            (Dataset("scores/", group_by="planet"), {}, "/dataset", "planet"),
            (Dataset("scores/"), {"method": "magic"}, "/method", "is not a method"),
            (Dataset("scores/"), {"version": "champion"}, "/version", "@alias"),
            (Dataset("scores/"), {"interval": {"level": 2}}, "/interval/level", ""),
        ],
    )
    def test_what_is_wrong_is_said(
        self, client: Client, cards: str, data: Dataset, asked: Any, pointer: str, words: str
    ) -> None:
        with pytest.raises(InvalidInput, match=words or ".") as raised:
            client.jobs.estimate(cards, data, **asked)
        assert raised.value.errors[0].pointer.startswith(pointer)

    def test_and_of_the_other_kinds(self, client: Client, cards: str) -> None:
        with pytest.raises(InvalidInput, match="/dataset/label is missing"):
            client.jobs.register(cards, "scores/")
        with pytest.raises(InvalidInput, match="group_by does not belong"):
            client.jobs.adjust(cards, Dataset("scores/", group_by="country"), "out")
        rows: Any = np.array([[0.9, 0.1]])
        with pytest.raises(TypeError, match="a Dataset or its path, not ndarray"):
            client.jobs.estimate(cards, rows)
        with pytest.raises(NotFound, match="nobody"):
            client.jobs.estimate("nobody", "scores/")
        with pytest.raises(NotFound):
            client.jobs.estimate(cards, "scores/", 7)

    def test_jobs_that_nobody_knows(self, client: Client) -> None:
        unknown = uuid4().hex
        calls = (client.jobs.get, client.jobs.cancel, client.jobs.wait)
        for call in calls:
            with pytest.raises(NotFound):
                call(unknown)
        for follow in (client.jobs.follow, client.jobs.estimates):
            with pytest.raises(NotFound):
                next(follow(unknown))
        with pytest.raises(ValueError, match="cannot be a name"):
            client.jobs.get("")


class TestAsynchronously:
    def test_everything_is_the_same(self, base: str, client: Client, cards: str) -> None:
        data = Dataset("scores/*.parquet", group_by=("country",))

        async def ask() -> tuple[list[str], Job, list[str | None], list[str]]:
            async with AsyncClient(base) as other:
                job = await other.jobs.estimate(cards, data, method="mle")
                states = [moment.state async for moment in other.jobs.follow(job)]
                done = await other.jobs.wait(job, timeout=patience(60))
                ids = [estimate.id async for estimate in other.jobs.estimates(job)]
                listed = [item.id async for item in other.jobs.list(cards, "done", limit=2)]
                return states, done, ids, listed

        states, done, ids, listed = asyncio.run(ask())
        assert states[-1] == "done"
        assert done == client.jobs.get(done)
        assert ids == [estimate.id for estimate in client.jobs.estimates(done)]
        assert listed == [job.id for job in client.jobs.list(cards, "done")]

    def test_ends_are_too(self, base: str, queued: Job) -> None:
        async def ask() -> None:
            async with AsyncClient(base) as client:
                async for moment in client.jobs.follow(queued):
                    assert moment.state == "queued"
                    break
                with pytest.raises(JobTimeout):
                    await client.jobs.wait(queued, timeout=0.1)
                assert (await client.jobs.cancel(queued)).state == "cancelled"
                with pytest.raises(JobCancelled):
                    await client.jobs.wait(queued)
                with pytest.raises(JobCancelled):
                    await anext(client.jobs.estimates(queued))
                with pytest.raises(InvalidInput, match="/dataset/path"):
                    await client.jobs.estimate("cards", "../x")

        asyncio.run(ask())

    def test_both_clients_have_the_same_operations(self) -> None:
        assert public(Client("http://x").jobs) == public(AsyncClient("http://x").jobs)


def public(jobs: object) -> list[str]:
    return [name for name in dir(jobs) if not name.startswith("_")]
