"""Several workers on one address."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.end_to_end.processes import children, free_port, ready, runs
from tests.patience import Deadline, patience

SERVE = [sys.executable, "-m", "app.cli", "serve", "--log-level", "warning"]


@dataclass(frozen=True)
class Served:
    process: "subprocess.Popen[bytes]"
    base: str

    # A connection for each: which worker answers is not known.
    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.base + path, timeout=patience(30))

    def post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        return httpx.post(self.base + path, json=body, timeout=patience(30))


@pytest.fixture
def served(sqlite_url: str) -> Iterator[Served]:
    port = free_port()
    process = subprocess.Popen(
        [*SERVE, "--port", str(port), "--workers", "2"],
        env={**os.environ, "PRIORSHIFT_DATABASE_URL": sqlite_url},
    )
    base = f"http://127.0.0.1:{port}"
    try:
        ready(base, process)
        yield Served(process, base)
    finally:
        process.kill()
        process.wait()


def until(seconds: float = 30) -> Iterator[None]:
    deadline = Deadline(seconds)
    while not deadline.over():
        yield
        time.sleep(0.1)
    raise AssertionError("it did not come")


def test_a_worker_that_dies_is_replaced_and_a_signal_ends_them_all(served: Served) -> None:
    body = {"name": "m", "classes": ["a", "b"], "source": {"priors": {"a": 0.5, "b": 0.5}}}
    assert served.post("/v1/models", body).status_code == 201
    first = children(served.process.pid)
    assert len(first) == 2
    os.kill(first[0], signal.SIGKILL)
    for _ in until():
        now = children(served.process.pid)
        if len(now) == 2 and first[0] not in now:
            break
    for _ in until():  # the new one has told its limits, the last of them last
        if 'limit{lane="inflating"} 128.0' in served.get("/metrics").text:
            break
    for _ in range(40):
        answer = served.post("/v1/models/m/versions/1/estimates", {"posteriors": [[0.5, 0.5]]})
        assert answer.status_code == 201
    assert len(served.get("/v1/estimates?limit=100").json()["items"]) == 40
    for _ in range(8):
        told = served.get("/metrics").text
        assert 'priorshift_estimates_total{method="mle",model="m",version="1"} 40.0' in told
        assert 'priorshift_slots_in_use{lane="small"} 0.0' in told
        # Of the two that run: the one that was killed holds nothing any more.
        assert "priorshift_workers 2.0" in told
        assert 'priorshift_queue_limit{lane="small"} 128.0' in told
        assert "priorshift_database_connections_limit 40.0" in told
    served.process.terminate()
    assert served.process.wait(timeout=patience(40)) == 0
    assert not any(runs(pid) for pid in now)


def test_signing_out_is_felt_by_every_worker_at_once(sqlite_url: str, tmp_path: Path) -> None:
    file, port = tmp_path / "admin-key", free_port()
    file.write_text("k" * 64)
    given = {"PRIORSHIFT_DATABASE_URL": sqlite_url, "PRIORSHIFT_ADMIN_KEY_FILE": str(file)}
    process = subprocess.Popen(
        [*SERVE, "--port", str(port), "--workers", "2"], env={**os.environ, **given}
    )
    base, own = f"http://127.0.0.1:{port}", {"Sec-Fetch-Site": "same-origin"}
    try:
        ready(base, process)
        signed = httpx.post(f"{base}/sign-in", data={"key": "k" * 64}, headers=own, timeout=60)
        cookie = {"Cookie": signed.headers["set-cookie"].partition(";")[0]}

        def statuses() -> set[int]:
            address = f"{base}/v1/models"
            return {httpx.get(address, headers=cookie, timeout=60).status_code for _ in range(20)}

        assert statuses() == {200}
        left = httpx.post(f"{base}/sign-out", headers={**own, **cookie}, timeout=60)
        assert left.status_code == 303
        assert statuses() == {401}
    finally:
        process.terminate()
        process.wait(timeout=60)


def test_workers_do_not_outlive_their_parent(served: Served) -> None:
    own = children(served.process.pid)
    served.process.kill()
    served.process.wait()
    for _ in until():
        if not any(runs(pid) for pid in own):
            break


def test_an_address_that_is_taken_is_one_line(served: Served, sqlite_url: str) -> None:
    port = served.base.rpartition(":")[2]
    found = subprocess.run(
        [*SERVE, "--port", port, "--workers", "2"],
        env={**os.environ, "PRIORSHIFT_DATABASE_URL": sqlite_url},
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(60),
    )
    assert found.returncode == 2
    assert "in use" in found.stderr
    assert "Traceback" not in found.stderr
