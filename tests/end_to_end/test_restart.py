"""Whatever was acknowledged survives SIGTERM and SIGKILL, on both databases."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.api.sources import CLASSES
from tests.end_to_end.processes import caller, free_port, ready
from tests.patience import patience, until


class Server:
    """`priorshift serve`, as a process."""

    def __init__(self, url: str) -> None:
        self._environment = {**os.environ, "PRIORSHIFT_DATABASE_URL": url}
        self._port = free_port()
        self.base = f"http://127.0.0.1:{self._port}"

    @contextmanager
    def running(self) -> Iterator["subprocess.Popen[bytes]"]:
        command = [sys.executable, "-m", "app.cli", "serve", "--port", str(self._port)]
        quiet = ["--log-level", "error"]
        process = subprocess.Popen([*command, *quiet], env=self._environment)
        try:
            ready(self.base, process)
            yield process
        finally:
            process.kill()
            process.wait()


def write_until_it_stops(base: str, prefix: str, versions: list[str], estimates: list[str]) -> None:
    """Register and estimate; note what was acknowledged."""
    with httpx.Client(base_url=base, timeout=patience(10)) as client:
        for k in range(1, 100_000):
            share = k / 1_000_000
            source = {"priors": {"legit": 1 - share, "fraud": share}, "metadata": {"by": prefix}}
            try:
                answer = client.post(
                    f"/v1/models/{prefix}/versions",
                    json={"source": source},
                    headers={"Idempotency-Key": f"v{k}"},
                )
                if answer.status_code != 201:
                    return
                versions.append(answer.headers["location"])
                answer = client.post(
                    f"{versions[-1]}/estimates",
                    json={"posteriors": [[0.4, 0.6]]},
                    headers={"Idempotency-Key": f"e{k}"},
                )
                if answer.status_code != 201:
                    return
                estimates.append(answer.headers["location"])
            except httpx.TransportError:
                return


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_acknowledged_is_lost(database_url: str, how: signal.Signals) -> None:
    server = Server(database_url)
    names = ["first", "second"]
    acknowledged: dict[str, tuple[list[str], list[str]]] = {name: ([], []) for name in names}
    with server.running() as process:
        with caller(server.base) as client:
            for name in names:
                client.post("/v1/models", json={"name": name, "classes": CLASSES})
        threads = [
            threading.Thread(
                target=write_until_it_stops, args=(server.base, name, *acknowledged[name])
            )
            for name in names
        ]
        for thread in threads:
            thread.start()
        time.sleep(1.0)
        until(lambda: all(len(done) > 3 for _, done in acknowledged.values()))
        process.send_signal(how)
        for thread in threads:
            thread.join()
        status = process.wait(timeout=patience(30))
        assert status in (0, -how)
    with server.running(), caller(server.base) as client:
        for name in names:
            versions, estimates = acknowledged[name]
            assert len(versions) > 3
            assert len(estimates) > 3
            for path in (*versions, *estimates):
                assert client.get(path).status_code == 200, path
            numbers = client.get(f"/v1/models/{name}").json()["versions"]
            assert numbers - len(versions) in (0, 1)
            last = len(versions)
            share = last / 1_000_000
            source = {"priors": {"legit": 1 - share, "fraud": share}, "metadata": {"by": name}}
            again = client.post(
                f"/v1/models/{name}/versions",
                json={"source": source},
                headers={"Idempotency-Key": f"v{last}"},
            )
            assert again.headers["idempotency-replayed"] == "true"
            assert again.headers["location"] == versions[-1]
