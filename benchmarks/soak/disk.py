"""A disk that is full, and one that cannot be written to: a small file system of our own."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.soak.ledger import BATCH, CLASSES
from benchmarks.soak.servers import Service, migrated

ADDRESS = "/v1/models/m/versions/1/estimates"
SIZE = 4 * 1024 * 1024


class NoMount(RuntimeError):
    """This process may not mount."""


@dataclass(frozen=True)
class Answered:
    """What was said, and how many estimates were acknowledged and are there."""

    detail: str
    status: int
    acknowledged: int
    there: int
    recovered: bool
    reads: int


@contextmanager
def mounted(folder: Path) -> Iterator[Path]:
    """A file system of ``SIZE`` bytes in memory."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)]
    if _run("mount", *options) != 0:
        raise NoMount("mounting takes root, and a machine that allows it")
    try:
        yield folder
    finally:
        _run("umount", "-l", str(folder))


def _run(*command: str) -> int:
    return subprocess.run(command, capture_output=True, check=False).returncode


def full(folder: Path) -> Answered:
    """Fill the disk under a service that writes; then make room."""
    with mounted(folder) as disk:
        service = Service(migrated(f"sqlite:///{disk / 'service.db'}"))
        with service.running():
            filler = disk / "filler"

            def fill() -> None:
                used = sum(file.stat().st_size for file in disk.iterdir())
                filler.write_bytes(bytes(max(SIZE - used - 200_000, 0)))

            return _tried(service, fill, filler.unlink)


def read_only(folder: Path) -> Answered:
    """Start the service on a database that it can only read; then let it write."""
    with mounted(folder) as disk:
        service = Service(migrated(f"sqlite:///{disk / 'service.db'}"))
        with service.running():
            acknowledged = _begun(service)
        _run("mount", "-o", "remount,ro", str(disk))
        service.start()
        try:
            with httpx.Client(base_url=service.base, timeout=30) as http:
                failed = _when_it_answers(http)
                reads = http.get(acknowledged[0]).status_code
                _run("mount", "-o", "remount,rw", str(disk))
                again = (http.post(ADDRESS, json={"posteriors": BATCH}) for _ in range(5))
                recovered = any(answer.status_code == 201 for answer in again)
                there = sum(http.get(one).status_code == 200 for one in acknowledged)
        finally:
            service.stop()
    detail = failed.json().get("detail", "")
    return Answered(detail, failed.status_code, len(acknowledged), there, recovered, reads)


def _when_it_answers(http: httpx.Client) -> httpx.Response:
    for _ in range(600):
        try:
            return http.post(ADDRESS, json={"posteriors": BATCH})
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError("the service does not answer")


def _begun(service: Service) -> list[str]:
    """A model with one estimate."""
    with httpx.Client(base_url=service.base, timeout=30) as http:
        source = {"priors": {"legit": 0.9, "fraud": 0.1}}
        first = {"name": "m", "classes": CLASSES, "source": source}
        http.post("/v1/models", json=first).raise_for_status()
        return [http.post(ADDRESS, json={"posteriors": BATCH}).headers["location"]]


def _tried(service: Service, breaks: Callable[[], object], mends: Callable[[], object]) -> Answered:
    acknowledged = _begun(service)
    with httpx.Client(base_url=service.base, timeout=30) as http:

        def ask() -> httpx.Response:
            segment = {"x": "y" * 200}
            answer = http.post(ADDRESS, json={"posteriors": BATCH, "segment": segment})
            if answer.status_code == 201:
                acknowledged.append(answer.headers["location"])
            return answer

        breaks()
        for _ in range(5000):
            failed = ask()
            if failed.status_code >= 400:
                break
        reads = http.get(acknowledged[0]).status_code
        mends()
        recovered = any(ask().status_code == 201 for _ in range(20))
        there = sum(http.get(one).status_code == 200 for one in acknowledged)
    detail = failed.json().get("detail", "")
    return Answered(detail, failed.status_code, len(acknowledged), there, recovered, reads)
