"""The database stops and comes back, while clients ask."""

import threading
import time
from collections import Counter
from dataclasses import dataclass, field

import httpx

from benchmarks.soak.ledger import BATCH
from benchmarks.soak.servers import Postgres, Service

DOWN_SECONDS = 2.0
UP_SECONDS = 6.0


@dataclass
class Asker:
    """One that asks for tests, and for estimates to be kept, and looks at the answers."""

    base: str
    address: str
    expected: float
    statuses: Counter[str] = field(default_factory=Counter)
    failed: list[float] = field(default_factory=list)
    tests_failed: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def run(self, stop: threading.Event) -> None:
        """Until told."""
        with httpx.Client(base_url=self.base, timeout=30) as http:
            while not stop.is_set():
                self._ask(http, "shift-tests", self.tests_failed)
                self._ask(http, "estimates", self.failed)

    def _ask(self, http: httpx.Client, what: str, failed: list[float]) -> None:
        try:
            answer = http.post(f"{self.address}/{what}", json={"posteriors": BATCH})
        except httpx.TransportError as error:
            failed.append(time.monotonic())
            self.statuses[f"{what} {type(error).__name__}"] += 1
            return
        self.statuses[f"{what} {answer.status_code}"] += 1
        if answer.status_code >= 400:
            failed.append(time.monotonic())
            if answer.headers["content-type"] != "application/problem+json":
                self.wrong.append(answer.text[:200])
        elif abs(answer.json()["shift"]["statistic"] - self.expected) > 1e-12:
            self.wrong.append(answer.text[:200])


@dataclass(frozen=True)
class Recovery:
    """``seconds`` from the database's return to the last failure, by outage."""

    seconds: list[float]
    statuses: dict[str, int]
    wrong: list[str]
    stateless_failures: int
    connections: int
    not_ready: int


def interrupted(
    service: Service,
    postgres: Postgres,
    times: int,
    clients: int = 8,
    up_seconds: float = UP_SECONDS,
) -> Recovery:
    """Stop and start the database ``times`` times under load."""
    with httpx.Client(base_url=service.base, timeout=30) as http:
        source = {"priors": {"legit": 0.9, "fraud": 0.1}}
        body = {"name": "m", "classes": ["legit", "fraud"], "source": source}
        http.post("/v1/models", json=body).raise_for_status()
        address = "/v1/models/m/versions/latest"
        first = http.post(f"{address}/shift-tests", json={"posteriors": BATCH}).json()
    askers = [Asker(service.base, address, first["shift"]["statistic"]) for _ in range(clients)]
    stop = threading.Event()
    threads = [threading.Thread(target=asker.run, args=(stop,)) for asker in askers]
    for thread in threads:
        thread.start()
    returns, stops, not_ready = [], [], 0
    for _ in range(times):
        time.sleep(1.0)
        stops.append(time.monotonic())
        postgres.stop()
        time.sleep(DOWN_SECONDS)
        not_ready += httpx.get(f"{service.base}/readyz", timeout=20).status_code == 503
        postgres.start()
        returns.append(time.monotonic())
        time.sleep(up_seconds)
    stop.set()
    for thread in threads:
        thread.join()
    return Recovery(
        [_last(askers, since, stops) for since in returns],
        dict(sum((asker.statuses for asker in askers), Counter[str]())),
        [one for asker in askers for one in asker.wrong],
        sum(len(asker.tests_failed) for asker in askers),
        connections(postgres.url),
        not_ready,
    )


def _last(askers: list[Asker], since: float, stops: list[float]) -> float:
    """Seconds from ``since`` to the last failure before the next outage."""
    until = min((stop for stop in stops if stop > since), default=float("inf"))
    times = [t for asker in askers for t in (*asker.failed, *asker.tests_failed)]
    return max((t - since for t in times if since <= t < until), default=0.0)


def connections(url: str) -> int:
    """Connections to the database, our own apart."""
    import sqlalchemy as sa

    from models_store.engine import connect

    engine = connect(url)
    statement = sa.text(
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' "
        "AND pid <> pg_backend_pid()"
    )
    with engine.connect() as connection:
        count: int = connection.execute(statement).scalar_one()
    engine.dispose()
    return count
