"""Monitors under kill -9: workers die while clients post rows and a receiver fails."""

import os
import random
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import sqlalchemy as sa
from scipy.special import expit

from benchmarks.soak.receiver import Receiver, receiving
from benchmarks.soak.servers import Service
from models_store.engine import WRITING, connect
from models_store.tables import tasks

WORKERS, CLIENTS = 3, 8
EVERY_SECONDS = 5.0
SETTLE_SECONDS = 600.0
MONITORS: Mapping[str, Mapping[str, Any]] = {
    "thousands": {"window": {"rows": 1000}},
    "seconds": {"window": {"duration": "PT2S", "grace": "PT2S"}},
}
EVENTS = ["alert.opened", "alert.closed"]


@dataclass
class Poster:
    """One that posts rows of a segment until they are acknowledged; rows by monitor."""

    base: str
    number: int
    accepted: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MONITORS, 0))
    late: int = 0
    posts: int = 0
    retried: int = 0
    refused: list[str] = field(default_factory=list)

    def run(self, stop: threading.Event) -> None:
        """Until told; what is under way is carried to its end."""
        rng = np.random.default_rng(self.number)
        with httpx.Client(base_url=self.base, timeout=20) as http:
            while not stop.is_set():
                for monitor in MONITORS:
                    # Shares that come and go, so that alerts do.
                    share = 0.1 if int(time.monotonic() / 10) % 2 else 0.4
                    self._post(http, monitor, scored(rng, int(rng.integers(1, 300)), share))

    def _post(self, http: httpx.Client, monitor: str, posteriors: Any) -> None:
        self.posts += 1
        headers = {"Idempotency-Key": f"{self.number} {self.posts}"}
        segment = {"shop": f"s{self.number % 4}"}
        body = {"posteriors": posteriors.tolist(), "segment": segment}
        while True:
            try:
                address = f"/v1/monitors/{monitor}/observations"
                answer = http.post(address, json=body, headers=headers)
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code == 202:
                self.accepted[monitor] += answer.json()["accepted"]
                self.late += answer.json()["late"]
                return
            if answer is not None and answer.status_code not in (429, 503):
                self.refused.append(f"{answer.status_code} {answer.text[:200]}")
                return
            self.retried += 1
            time.sleep(0.05)


@dataclass(frozen=True)
class Watched:
    """What was acknowledged, and what became of it."""

    kills: int
    posts: int
    retried: int
    accepted: int
    late: int
    windows: int
    alerts: int
    attempts: int
    wrong: list[str]


def scored(rng: np.random.Generator, n: int, share: float) -> Any:
    """Posteriors of rows of two classes, right for a share of .1."""
    y = rng.random(n) < share
    z = 3.0 * rng.normal(np.where(y, 1.5, -1.5), 1.0) + np.log(1 / 9)
    return np.column_stack([expit(-z), expit(z)])


def watched(url: str, seconds: float, seed: int = 0) -> Watched:
    """Post rows for so long, a worker or all of them being killed every five seconds."""
    settings = {
        "WEBHOOK_ALLOWED_HOSTS": '["127.0.0.1"]',
        "KEY_SECRET": "s" * 40,
    }
    service = Service(url, settings, arguments=["--workers", str(WORKERS)])
    stop = threading.Event()
    with receiving() as receiver, service.running():
        _prepare(service.base, receiver)
        posters = [Poster(service.base, k) for k in range(CLIENTS)]
        threads = [threading.Thread(target=poster.run, args=(stop,)) for poster in posters]
        for thread in threads:
            thread.start()
        kills = _kill(service, seconds, random.Random(seed))
        stop.set()
        for thread in threads:
            thread.join()
        wrong = [*_settled(url), *[one for poster in posters for one in poster.refused]]
        accepted = {m: sum(poster.accepted[m] for poster in posters) for m in MONITORS}
        windows, alerts, report = _outcome(url, accepted, receiver)
    return Watched(
        kills,
        sum(poster.posts for poster in posters),
        sum(poster.retried for poster in posters),
        sum(accepted.values()),
        sum(poster.late for poster in posters),
        windows,
        alerts,
        receiver.attempts,
        wrong + report,
    )


def _prepare(base: str, receiver: Receiver) -> None:
    rng = np.random.default_rng(1)
    y = rng.random(4000) < 0.1
    z = 3.0 * rng.normal(np.where(y, 1.5, -1.5), 1.0) + np.log(1 / 9)
    posteriors = np.column_stack([expit(-z), expit(z)]).tolist()
    labels = ["fraud" if one else "legit" for one in y]
    source = {"validation": {"labels": labels, "posteriors": posteriors}}
    with httpx.Client(base_url=base, timeout=60) as http:
        model = {"name": "cards", "classes": ["legit", "fraud"], "source": source}
        http.post("/v1/models", json=model).raise_for_status()
        for name, window in MONITORS.items():
            alert = {"false_alarms": 1, "per": "P1D", "recovery": 1}
            body = {"name": name, "model": "cards", "segment_by": "shop", "alert": alert, **window}
            http.post("/v1/monitors", json=body).raise_for_status()
        hook = {"url": f"http://127.0.0.1:{receiver.port}/", "events": EVENTS}
        answer = http.post("/v1/webhooks", json=hook)
        answer.raise_for_status()
        receiver.secret = answer.json()["secret"]


def _kill(service: Service, seconds: float, rng: random.Random) -> int:
    """Kill one worker; every fourth time all of them and their parent."""
    kills, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(EVERY_SECONDS)
        workers = children(service.pid)
        kills += 1
        if kills % 4:
            os.kill(rng.choice(workers), signal.SIGKILL)
            continue
        service.stop()
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        service.start()
        service.ready()
    return kills


def children(pid: int) -> list[int]:
    """The processes that another one started and that still run."""
    numbers = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        numbers += [int(one) for one in (thread / "children").read_text().split()]
    return numbers


def _settled(url: str) -> list[str]:
    """Wait until no task is left. What waits, or was held by the dead, is made due."""
    engine, end = connect(url), time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < end:
        with engine.execution_options(**{WRITING: True}).begin() as connection:
            left = connection.execute(sa.select(sa.func.count()).select_from(tasks)).scalar_one()
            if not left:
                break
            connection.execute(tasks.update().values(due_at=datetime.now(UTC)))
        time.sleep(3.0)
    engine.dispose()
    return [f"{left} tasks were left"] if left else []


def _outcome(
    url: str, accepted: Mapping[str, int], receiver: Receiver
) -> tuple[int, int, list[str]]:
    """Windows and alerts in the database, and what about them is wrong."""
    engine, wrong = connect(url), []
    with engine.connect() as connection:

        def ask(statement: str) -> list[Any]:
            return list(connection.exec_driver_sql(statement).all())

        joined = "FROM windows w JOIN streams s ON s.id = w.stream_id JOIN monitors m ON m.id = "
        sizes = ask(f"SELECT m.name, sum(w.size) {joined} s.monitor_id GROUP BY m.name")
        for row in sizes:
            name, size = row[0], int(row[1])
            if size != accepted[name]:
                wrong.append(f"{name}: {size} rows in windows, {accepted[name]} acknowledged")
        closed = ask("SELECT count(*) FROM windows WHERE state = 'closed'")[0][0]
        estimates = ask("SELECT count(*) FROM windows WHERE estimate_id IS NOT NULL")[0][0]
        kept = ask("SELECT count(*) FROM estimates")[0][0]
        if kept != estimates:
            wrong.append(f"{kept} estimates of {estimates} windows")
        failed = ask("SELECT note FROM windows WHERE state = 'failed'")
        wrong += [f"a window failed: {row.note}" for row in failed]
        opened = {row[0] for row in ask("SELECT id FROM alerts")}
        over = {row[0] for row in ask("SELECT id FROM alerts WHERE state = 'closed'")}
    engine.dispose()
    for event, expected in (("alert.opened", opened), ("alert.closed", over)):
        ids = receiver.events.get(event, set())
        if ids != expected:
            wrong.append(f"{event}: {len(expected - ids)} not told, {len(ids - expected)} unknown")
    if receiver.forged:
        wrong.append(f"{receiver.forged} signatures did not verify")
    return closed, len(opened), wrong
