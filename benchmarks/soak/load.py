"""Mixed load for minutes: memory, open files and latencies."""

import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np

from benchmarks.memory import resident
from benchmarks.soak.servers import Service

CLASSES = ["a", "b", "c"]
EVERY_SECONDS = 2.0


@dataclass(frozen=True)
class Load:
    """Seconds by endpoint, and what the process held over time."""

    seconds: dict[str, list[float]]
    failures: list[str]
    memory: list[float]
    files: list[int]

    @property
    def growth(self) -> float:
        """By how much the memory's median of the last sixth exceeds that of the one before."""
        part = max(len(self.memory) // 6, 1)
        late, last = self.memory[-2 * part : -part], self.memory[-part:]
        return float(np.median(last) / np.median(late) - 1)


@dataclass
class Mixed:
    """One client that asks for everything in turn."""

    base: str
    seed: int
    seconds: dict[str, list[float]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def run(self, stop: threading.Event) -> None:
        """Until told."""
        rng, drawn = random.Random(self.seed), np.random.default_rng(self.seed)
        version = "/v1/models/m/versions/1"
        rows = {n: drawn.dirichlet(np.ones(3), n).tolist() for n in (100, 2000)}
        with httpx.Client(base_url=self.base, timeout=60) as http:
            operations = {
                "estimate, 100 rows": lambda: http.post(
                    f"{version}/estimates", json={"posteriors": rows[100]}
                ),
                "shift test, 100 rows": lambda: http.post(
                    f"{version}/shift-tests", json={"posteriors": rows[100]}
                ),
                "posteriors, 2,000 rows": lambda: http.post(
                    f"{version}/posteriors", json={"posteriors": rows[2000]}
                ),
                "version registered": lambda: http.post(
                    "/v1/models/m/versions", json={"source": _source(drawn)}
                ),
                "history, 50 items": lambda: http.get("/v1/estimates", params={"model": "m"}),
                "wrong rows": lambda: http.post(
                    f"{version}/estimates", json={"posteriors": [[2, 0, 0]]}
                ),
            }
            weights = [40, 20, 10, 3, 10, 5]
            while not stop.is_set():
                (name,) = rng.choices(list(operations), weights)
                began = time.perf_counter()
                answer = operations[name]()
                self.seconds.setdefault(name, []).append(time.perf_counter() - began)
                expected = (422,) if name == "wrong rows" else (200, 201)
                if answer.status_code not in expected:
                    self.failures.append(f"{name}: {answer.status_code} {answer.text[:100]}")


def _source(drawn: np.random.Generator) -> dict[str, object]:
    labels = drawn.integers(0, 3, 300)
    rows = drawn.dirichlet(np.ones(3), 300) + 2 * np.eye(3)[labels]
    rows /= rows.sum(axis=1, keepdims=True)
    names = [CLASSES[k] for k in labels]
    return {"validation": {"labels": names, "posteriors": rows.tolist()}}


def loaded(service: Service, seconds: float, clients: int = 8) -> Load:
    """Ask for ``seconds``, while the process is watched."""
    with httpx.Client(base_url=service.base, timeout=60) as http:
        first = {"name": "m", "classes": CLASSES, "source": _source(np.random.default_rng(1))}
        http.post("/v1/models", json=first).raise_for_status()
    stop = threading.Event()
    askers = [Mixed(service.base, seed) for seed in range(clients)]
    threads = [threading.Thread(target=asker.run, args=(stop,)) for asker in askers]
    for thread in threads:
        thread.start()
    memory, files, began = [], [], time.monotonic()
    while time.monotonic() - began < seconds:
        time.sleep(EVERY_SECONDS)
        memory.append(resident(service.pid))
        files.append(len(list(Path(f"/proc/{service.pid}/fd").iterdir())))
    stop.set()
    for thread in threads:
        thread.join()
    together: dict[str, list[float]] = {}
    for asker in askers:
        for name, values in asker.seconds.items():
            together.setdefault(name, []).extend(values)
    return Load(together, [one for asker in askers for one in asker.failures], memory, files)
