"""priorshift job against a real server process, which goes and comes back, and in place."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

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


SCORES = ("--dataset", "scores/*.parquet", "--model", "cards@champion")
LONG = ("run", "adjust", "--dataset", "many/", "--model", "cards", "--target-priors",
        "legit=0.9,fraud=0.1", "--output")  # fmt: skip


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
