"""Jobs followed through what happens on the way: streams cut or held back, servers killed."""

import asyncio
import json
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clients.python.tests.servers import hanging_up, scripted
from priorshift_client import (
    AsyncClient,
    Busy,
    Client,
    Job,
    JobTimeout,
    Moment,
    NotFound,
    Retries,
    Source,
    TransportError,
    UnexpectedAnswer,
)
from priorshift_client.calls import Call
from priorshift_client.operations.jobs import follow_job
from priorshift_client.plans import Listen, Pause, Tell
from priorshift_client.reading import read
from priorshift_client.streams import Lines, Silence
from tests.api.sources import CLASSES, scores, validation
from tests.console.test_jobs import Service, started
from tests.end_to_end.processes import free_port
from tests.jobs.places import write
from tests.patience import patience

NOW = datetime(2026, 1, 31, tzinfo=UTC).isoformat()
PARTITIONS, ROWS = 400, 100_000
"""Enough for a process to be killed meanwhile."""


def told(state: str, partitions: int = 0) -> dict[str, Any]:
    """A job as the service tells it."""
    over = state in ("done", "failed", "cancelled")
    progress = {"round": 1, "partitions": partitions, "of": 3, "rows": 10 * partitions}
    pace = {"rows_per_second": None, "remaining_seconds": None}
    return {
        "id": "j1",
        "kind": "estimate",
        "model": "cards",
        "version": 1,
        "state": state,
        "created_at": NOW,
        "started_at": NOW,
        "finished_at": NOW if over else None,
        "asked": {},
        "progress": {**progress, **pace} if partitions else None,
    }


def job(state: str, partitions: int = 0) -> Job:
    return read(Job, told(state, partitions))


Answers = tuple[int, dict[str, str], bytes]


def answer(state: str, partitions: int = 0) -> Answers:
    return 200, {"Content-Type": "application/json"}, json.dumps(told(state, partitions)).encode()


def stream(*jobs: tuple[str, int], cut: str = "") -> Answers:
    """Events, and the beginning of one more."""
    events = "".join(f"event: x\ndata: {json.dumps(told(*given))}\n\n" for given in jobs)
    content = f": no news\n\n{events}{cut}"
    return 200, {"Content-Type": "text/event-stream; charset=utf-8"}, content.encode()


BUSY = (429, {"Content-Type": "application/problem+json"}, b'{"title": "Busy", "detail": "full"}')
COURSE = [("queued", 0), ("running", 1), ("running", 2), ("done", 3)]


class TestStreams:
    half = f"data: {json.dumps(told('done', 3))}\n"

    @pytest.mark.parametrize(
        ("between", "asked"),
        [
            ((stream(*COURSE),), 2),
            ((stream(*COURSE[:2]), answer("running", 1), stream(*COURSE[2:])), 4),
            ((stream(*COURSE[:3], cut=half), answer("running", 2), stream(COURSE[3])), 4),
            ((stream(*COURSE[:3], cut=half[:40]), answer("done", 3)), 3),
            ((stream(), answer("running", 1), stream(*COURSE[1:])), 4),
            ((BUSY, answer("running", 1), stream(*COURSE[2:])), 4),
        ],
    )
    def test_they_are_taken_up_again(self, between: tuple[Answers, ...], asked: int) -> None:
        def follow(base: str) -> list[Moment]:
            with Client(base) as client:
                return list(client.jobs.follow("j1"))

        async def follow_both(base: str, other: str) -> tuple[list[Moment], list[Moment]]:
            beside = asyncio.create_task(asyncio.to_thread(follow, base))
            async with AsyncClient(other) as client:
                moments = [moment async for moment in client.jobs.follow("j1")]
            return await beside, moments

        script = (answer("queued"), *between)
        with scripted(*script) as server, scripted(*script) as other:
            found, awaited = asyncio.run(follow_both(server.base, other.base))
        assert [(moment.state, moment.partitions) for moment in found] == COURSE
        assert (found[1].round, found[1].of, found[1].rows) == (1, 3, 10)
        assert found == awaited
        paths = [path for _, path, _, _ in server.seen]
        assert paths == [path for _, path, _, _ in other.seen]
        assert len(paths) == asked
        assert paths[:2] == ["/v1/jobs/j1", "/v1/jobs/j1/events"]
        assert server.seen[1][2]["accept"] == "text/event-stream"

    @pytest.mark.parametrize(
        "wrong",
        [
            (200, {"Content-Type": "text/event-stream"}, b"data: {}\n\n"),
            (200, {"Content-Type": "text/event-stream"}, b"data: <html>\n\n"),
            (200, {"Content-Type": "text/html"}, b"<html>"),
            (301, {"Location": "http://127.0.0.1:1/"}, b""),
        ],
    )
    def test_others_are_not_taken_for_the_service_s(self, wrong: Answers) -> None:
        async def follow(base: str) -> None:
            async with AsyncClient(base) as client:
                async for _ in client.jobs.follow("j1"):
                    pass

        with (
            scripted(answer("queued"), wrong) as server,
            Client(server.base) as client,
            pytest.raises(UnexpectedAnswer),
        ):
            list(client.jobs.follow("j1"))
        with scripted(answer("queued"), wrong) as server, pytest.raises(UnexpectedAnswer):
            asyncio.run(follow(server.base))

    def test_data_of_many_lines_are_one_event(self) -> None:
        lines = Lines()
        said = [lines.hear(x) for x in ("data: {", "id: 7", "data:}", "", ": well", "", "data: x")]
        assert said == [None, None, None, b"{\n}", None, None, None]


class TestPlans:
    def test_a_stream_that_is_held_back_is_left_for_looks(self) -> None:
        plan = follow_job("j1")
        assert isinstance(next(plan), Call)
        assert isinstance(plan.send(job("queued")), Tell)
        assert isinstance(next(plan), Listen)
        assert isinstance(plan.throw(Silence("nothing")), Pause)
        assert isinstance(next(plan), Call)
        assert isinstance(plan.send(job("queued")), Pause)
        assert isinstance(next(plan), Call)
        assert plan.send(job("done")) == Tell(Moment.now(job("done")))
        assert next(plan, None) is None

    def test_what_does_not_pass_is_raised_at_once(self) -> None:
        plan = follow_job("j1")
        next(plan)
        with pytest.raises(NotFound):
            plan.throw(NotFound(404, "no", "no"))

    def test_patience_ends(self) -> None:
        plan = follow_job("j1", patience=0.0)
        next(plan)
        with pytest.raises(Busy):
            plan.throw(Busy(429, "no", "later"))

    def test_and_begins_anew_with_an_answer(self) -> None:
        plan = follow_job("j1", patience=1e-9)
        next(plan)
        assert plan.send(job("queued")) == Tell(Moment.now(job("queued")))


class TestNobodyThere:
    def test_it_is_told_when_patience_or_time_ends(self) -> None:
        base = f"http://127.0.0.1:{free_port()}"
        with Client(base, retries=0) as client:
            with pytest.raises(TransportError):
                next(client.jobs.follow("j1", patience=0.0))
            with pytest.raises(TransportError):
                client.jobs.wait("j1", patience=0.0)
            with pytest.raises(TransportError):
                client.jobs.wait("j1", timeout=0.1)

    def test_a_line_that_is_cut_is_not_noticed(self) -> None:
        with (
            scripted(answer("queued"), answer("running", 1), answer("done", 3)) as server,
            hanging_up(int(server.base.rpartition(":")[2]), times=2) as line,
            Client(line, retries=Retries(most=0)) as client,
        ):
            assert client.jobs.wait("j1", timeout=patience(30)) == job("done", 3)

    def test_time_ends_for_one_that_was_seen(self) -> None:
        with scripted(answer("running", 1)) as server, Client(server.base) as client:
            with pytest.raises(JobTimeout, match="job j1 of cards is running still") as raised:
                client.jobs.wait("j1", timeout=0.0)
            assert raised.value.job == job("running", 1)
            assert len(server.seen) == 1


@pytest.fixture
def service(tmp_path: Path, sqlite_template: Path) -> Iterator[Service]:
    """A server process, and a data set of many partitions."""
    (tmp_path / "jobs.db").write_bytes(sqlite_template.read_bytes())
    (tmp_path / "out").mkdir()
    posteriors = scores(np.random.default_rng(0), 5, 0.3)[1]
    first = tmp_path / "data" / "some" / "0.parquet"
    write(first, np.tile(posteriors, (ROWS // 5, 1)))
    for k in range(1, PARTITIONS):
        shutil.copyfile(first, first.with_name(f"{k}.parquet"))
    port = free_port()
    made = Service(tmp_path, port, started(tmp_path, port))
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()


def test_a_server_killed_meanwhile_is_not_noticed(service: Service) -> None:
    given, target = validation(), {"legit": 0.9, "fraud": 0.1}
    back = threading.Thread(target=service.start)
    partitions: list[int] = []

    async def beside(job: Job) -> tuple[Moment, Job]:
        async with AsyncClient(service.url) as client:
            moments = [moment async for moment in client.jobs.follow(job)]
            return moments[-1], await client.jobs.wait(job.id)

    with Client(service.url) as client, ThreadPoolExecutor() as pool:
        client.models.create("cards", CLASSES, Source(given["labels"], given["posteriors"]))
        made = client.jobs.adjust("cards", "some/", "out", target_priors=target)
        waiting = pool.submit(client.jobs.wait, made)
        following = pool.submit(lambda: asyncio.run(beside(made)))
        for moment in client.jobs.follow(made):
            partitions.append(moment.partitions)
            if moment.state != "queued" and back.ident is None:
                assert moment.state == "running"
                service.process.kill()
                service.process.wait()
                service.run_out(made.id)
                back.start()
        back.join()
        assert moment.state == "done"
        assert (moment.job.rows, moment.job.files) == (ROWS * PARTITIONS, PARTITIONS)
        assert waiting.result(timeout=patience(30)) == moment.job
        assert following.result(timeout=patience(30)) == (moment, moment.job)
    assert partitions[-1] == PARTITIONS
