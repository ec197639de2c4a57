"""What bystanders feel, and what the server's memory does, while somebody attacks it.

python -m benchmarks.siege [--seconds 15] [--only NAME …]

A real server process with keys. The attacker is a process of its own, on the same cores; meanwhile
a scorer posts 100 rows at a time and a probe asks /livez. An attacker who needs a key has one.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks import memory
from benchmarks.attacks import ATTACKS, Target
from benchmarks.bystander import SMALL_ROWS, Bystander, draw
from benchmarks.report import heading, table
from benchmarks.service import Running, service

ADMIN = "siege" * 10
CLIENT = httpx.Timeout(120)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--only", nargs="*", choices=list(ATTACKS), default=list(ATTACKS))
    arguments = parser.parse_args()
    many_files()
    print("# Siege\n")
    print(heading("siege", ("numpy", "fastapi", "uvicorn")))
    print(f"{os.cpu_count()} cores, the attacker's and the bystanders' work included\n")
    lines = [measure(name, arguments.seconds).line(name) for name in arguments.only]
    memories = ["MB before", "MB at most", "MB after"]
    times = ["/livez p50 ms", "p99", f"{SMALL_ROWS} rows p50 ms", "p99", "failed"]
    print(table(["attack", *memories, *times, "what the attacker got"], lines))


def many_files() -> None:
    """Let this process, and those that it starts, open thousands of connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@dataclass(frozen=True)
class Seen:
    """What an attack did: MB, seconds of requests in peace and meanwhile, what was not answered."""

    before: float
    most: float
    after: float
    calm: list[float]
    probe: list[float]
    scorer: list[float]
    failed: int
    got: dict[str, int]

    def line(self, name: str) -> list[str]:
        """The same for the table."""
        cells = [f"{mb:.0f}" for mb in (self.before, self.most, self.after)]
        for seconds in (self.probe, self.scorer):
            cells += [f"{q:.0f}" for q in np.quantile(seconds or [np.inf], [0.5, 0.99]) * 1000]
        counts = ", ".join(f"{what}: {count}" for what, count in sorted(self.got.items()))
        return [name, *cells, str(self.failed), counts]


def measure(name: str, seconds: float) -> Seen:
    """One attack on a fresh server."""
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "admin-key"
        key.write_text(ADMIN)
        with service(admin_key_file=str(key), key_secret="siege " * 10) as running:
            return _besieged(name, running, seconds)


def _besieged(name: str, running: Running, seconds: float) -> Seen:
    calm, _ = bystanders(running, 2.0)
    memory.forget_peak(running.pid)
    before = memory.resident(running.pid)
    context = multiprocessing.get_context("spawn")
    got = context.Queue()
    attacker = context.Process(target=attack, args=(name, running.port, seconds + 2, got))
    attacker.start()
    got.get(timeout=120)
    time.sleep(2)
    probe, scorer = bystanders(running, seconds)
    most = memory.peak(running.pid)
    counts = got.get(timeout=120)
    attacker.join()
    time.sleep(2)
    after = memory.resident(running.pid)
    failed = probe.failed + scorer.failed
    times = calm.seconds, probe.seconds, scorer.seconds
    return Seen(before, most, after, *times, failed, counts)


def attack(name: str, port: int, seconds: float, got: Any) -> None:
    """In a process of its own: say so in ``got``, attack, and put there what came of it."""
    many_files()
    got.put("ready")
    got.put(dict(asyncio.run(ATTACKS[name](Target(port, ADMIN, time.time() + seconds)))))


def bystanders(running: Running, seconds: float) -> tuple["Patient", "Patient"]:
    """A probe of /livez and a scorer, for some seconds."""
    until = time.monotonic() + seconds
    address = register(running.base)
    rows = draw(np.random.default_rng(1), SMALL_ROWS, 0.3)[1]
    body = json.dumps({"posteriors": rows.tolist()}).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {ADMIN}"}
    both = (
        Patient(lambda client: client.get(f"{running.base}/livez"), until),
        Patient(lambda client: client.post(address, content=body, headers=headers), until),
    )
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    return both


def register(base: str) -> str:
    """The address of estimates of a small version."""
    source = {"confusion_matrix": [[90, 10], [5, 95]]}
    body = {"name": "m", "classes": ["legit", "fraud"], "source": source}
    headers = {"authorization": f"Bearer {ADMIN}"}
    answer = httpx.post(f"{base}/v1/models", json=body, headers=headers, timeout=CLIENT)
    if answer.status_code != httpx.codes.CONFLICT:
        answer.raise_for_status()
    return f"{base}/v1/models/m/versions/1/estimates?keep=false"


class Patient(Bystander):
    """Counts failures instead of ending at the first."""

    failed = 0

    def __init__(self, ask: Callable[[httpx.Client], httpx.Response], until: float) -> None:
        def patient(client: httpx.Client) -> httpx.Response:
            try:
                answer = ask(client)
            except httpx.HTTPError as error:
                answer = httpx.Response(599, text=str(error))
            self.failed += not answer.is_success
            return httpx.Response(200, request=httpx.Request("GET", "http://localhost"))

        super().__init__(patient, until)


if __name__ == "__main__":
    main()
