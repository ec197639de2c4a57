"""Server processes for tests."""

import os
import socket
import subprocess
import time
from itertools import cycle, islice
from pathlib import Path

import httpx

from tests.patience import Deadline, patience

WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
BLOCK = range(20_000 + 1_000 * (WORKER % 10), 21_000 + 1_000 * (WORKER % 10))
"""Ports of this worker's own, below those that the system gives to whoever asks for any."""
PORTS: "cycle[int]" = cycle([*BLOCK[os.getpid() % 1_000 :], *BLOCK[: os.getpid() % 1_000]])


def free_port() -> int:
    """A port that nobody listens on; nobody takes it while a server of a test is down."""
    for port in islice(PORTS, len(BLOCK)):
        with socket.socket() as listener:
            # As servers do: connections that have ended do not count.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


def caller(base: str) -> httpx.Client:
    """Of a server process; as patient as the machine is busy."""
    return httpx.Client(base_url=base, timeout=patience(60))


def ready(base: str, process: "subprocess.Popen[bytes]") -> None:
    """Wait until the server is ready."""
    deadline = Deadline(60)
    while not deadline.over():
        assert process.poll() is None, "the server ended"
        try:
            if httpx.get(f"{base}/readyz", timeout=patience(5)).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise AssertionError("the server did not become ready")


def runs(pid: int) -> bool:
    """Whether a process runs; one that ended and waits to be collected does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def children(pid: int) -> list[int]:
    """The processes that a process, or one of its threads, has started."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]
