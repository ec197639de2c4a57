"""Several server processes on one address, and the parent that keeps them going.

They share the listening socket and the database, nothing else.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from app import metrics
from app.logs import log
from app.operations.server import STARTUP_FAILURE

BACKLOG = 2048
PAUSE_SECONDS = 1.0
"""Between the end of a worker and the next, so that a broken one does not spin."""


def listening(host: str, port: int) -> socket.socket:
    """A socket that children inherit; ``OSError`` where the address is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.create_server((host, port), family=family, backlog=BACKLOG)
    bound.set_inheritable(True)
    return bound


@dataclass
class Workers:
    """``count`` processes that run ``command``; one that ends is replaced until a signal comes."""

    command: Sequence[str]
    count: int
    descriptor: int
    metrics: Path
    _running: dict[int, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    _stopping: bool = False

    def run(self) -> int:
        """Until a signal; the exit status."""
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, self._stop)
        for _ in range(self.count):
            self._start()
        status = 0
        while self._running:
            pid, code = os.waitpid(-1, 0)
            if self._running.pop(pid, None) is None:
                continue
            status = os.waitstatus_to_exitcode(code)
            metrics.forget(self.metrics, pid)
            if status == STARTUP_FAILURE:
                self._stop()
            if not self._stopping:
                log.warning("worker ended", pid=pid, status=status)
                time.sleep(PAUSE_SECONDS)
                self._start()
        return STARTUP_FAILURE if status == STARTUP_FAILURE else 0

    def _start(self) -> None:
        if self._stopping:
            return
        environment = {**os.environ, metrics.FOLDER: str(self.metrics)}
        process = subprocess.Popen(  # noqa: S603
            self.command, pass_fds=[self.descriptor], env=environment
        )
        self._running[process.pid] = process

    def _stop(self, sig: int = signal.SIGTERM, frame: FrameType | None = None) -> None:
        """Tell every worker to finish what it has."""
        self._stopping = True
        for process in list(self._running.values()):
            process.send_signal(signal.SIGTERM)


def command(host: str, port: int, log_level: str, descriptor: int, anonymous: bool) -> list[str]:
    """What a worker runs."""
    own = [sys.executable, "-m", "app.cli", "serve", "--host", host, "--port", str(port)]
    worker = ["--worker", str(descriptor), str(os.getpid())]
    open_to_all = ["--allow-anonymous"] if anonymous else []
    return [*own, "--log-level", log_level, *open_to_all, *worker]
