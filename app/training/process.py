"""Runs the worker: one at a time, within a time, and never longer than the service itself.

TrainingError
├── TrainingBusy     others are being fitted, or wait; trying again helps
├── TrainingStopped  the worker ended without a result, or the service is stopping
├── TrainingTooLong  the time limit ended it
└── TrainingRefused  the worker says why the job cannot be done
"""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from app.core.arrays import AnyArray, Floats
from app.core.learners.trained import Training
from app.training import messages, serialization
from app.training.messages import Growth, Job, Learnt, Refitted

MOST_WAITING = 4
"""More requests than these would wait in threads that others need."""
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")
"""Environment of the worker; no addresses or passwords of databases."""
ROOT = Path(__file__).resolve().parents[2]
"""Where this package is found, also by a worker."""
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class TrainingError(Exception):
    """Root of what can go wrong here; the message is for the caller."""


class TrainingBusy(TrainingError):
    """It is not this request's turn yet."""


class TrainingStopped(TrainingError):
    """The worker ended without a result."""


class TrainingTooLong(TrainingError):
    """The time limit ended the worker."""


class TrainingRefused(TrainingError):
    """The worker cannot do the job."""


class Trainer:
    """Fits in worker processes; ``seconds`` for each, ``wait_seconds`` for one's turn."""

    def __init__(self, seconds: float = 300.0, wait_seconds: float = 30.0) -> None:
        self._seconds = seconds
        self._wait_seconds = wait_seconds
        self._turn = threading.Lock()
        self._places = threading.BoundedSemaphore(MOST_WAITING + 1)
        self._state = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until nobody else fits; ``TrainingBusy`` if that takes too long."""
        busy = TrainingBusy("other models are being fitted; try again later")
        if not self._places.acquire(blocking=False):
            raise busy
        try:
            if not self._turn.acquire(timeout=self._wait_seconds):
                raise busy
            try:
                yield
            finally:
                self._turn.release()
        finally:
            self._places.release()

    def learn(self, training: Training) -> Learnt:
        """Train, in one's turn."""
        return messages.learnt(*self._run(Job(training)))

    def refit(self, training: Training, batch: Floats, max_iterations: int) -> Refitted:
        """Iterate cde by refitting, in one's turn."""
        return messages.refitted(*self._run(Job(training, batch, max_iterations)))

    def grow(self, growth: Growth) -> dict[str, AnyArray]:
        """Grow a tree, or calibrate one, in one's turn; its arrays by name."""
        return self._run(growth)[1]

    def close(self) -> None:
        """End the worker that runs; no other starts."""
        with self._state:
            self._closed = True
            if self._process is not None:
                self._process.kill()

    def _run(self, job: Job | Growth) -> tuple[dict[str, object], dict[str, AnyArray]]:
        message = job.message()
        expired = threading.Event()
        with tempfile.TemporaryFile() as errors, self._worker(errors) as process:
            timer = threading.Timer(self._seconds, _expire, (process, expired))
            timer.start()
            try:
                result = _exchange(process, message)
            finally:
                timer.cancel()
            if expired.is_set():
                raise TrainingTooLong(
                    f"took longer than {self._seconds:g} seconds and was ended; send fewer rows "
                    "or folds, or ask for a smaller model"
                )
            if process.returncode != 0:
                raise TrainingStopped(self._reason(process.returncode, errors))
        content, arrays = serialization.decode(result)
        if "refused" in content:
            raise TrainingRefused(content["refused"])
        return content, arrays

    @contextmanager
    def _worker(self, errors: IO[bytes]) -> Iterator["subprocess.Popen[bytes]"]:
        command = [sys.executable, "-P", "-m", "app.training.worker"]
        with self._state:
            if self._closed:
                raise TrainingStopped("the service is stopping; try again later")
            process = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=_environment(),
            )
            self._process = process
        try:
            yield process
        finally:
            with self._state:
                self._process = None
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
            process.wait()

    def _reason(self, status: int, errors: IO[bytes]) -> str:
        if self._closed:
            return "the service is stopping; try again later"
        errors.seek(0)
        last = errors.read()[-2000:].decode(errors="replace").strip().rpartition("\n")[2][:300]
        how = f"with status {status}" if status > 0 else f"by signal {-status}"
        cause = last or "the machine may lack memory; send fewer rows or a smaller model"
        return f"the fitting process was ended {how}: {cause}"


def _exchange(process: "subprocess.Popen[bytes]", message: bytes) -> bytes:
    """Send a job and read the result; the input stays open, for the worker to watch."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.write(len(message).to_bytes(serialization.HEADER, "big"))
        process.stdin.write(message)
        process.stdin.flush()
    result = process.stdout.read()
    process.wait()
    return result


def _expire(process: "subprocess.Popen[bytes]", expired: threading.Event) -> None:
    expired.set()
    process.kill()


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**kept, **dict.fromkeys(ONE_THREAD, "1"), "PYTHONPATH": str(ROOT)}
