"""A real server process for measurements, on an empty database."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

COMMAND = [sys.executable, "-m", "app.cli"]


@dataclass(frozen=True)
class Running:
    """Where a server listens, and its process."""

    base: str
    port: int
    pid: int


@contextmanager
def service(**settings: str) -> Iterator[Running]:
    """A server that runs with these settings, PRIORSHIFT_ left out."""
    with tempfile.TemporaryDirectory() as folder:
        configuration = {"database_url": f"sqlite:///{Path(folder) / 'service.db'}", **settings}
        environment = {
            **os.environ,
            **{f"PRIORSHIFT_{k.upper()}": v for k, v in configuration.items()},
        }
        subprocess.run([*COMMAND, "migrate"], env=environment, check=True)
        port = free_port()
        process = subprocess.Popen(
            [*COMMAND, "serve", "--port", str(port), "--log-level", "warning"], env=environment
        )
        running = Running(f"http://127.0.0.1:{port}", port, process.pid)
        try:
            _wait(running.base, process)
            yield running
        finally:
            process.terminate()
            process.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait(base: str, process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None:
        try:
            if httpx.get(f"{base}/readyz", timeout=60).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise RuntimeError("the server ended")
