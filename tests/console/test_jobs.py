"""priorshift job against a real server process, which goes and comes back, and in place."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
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
from models_store import backup as backups
from models_store.engine import connect
from models_store.jobs import JOB
from models_store.records import TaskRecord
from models_store.store import Store
from models_store.tables import tasks
from tests.api.sources import CLASSES, register, scores, validation
from tests.console.test_commands import PRIORSHIFT, run
from tests.end_to_end.processes import free_port, ready
from tests.jobs.places import fill, write
from tests.patience import Deadline, patience

MANY = 2000
"""Partitions that take longer than any of these tests looks at them."""
SOME = 400
"""Partitions that take long enough for a process to be ended meanwhile."""
ROWS = 100_000
"""Of each of them: the same five again and again, which take no room."""


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
        found: dict[str, Any] = httpx.get(self.url + path, timeout=patience(30)).json()
        return found

    def jobs(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.get("/v1/jobs")["items"]
        return items

    def wait(self, id: str, *states: str, started: bool = False) -> dict[str, Any]:
        """The job in one of these states, with a partition done if ``started``."""
        deadline = Deadline(30)
        while True:
            job = self.get(f"/v1/jobs/{id}")
            begun = job["progress"] is not None and job["progress"]["partitions"] > 0
            if job["state"] in states and (begun or not started):
                return job
            assert not deadline.over(), job
            time.sleep(0.05)

    def running(self, output: str) -> str:
        """The id of the job that writes there, once it runs."""
        deadline = Deadline(30)
        while True:
            for item in self.get("/v1/jobs?state=running")["items"]:
                if item["asked"].get("output") == output:
                    return str(item["id"])
            assert not deadline.over()
            time.sleep(0.02)

    def cancel(self, id: str) -> None:
        httpx.delete(f"{self.url}/v1/jobs/{id}", timeout=patience(30))
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
        deadline = Deadline(30)
        while self.task(id).attempts < 2:
            assert not deadline.over()
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
        assert self.process.wait(timeout=patience(30)) in (0, -signal.SIGTERM)
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
    for name, count in (("many", MANY), ("some", SOME)):
        first = folder / "data" / name / "0.parquet"
        write(first, np.tile(posteriors[:5], (ROWS // 5, 1)))
        for k in range(1, count):
            shutil.copyfile(first, first.with_name(f"{k}.parquet"))
    port = free_port()
    made = Service(folder, port, started(folder, port))
    try:
        with httpx.Client(base_url=made.url, timeout=patience(60)) as client:
            register(client, "cards", {"validation": validation(2000)})
            client.put("/v1/models/cards/aliases/champion", json={"version": 1})
        yield made
    finally:
        made.process.terminate()
        made.process.wait(timeout=patience(30))


def job(given: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    return run(given, "job", *words)


def background(given: dict[str, str], *words: str) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    command = [*PRIORSHIFT, "job", *words]
    return subprocess.Popen(
        command, env={**given, "COLUMNS": "200"}, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


SCORES = ("--dataset", "scores/*.parquet", "--model", "cards@champion")


def adjust(data: str, output: str) -> list[str]:
    """Long work: a file for each partition."""
    return ["adjust", "--dataset", data, "--model", "cards", "--output", output,
            "--target-priors", "legit=0.9,fraud=0.1"]  # fmt: skip


@dataclass
class Quick:
    """Commands within this process, which start at once."""

    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Status, and what was printed, without line breaks."""
        self.capsys.readouterr()
        self.monkeypatch.setattr("sys.argv", ["priorshift", "job", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = self.capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return code, " ".join(shown.out.split()), " ".join(shown.err.split())


@pytest.fixture
def quick(
    service: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Quick:
    monkeypatch.setenv("PRIORSHIFT_URL", service.url)
    monkeypatch.setenv("COLUMNS", "200")
    return Quick(capsys, monkeypatch)


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
        deadline = Deadline(30)
        while text not in self.shown:
            assert not deadline.over(), self.shown
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
        return self.process.wait(timeout=patience(30))


class TestRun:
    def test_estimates_of_groups(self, service: Service, quick: Quick) -> None:
        words = ("estimate", *SCORES, "--group-by", "country", "--fail-on-shift")
        status, out, error = quick(*words)
        assert status == 3, error
        assert ": done, round" in error
        made = service.jobs()[0]
        assert made["asked"]["alias"] == "champion"
        for item in made["estimates"]:
            kept = service.get(f"/v1/estimates/{item['estimate']}")
            first = kept["prevalence"][0]
            cells = [*item["group"].values(), item["size"], first["class"]]
            names = ("source", "counted", "estimate", "lower", "upper")
            cells += [f"{first[name]:.4f}" for name in names]
            assert " ".join(map(str, [*cells, f"p = {item['holm_p_value']:.2g}"])) in out

    def test_everything_that_can_be_said(self, service: Service, quick: Quick) -> None:
        status, out, error = quick(
            "estimate", "--dataset", "scores/", "--model", "cards@1",
            "--filter", "country = 'NL'", "--method", "acc-qp", "--on-error", "skip",
            "--column", "legit=legit", "--column", "fraud=fraud", "--json",
            "--segment", "shop=a=b", "--observed-at", "2026-01-31T12:00:00Z",
        )  # fmt: skip
        assert status == 0, error
        answer = json.loads(out)
        assert answer == service.get(f"/v1/jobs/{answer['id']}")
        assert (answer["state"], answer["rows"]) == ("done", 368)
        assert answer["asked"] == {
            "kind": "estimate",
            "model": "cards",
            "version": 1,
            "method": "acc-qp",
            "segment": {"shop": "a=b"},
            "observed_at": "2026-01-31T12:00:00Z",
            "dataset": {
                "path": "scores/",
                "columns": {"legit": "legit", "fraud": "fraud"},
                "filter": "country = 'NL'",
                "on_error": "skip",
            },
        }


class TestFollow:
    def test_through_a_restart_of_the_service(self, service: Service) -> None:
        with background(service.given, *adjust("some/", "restarted")) as follower:
            id = service.running("restarted")
            service.restart()
            out, error = follower.communicate(timeout=patience(60))
        assert follower.returncode == 0, error
        assert f"{ROWS * SOME} rows in {SOME} files in restarted" in out
        assert "nobody answers; waiting" in error
        assert len(list((service.folder / "out" / "restarted").glob("part-*.parquet"))) == SOME
        assert service.get(f"/v1/jobs/{id}")["progress"]["partitions"] == SOME

    def test_detached_shown_cancelled_and_followed(self, service: Service, quick: Quick) -> None:
        status, out, error = quick(*adjust("many/", "detached"), "--detach", "--json")
        assert status == 0, error
        id = json.loads(out)["id"]
        service.wait(id, "running", started=True)
        shown = quick("show", id)[1]
        assert f"job {id}: adjust of many/, running round 1, " in shown
        assert f"/{MANY} partitions, " in shown
        listed = quick("list", "--limit", "1", "--state", "running")[1]
        assert f"/{MANY} partitions, " in listed
        assert quick("cancel", id)[:2] == (0, f"job {id}: cancelling")
        status, out, error = quick("follow", id)
        assert (status, out) == (1, f"job {id}: adjust of many/, cancelled")
        assert error.endswith(f"job {id}: cancelled, round 1")
        assert "there is nothing to cancel" in quick("cancel", id)[2]

    def test_an_interrupt_without_a_terminal_detaches(self, service: Service) -> None:
        with background(service.given, *adjust("many/", "unasked")) as follower:
            id = service.running("unasked")
            follower.send_signal(signal.SIGINT)
            out, error = follower.communicate(timeout=patience(30))
        assert (follower.returncode, out) == (1, "")
        assert error.splitlines()[-1] == f"the job goes on; priorshift job follow {id}"
        service.cancel(id)


class TestInterrupt:
    def test_asks_and_goes_on_or_cancels(self, service: Service) -> None:
        terminal = Terminal(service.given, *adjust("many/", "asked"))
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
        terminal = Terminal(service.given, *adjust("many/", "twice"))
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
        words = ("estimate", *SCORES)
        with background(service.given, *words) as there:
            here = job(service.in_place, *words, "--local")
            out, error = there.communicate(timeout=patience(30))
        assert (here.returncode, there.returncode) == (0, 0), here.stderr + error
        assert here.stdout.splitlines()[1:] == out.splitlines()[1:]
        assert [item["state"] for item in service.jobs()[:2]] == ["done", "done"]

    def test_from_the_folder_that_one_is_in(self, service: Service) -> None:
        given = {k: v for k, v in service.in_place.items() if not k.endswith(("ROOTS", "ROOT"))}
        found = subprocess.run(
            [*PRIORSHIFT, "job", "adjust", "--dataset", "scores/", "--model", "cards@1",
             "--output", "adjusted", "--local", "--json"],
            env=given, cwd=service.folder / "data", capture_output=True, text=True, check=False,
            timeout=patience(60),
        )  # fmt: skip
        assert found.returncode == 0, found.stderr
        assert json.loads(found.stdout)["files"] == 3
        assert len(list((service.folder / "data" / "adjusted").glob("*.parquet"))) == 3

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_what_ends_politely_is_gone_on_with_by_a_server(
        self, service: Service, number: signal.Signals
    ) -> None:
        words = adjust("many/", f"left{number}")
        with background(service.in_place, *words, "--local") as process:
            id = service.running(f"left{number}")
            assert service.task(id).attempts == 1
            process.send_signal(number)
            error = process.communicate(timeout=patience(30))[1]
        assert process.returncode == 1, error
        assert "a server on this database goes on" in " ".join(error.split())
        service.wait_for_another(id)
        service.cancel(id)

    def test_what_was_left_is_gone_on_with_here(self, service: Service, tmp_path: Path) -> None:
        database = tmp_path / "alone.db"
        backups.save(service.in_place["PRIORSHIFT_DATABASE_URL"], database, False)
        alone = {
            **service.in_place,
            "PRIORSHIFT_DATABASE_URL": f"sqlite:///{database}",
            "PRIORSHIFT_OUTPUT_ROOT": str(tmp_path),
        }
        with background(alone, *adjust("some/", "resumed"), "--local") as process:
            while not list(tmp_path.glob("resumed/*.parquet")):
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            error = process.communicate(timeout=patience(30))[1]
        words = error.split()
        assert words[-4:-1] == ["priorshift", "job", "resume"]
        resumed = job(alone, "resume", words[-1])
        assert resumed.returncode == 0, resumed.stderr
        assert f"{ROWS * SOME} rows in {SOME} files in resumed" in resumed.stdout

    def test_what_is_killed_is_gone_on_with_when_its_lease_runs_out(self, service: Service) -> None:
        with background(service.in_place, *adjust("some/", "killed"), "--local") as process:
            id = service.running("killed")
            owner = service.task(id).owner
            process.kill()
        left = service.task(id)
        assert (left.owner, left.attempts) == (owner, 1)
        service.run_out(id)
        done = service.wait(id, "done")
        assert (done["rows"], done["files"]) == (ROWS * SOME, SOME)


SIGNALLED = """
import os, sys
from app.cli import main
from app.console import jobs
made, number = jobs._create, int(sys.argv.pop(1))
def then(service, body):
    answer = made(service, body)
    os.kill(os.getpid(), number)
    return answer
jobs._create = then
main()
"""
"""The command, sent a signal between the answer to its request and whatever comes next."""


class TestEndedAtOnce:
    def run(self, given: dict[str, str], number: int, *words: str) -> str:
        """What it says of the job, which goes on."""
        command = [sys.executable, "-c", SIGNALLED, str(int(number)), "job", *words]
        found = subprocess.run(
            command,
            env={**given, "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=patience(60),
        )
        assert (found.returncode, found.stdout) == (1, ""), found.stderr
        return " ".join(found.stderr.splitlines()[-1].split())

    def test_by_an_interrupt(self, service: Service) -> None:
        said = self.run(service.given, signal.SIGINT, *adjust("many/", "at-once"))
        (newest, *_) = service.jobs()
        assert newest["asked"]["output"] == "at-once"
        assert said == f"the job goes on; priorshift job follow {newest['id']}"
        service.cancel(newest["id"])

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_in_place(self, service: Service, number: signal.Signals) -> None:
        words = adjust("many/", f"at-once-{number}")
        said = self.run(service.in_place, number, *words, "--local")
        (newest, *_) = service.jobs()
        assert newest["asked"]["output"] == f"at-once-{number}"
        assert said.startswith("a server on this database goes on with the job")
        assert said.endswith(newest["id"])
        service.wait_for_another(newest["id"])
        service.cancel(newest["id"])


OUT = (*SCORES, "--output", "x")
MISTAKES = [
    (["estimate", "--dataset", "scores/", "--model", "nobody"], "no model named nobody"),
    (["estimate", "--dataset", "../x", "--model", "cards"], "/dataset/path"),
    (["estimate", *SCORES, "--filter", "country ="], "/dataset/filter"),
    (["estimate", *SCORES, "--output", "x"], "No such option: --output"),
    (["estimate", "--dataset", "scores/", "--model", "cards@"], "name an alias"),
    (["estimate", *SCORES, "--column", "legit"], "--column legit: write CLASS=VALUE"),
    (["estimate", *SCORES, "--segment", "shop"], "--segment shop: write KEY=VALUE"),
    (["estimate", *SCORES, *["--segment", "a=1"] * 2], "a is there twice"),
    (["estimate", *SCORES, "--observed-at", "now"], "/observed_at"),
    (["adjust", *SCORES], "Missing option '--output'"),
    (["adjust", *OUT, "--target-priors", "legit=a,fraud=b"], "CLASS=SHARE"),
    (["adjust", *OUT, "--target-priors", "legit=1,legit=0"], "is there twice"),
    (["adjust", *OUT, "--segment", "a=1"], "No such option: --segment"),
    (["register", *SCORES], "Missing option '--label'"),
    (["register", *SCORES, "--label", "truth"], "leave version and alias out"),
    (["dance", *SCORES], "No such command 'dance'"),
    (["estimate", *SCORES, "--local", "--detach"], "nothing to --detach from"),
    (["show", "0" * 32], "there is no job 0000"),
    (["follow", "../models/cards"], "there is nothing at this address"),
    (["cancel", "nothing"], "there is no job"),
    (["list", "--state", "lost"], "state"),
]


@pytest.mark.parametrize(("words", "message"), MISTAKES)
def test_mistakes_are_status_2(quick: Quick, words: list[str], message: str) -> None:
    status, out, error = quick(*words)
    assert (status, out) == (2, "")
    assert message in error


def test_a_job_that_fails_is_status_2(service: Service, quick: Quick) -> None:
    wrong = scores(np.random.default_rng(3), 50, 0.3)[1]
    wrong[7] = [0.9, 0.3]
    write(service.folder / "data" / "wrong" / "part9.parquet", wrong)
    status, out, error = quick("estimate", "--dataset", "wrong/", "--model", "cards")
    assert (status, out) == (2, "")
    assert "part9.parquet" in error.rpartition("priorshift:")[2]
    assert quick("list", "--state", "failed")[1].endswith("wrong/ failed")
