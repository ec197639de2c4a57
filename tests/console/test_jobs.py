"""priorshift job against a real server process, which goes and comes back, and in place."""

import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import sqlalchemy as sa

from app.cli import main
from models_store.engine import connect
from models_store.jobs import JOB
from models_store.records import TaskRecord
from models_store.store import Store
from models_store.tables import tasks
from tests.api.sources import CLASSES, register, scores, validation
from tests.console.test_commands import PRIORSHIFT, run
from tests.end_to_end.processes import free_port, ready
from tests.jobs.places import fill, write

MANY = 3000
"""Partitions that take longer than any of these tests looks at them."""


@dataclass
class Service:
    """A server process on a folder of data sets; it can be ended and started again."""

    folder: Path
    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def given(self) -> dict[str, str]:
        return {**os.environ, "PRIORSHIFT_URL": self.url}

    @property
    def in_place(self) -> dict[str, str]:
        return environment(self.folder)

    def get(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(self.url + path).json()
        return found

    def jobs(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.get("/v1/jobs")["items"]
        return items

    def wait(self, id: str, *states: str, started: bool = False) -> dict[str, Any]:
        """The job in one of these states, with a partition done if ``started``."""
        deadline = time.monotonic() + 30
        while True:
            job = self.get(f"/v1/jobs/{id}")
            begun = job["progress"] is not None and job["progress"]["partitions"] > 0
            if job["state"] in states and (begun or not started):
                return job
            assert time.monotonic() < deadline, job
            time.sleep(0.05)

    def newest(self, count: int) -> str:
        """The id of the job that is one more than ``count``."""
        deadline = time.monotonic() + 30
        while len(items := self.jobs()) <= count:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return str(items[0]["id"])

    def cancel(self, id: str) -> None:
        httpx.delete(f"{self.url}/v1/jobs/{id}")
        self.wait(id, "cancelled")

    def task(self, id: str) -> TaskRecord:
        with self.store() as store, store.read() as unit:
            found = unit.tasks.get(JOB, id)
        assert found is not None
        return found

    def run_out(self, id: str) -> None:
        """Have a job's lease run out."""
        engine = connect(self.in_place["PRIORSHIFT_DATABASE_URL"])
        with engine.begin() as connection:
            long_ago = datetime.now(UTC) - timedelta(hours=1)
            mine = sa.update(tasks).where(tasks.c.kind == JOB, tasks.c.key == id)
            connection.execute(mine.values(due_at=long_ago))
        engine.dispose()

    def wait_for_another(self, id: str) -> None:
        """Until a job is taken for a second time."""
        deadline = time.monotonic() + 30
        while self.task(id).attempts < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    @contextmanager
    def store(self) -> Iterator[Store]:
        opened = Store(connect(self.in_place["PRIORSHIFT_DATABASE_URL"]))
        try:
            yield opened
        finally:
            opened.close()

    def restart(self) -> None:
        self.process.terminate()
        assert self.process.wait(timeout=30) in (0, -signal.SIGTERM)
        self.start()

    def start(self) -> None:
        self.process = started(self.folder, self.port)


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PRIORSHIFT_DATABASE_URL": f"sqlite:///{folder / 'jobs.db'}",
        "PRIORSHIFT_DATA_ROOTS": json.dumps([str(folder / "data")]),
        "PRIORSHIFT_OUTPUT_ROOT": str(folder / "out"),
    }


def started(folder: Path, port: int) -> "subprocess.Popen[bytes]":
    command = [*PRIORSHIFT, "serve", "--port", str(port), "--log-level", "error"]
    process = subprocess.Popen(command, env=environment(folder))
    ready(f"http://127.0.0.1:{port}", process)
    return process


@pytest.fixture(scope="module")
def service(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "jobs.db").write_bytes(sqlite_template.read_bytes())
    (folder / "out").mkdir()
    fill(folder / "data")
    labels, posteriors = scores(np.random.default_rng(9), 800, 0.2)
    write(folder / "data" / "labelled.parquet", posteriors, truth=[CLASSES[k] for k in labels])
    write(folder / "data" / "same.parquet", posteriors)
    write(folder / "data" / "many" / "0.parquet", posteriors[:5])
    content = (folder / "data" / "many" / "0.parquet").read_bytes()
    for k in range(1, MANY):
        (folder / "data" / "many" / f"{k}.parquet").write_bytes(content)
    port = free_port()
    made = Service(folder, port, started(folder, port))
    try:
        with httpx.Client(base_url=made.url, timeout=60) as client:
            register(client, "cards", {"validation": validation(2000)})
            client.put("/v1/models/cards/aliases/champion", json={"version": 1})
        yield made
    finally:
        made.process.terminate()
        made.process.wait(timeout=30)


def job(given: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    return run(given, "job", *words)


def background(given: dict[str, str], *words: str) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    command = [*PRIORSHIFT, "job", *words]
    return subprocess.Popen(
        command, env={**given, "COLUMNS": "200"}, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


SCORES = ("--dataset", "scores/*.parquet", "--model", "cards@champion")
LONG = ("run", "adjust", "--dataset", "many/", "--model", "cards", "--target-priors",
        "legit=0.9,fraud=0.1", "--output")  # fmt: skip


class Terminal:
    """A command with a terminal of its own, and what it has shown there."""

    def __init__(self, given: dict[str, str], *words: str) -> None:
        self.shown = ""
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [*PRIORSHIFT, "job", *words],
            env={**given, "TERM": "xterm", "COLUMNS": "120"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)

    def until(self, text: str) -> None:
        """Read until it shows ``text``, and forget what came before."""
        deadline = time.monotonic() + 30
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            if select.select([self._master], [], [], 1.0)[0]:
                self.shown += os.read(self._master, 65536).decode(errors="replace")
        self.shown = self.shown.partition(text)[2]

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> int:
        """Its status, when all is read."""
        with suppress(OSError):  # so a terminal ends
            while more := os.read(self._master, 65536):
                self.shown += more.decode(errors="replace")
        os.close(self._master)
        return self.process.wait(timeout=30)


def told(done: "subprocess.CompletedProcess[str]") -> str:
    return " ".join(done.stderr.split())


def shares(estimate: dict[str, Any]) -> dict[str, float]:
    return {row["class"]: row["estimate"] for row in estimate["prevalence"]}


class TestRun:
    def test_estimates_of_groups(self, service: Service) -> None:
        found = job(
            service.given, "run", "estimate", *SCORES, "--group-by", "country", "--fail-on-shift"
        )
        assert found.returncode == 3, found.stderr
        assert ": queued" in found.stderr
        assert ": done, round" in found.stderr
        made = service.jobs()[0]
        assert made["asked"]["alias"] == "champion"
        for item in made["estimates"]:
            kept = service.get(f"/v1/estimates/{item['estimate']}")
            (line,) = [
                x for x in found.stdout.splitlines() if x.startswith(item["group"]["country"])
            ]
            assert f"{shares(kept)['legit']:.4f}" in line
            assert f"{kept['prevalence'][0]['lower']:.4f}" in line
            assert f"p = {item['holm_p_value']:.2g}" in line

    def test_everything_that_can_be_said(self, service: Service) -> None:
        found = job(
            service.given, "run", "estimate", "--dataset", "scores/", "--model", "cards@1",
            "--filter", "country = 'NL'", "--method", "acc-qp", "--on-error", "skip",
            "--column", "legit=legit", "--column", "fraud=fraud", "--json",
        )  # fmt: skip
        assert found.returncode == 0, found.stderr
        answer = json.loads(found.stdout)
        assert answer == service.get(f"/v1/jobs/{answer['id']}")
        assert (answer["state"], answer["rows"]) == ("done", 368)
        assert answer["asked"] == {
            "kind": "estimate",
            "model": "cards",
            "version": 1,
            "method": "acc-qp",
            "dataset": {
                "path": "scores/",
                "columns": {"legit": "legit", "fraud": "fraud"},
                "filter": "country = 'NL'",
                "on_error": "skip",
            },
        }


class TestFollow:
    def test_through_a_restart_of_the_service(self, service: Service) -> None:
        before = len(service.jobs())
        follower = background(service.given, *LONG, "restarted")
        id = service.newest(before)
        service.wait(id, "running", started=True)
        service.restart()
        out, error = follower.communicate(timeout=60)
        assert follower.returncode == 0, error
        assert f"{5 * MANY} rows in {MANY} files in restarted" in out
        assert "nobody answers; waiting" in error
        assert len(list((service.folder / "out" / "restarted").glob("part-*.parquet"))) == MANY
        progress = service.get(f"/v1/jobs/{id}")["progress"]
        assert progress["partitions"] == MANY

    def test_detached_shown_cancelled_and_followed(self, service: Service) -> None:
        made = job(service.given, *LONG, "detached", "--detach", "--json")
        assert made.returncode == 0, made.stderr
        id = json.loads(made.stdout)["id"]
        service.wait(id, "running", started=True)
        shown = job(service.given, "show", id)
        assert "running" in shown.stdout
        assert f"/{MANY} partitions, " in shown.stdout
        cancelled = job(service.given, "cancel", id)
        assert f"job {id}: cancelling" in cancelled.stdout
        followed = job(service.given, "follow", id)
        assert followed.returncode == 1, followed.stdout
        assert "cancelled" in followed.stdout
        listed = job(service.given, "list", "--limit", "1")
        assert [word in listed.stdout for word in (id, "many/", "cancelled")] == [True] * 3

    def test_an_interrupt_without_a_terminal_detaches(self, service: Service) -> None:
        before = len(service.jobs())
        follower = background(service.given, *LONG, "unasked")
        id = service.newest(before)
        service.wait(id, "running", started=True)
        follower.send_signal(signal.SIGINT)
        out, error = follower.communicate(timeout=30)
        assert (follower.returncode, out) == (1, "")
        assert error.splitlines()[-1] == f"the job goes on; priorshift job follow {id}"
        assert service.get(f"/v1/jobs/{id}")["state"] == "running"
        service.cancel(id)


class TestInterrupt:
    def test_asks_and_goes_on_or_cancels(self, service: Service) -> None:
        terminal = Terminal(service.given, *LONG, "asked")
        terminal.until(f"/{MANY} partitions")
        terminal.interrupt()
        terminal.until("(Enter)?")
        terminal.type("\n")
        terminal.until(f"/{MANY} partitions")
        terminal.interrupt()
        terminal.until("(Enter)?")
        terminal.type("c\n")
        assert terminal.end() == 1
        assert "cancelled" in terminal.shown
        assert service.jobs()[0]["state"] == "cancelled"

    def test_twice_detaches(self, service: Service) -> None:
        terminal = Terminal(service.given, *LONG, "twice")
        terminal.until(f"/{MANY} partitions")
        terminal.interrupt()
        terminal.until("(Enter)?")
        terminal.interrupt()
        terminal.until("the job goes on; priorshift job follow")
        assert terminal.end() == 1
        newest = service.jobs()[0]
        assert newest["state"] == "running"
        service.cancel(newest["id"])


class TestInPlace:
    def test_says_the_same_and_is_in_the_list(self, service: Service) -> None:
        words = ("run", "estimate", *SCORES)
        there = background(service.given, *words)
        here = job(service.in_place, *words, "--local")
        out, error = there.communicate(timeout=30)
        assert (here.returncode, there.returncode) == (0, 0), here.stderr + error
        assert here.stdout.splitlines()[1:] == out.splitlines()[1:]
        assert [item["state"] for item in service.jobs()[:2]] == ["done", "done"]

    def test_from_the_folder_that_one_is_in(self, service: Service) -> None:
        given = {k: v for k, v in service.in_place.items() if not k.endswith(("ROOTS", "ROOT"))}
        found = subprocess.run(
            [*PRIORSHIFT, "job", "run", "adjust", "--dataset", "scores/", "--model", "cards@1",
             "--output", "adjusted", "--local", "--json"],
            env=given, cwd=service.folder / "data", capture_output=True, text=True, check=False,
            timeout=60,
        )  # fmt: skip
        assert found.returncode == 0, found.stderr
        assert json.loads(found.stdout)["files"] == 3
        assert len(list((service.folder / "data" / "adjusted").glob("*.parquet"))) == 3

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_what_ends_politely_is_gone_on_with_by_a_server(
        self, service: Service, number: signal.Signals
    ) -> None:
        output = f"left{number}"
        before = len(service.jobs())
        process = background(service.in_place, *LONG, output, "--local")
        id = service.newest(before)
        service.wait(id, "running", started=True)
        assert service.task(id).attempts == 1
        process.send_signal(number)
        error = process.communicate(timeout=30)[1]
        assert process.returncode == 1, error
        assert "a server on this database goes on" in " ".join(error.split())
        service.wait_for_another(id)
        service.cancel(id)

    def test_what_is_killed_is_gone_on_with_when_its_lease_runs_out(self, service: Service) -> None:
        before = len(service.jobs())
        process = background(service.in_place, *LONG, "killed", "--local")
        id = service.newest(before)
        service.wait(id, "running", started=True)
        owner = service.task(id).owner
        process.kill()
        process.communicate(timeout=30)
        left = service.task(id)
        assert (left.owner, left.attempts) == (owner, 1)
        service.run_out(id)
        done = service.wait(id, "done")
        assert (done["rows"], done["files"]) == (5 * MANY, MANY)


MISTAKES = [
    (["run", "estimate", "--dataset", "scores/", "--model", "nobody"], "no model named nobody"),
    (["run", "estimate", "--dataset", "../x", "--model", "cards"], "/dataset/path"),
    (["run", "estimate", *SCORES, "--filter", "country ="], "/dataset/filter"),
    (["run", "estimate", *SCORES, "--output", "x"], "output does not belong to"),
    (["run", "estimate", "--dataset", "scores/", "--model", "cards@"], "name an alias"),
    (["run", "estimate", *SCORES, "--column", "legit"], "--column legit: write CLASS=VALUE"),
    (["run", "adjust", *SCORES, "--target-priors", "legit=a,fraud=b"], "CLASS=SHARE"),
    (["run", "adjust", *SCORES, "--target-priors", "legit=1,legit=0"], "is there twice"),
    (["run", "dance", *SCORES], "'dance' is not one of"),
    (["run", "estimate", *SCORES, "--local", "--detach"], "nothing to --detach from"),
    (["show", "0" * 32], "there is no job 0000"),
    (["follow", "../models/cards"], "there is nothing at this address"),
    (["cancel", "nothing"], "there is no job"),
    (["list", "--state", "lost"], "state"),
]


@pytest.mark.parametrize(("words", "message"), MISTAKES)
def test_mistakes_are_status_2_and_one_line(
    service: Service,
    words: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PRIORSHIFT_URL", service.url)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("sys.argv", ["priorshift", "job", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_job_that_fails_is_status_2(service: Service) -> None:
    wrong = scores(np.random.default_rng(3), 50, 0.3)[1]
    wrong[7] = [0.9, 0.3]
    write(service.folder / "data" / "wrong" / "part9.parquet", wrong)
    found = job(service.given, "run", "estimate", "--dataset", "wrong/", "--model", "cards")
    assert found.returncode == 2, found.stdout
    assert "part9.parquet" in told(found)
