"""A server that stops, or is killed, leaves no fit behind."""

import os
import signal
import subprocess
import sys
import threading
import time

import httpx
import pytest

from tests.api.sources import CLASSES
from tests.api.trained import training
from tests.end_to_end.processes import children, free_port, ready, runs
from tests.patience import Deadline, patience

SLOW = training("random-forest", count=4000, parameters={"n_estimators": 1000})


def wait_for(process: int, running: bool) -> list[int]:
    """The fits that a server runs, once there are some or none."""
    deadline = Deadline(20)
    while not deadline.over():
        found = children(process)
        if bool(found) == running:
            return found
        time.sleep(0.02)
    raise AssertionError("it took too long")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_fit_ends_with_its_server(sqlite_url: str, how: signal.Signals) -> None:
    port = free_port()
    environment = {**os.environ, "PRIORSHIFT_DATABASE_URL": sqlite_url}
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(port)]
    server = subprocess.Popen([*command, "--log-level", "error"], env=environment)
    sent = {"name": "slow", "classes": CLASSES, "source": {"training": SLOW}}
    statuses: list[int | None] = []

    def post() -> None:
        try:
            answer = httpx.post(
                f"http://127.0.0.1:{port}/v1/models", json=sent, timeout=patience(60)
            )
            statuses.append(answer.status_code)
        except httpx.TransportError:
            statuses.append(None)

    try:
        ready(f"http://127.0.0.1:{port}", server)
        thread = threading.Thread(target=post)
        thread.start()
        fits = wait_for(server.pid, running=True)
        began = time.monotonic()
        server.send_signal(how)
        server.wait(timeout=patience(30))
        thread.join()
        assert time.monotonic() - began < patience(10)
        assert statuses == [503 if how == signal.SIGTERM else None]
        while any(map(runs, fits)):
            assert time.monotonic() - began < patience(20)
            time.sleep(0.02)
    finally:
        server.kill()
        server.wait()
