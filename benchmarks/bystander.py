"""How long others wait while large batches compute.

python -m benchmarks.bystander [--rows 1000000] [--seconds 20]

A real server process. Two clients post batches of a million rows, one after another, as JSON or
NPY; meanwhile a scorer posts small batches and a probe asks /livez. Latencies are over loopback,
body upload included.
"""

import argparse
import io
import json
import os
import threading
import time
from collections.abc import Callable

import httpx
import numpy as np

from app.core.arrays import Codes, Floats
from benchmarks.report import heading, table
from benchmarks.service import service

SMALL_ROWS = 100
PAUSE = 0.02
FORMATS = ("none", "JSON", "NPY")


def register(base: str, rng: np.random.Generator) -> str:
    """A version with a validation set; its address."""
    labels, posteriors = draw(rng, 500, 0.2)
    names = np.array(["legit", "fraud"])[labels].tolist()
    validation = {"labels": names, "posteriors": posteriors.tolist()}
    body = {"name": "m", "classes": ["legit", "fraud"], "source": {"validation": validation}}
    httpx.post(f"{base}/v1/models", json=body, timeout=60).raise_for_status()
    return f"{base}/v1/models/m/versions/1/estimates?keep=false"


def draw(rng: np.random.Generator, rows: int, share: float) -> tuple[Codes, Floats]:
    """Labels and calibrated posteriors of two normal classes."""
    labels = (rng.random(rows) < share).astype(np.intp)
    positive = 1 / (1 + np.exp(-2 * rng.normal(labels * 2.0, 1.0) + 2 + np.log(4)))
    return labels, np.column_stack([1 - positive, positive])


def encoded(rng: np.random.Generator, rows: int, name: str) -> tuple[bytes, str]:
    """A large batch and its media type."""
    posteriors = draw(rng, rows, 0.3)[1]
    if name == "NPY":
        buffer = io.BytesIO()
        np.save(buffer, posteriors)
        return buffer.getvalue(), "application/x-npy"
    return json.dumps({"posteriors": posteriors.tolist()}).encode(), "application/json"


class Bystander(threading.Thread):
    """Asks again and again, and notes how long each answer took."""

    def __init__(self, ask: Callable[[httpx.Client], httpx.Response], until: float) -> None:
        super().__init__()
        self._ask = ask
        self._until = until
        self.seconds: list[float] = []

    def run(self) -> None:
        """Until the time is over."""
        with httpx.Client(timeout=60) as client:
            while time.monotonic() < self._until:
                start = time.monotonic()
                self._ask(client).raise_for_status()
                self.seconds.append(time.monotonic() - start)
                time.sleep(PAUSE)


def measure(base: str, address: str, rows: int, name: str, seconds: float) -> list[list[str]]:
    """One format: latencies of both bystanders, and how many large batches were answered."""
    rng = np.random.default_rng(1)
    until = time.monotonic() + seconds
    small = json.dumps({"posteriors": draw(rng, SMALL_ROWS, 0.3)[1].tolist()}).encode()
    headers = {"content-type": "application/json"}
    asks: dict[str, Callable[[httpx.Client], httpx.Response]] = {
        "/livez": lambda client: client.get(f"{base}/livez"),
        f"{SMALL_ROWS} rows": lambda client: client.post(address, content=small, headers=headers),
    }
    bystanders = {what: Bystander(ask, until) for what, ask in asks.items()}
    loads: list[Bystander] = []
    if name != "none":
        content, kind = encoded(rng, rows, name)
        until = time.monotonic() + seconds
        bystanders = {what: Bystander(ask, until) for what, ask in asks.items()}
        kinds = {"content-type": kind}
        loads = [
            Bystander(lambda c: c.post(address, content=content, headers=kinds), until)
            for _ in range(2)
        ]
    for thread in [*bystanders.values(), *loads]:
        thread.start()
    for thread in [*bystanders.values(), *loads]:
        thread.join()
    answered = sum(len(load.seconds) for load in loads)
    lines = []
    for what, thread in bystanders.items():
        p50, p99, most = np.quantile(thread.seconds, [0.5, 0.99, 1.0]) * 1000
        cells = [f"{p50:.0f}", f"{p99:.0f}", f"{most:.0f}", str(len(thread.seconds)), str(answered)]
        lines.append([name, what, *cells])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    print("# Bystanders of large batches\n")
    print(heading("bystander", ("numpy", "fastapi", "uvicorn")))
    print(f"{os.cpu_count()} cores, clients included; {arguments.rows} × 2 rows per large batch\n")
    lines: list[list[str]] = []
    with service() as running:
        base = running.base
        address = register(base, np.random.default_rng(0))
        for name in FORMATS:
            lines += measure(base, address, arguments.rows, name, arguments.seconds)
    times = ["p50 ms", "p99 ms", "largest ms"]
    names = ["large batches", "bystander", *times, "asked", "large answered"]
    print(table(names, lines))


if __name__ == "__main__":
    main()
