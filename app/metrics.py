"""What an operator's Prometheus reads.

Names: ``priorshift_``, what is measured, its unit in full (seconds, bytes, ratio for shares from 0
to 1), ``_total`` for what only grows, ``_timestamp_seconds`` for a moment since 1970. A limit is a
metric of its own beside what it limits. Labels are few and bounded: routes are templates, and
models beyond the first ``MOST_MODELS`` share the label ``(other)``. Nothing is kept of a single
batch.

With several workers, each writes into files of its own in the folder that PROMETHEUS_MULTIPROC_DIR
names, which the parent makes, and any of them answers for all. What the workers share, the state of
the monitors, is no worker's to count: ``app.operations.monitor_standings`` reads it when asked.
"""

import os
import re
import resource
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Literal

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    generate_latest,
    multiprocess,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

Mode = Literal["livesum", "livemostrecent"]
SHARED: Mode = "livemostrecent"
"""Of what every worker sees: the last one to look tells it."""
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
MEDIA_TYPE = CONTENT_TYPE_LATEST
MOST_MODELS = 200
OUTCOMES = ("delivered", "postponed", "failed")
"""Of sending an event; ``failed``: for good."""
OTHER = "(other)"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The service's own metrics; nothing of it is global."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._models: set[str] = set()
        self._lock = threading.Lock()
        self._requests = Histogram(
            "priorshift_http_request_duration_seconds",
            "Requests by what was asked and answered, whole answers included",
            ["method", "route", "status"],
            registry=self._registry,
            buckets=SECONDS,
        )
        self._estimates = Counter(
            "priorshift_estimates",
            "Estimates that were made, kept or not",
            ["model", "version", "method"],
            registry=self._registry,
        )
        self._durations = Histogram(
            "priorshift_estimate_duration_seconds",
            "Time to compute an estimate, without reading and writing",
            ["method"],
            registry=self._registry,
            buckets=SECONDS,
        )
        self._waiting = self._gauge("queue_depth", "Requests that wait for their turn", "lane")
        self._busy = self._gauge("slots_in_use", "Requests that have their turn", "lane")
        self._queue = self._gauge("queue_limit", "Requests that may wait", "lane")
        self._slots = self._gauge("slots_limit", "Requests that may have their turn", "lane")
        self._held = self._gauge("held_bytes", "Bodies of requests in memory")
        self._unavailable = Counter(
            "priorshift_database_unavailable",
            "Times that the database did not answer",
            registry=self._registry,
        )
        self._connections = self._gauge(
            "database_connections_in_use", "Connections of the pool that are taken"
        )
        self._most_connections = self._gauge(
            "database_connections_limit", "Connections that may be taken at a time"
        )
        self._tasks = self._gauge("tasks", "Tasks that are there", "kind", mode=SHARED)
        self._late = self._gauge(
            "task_lateness_seconds", "How long the first task has been due", "kind", mode=SHARED
        )
        self._attempts = Counter(
            "priorshift_webhook_attempts",
            "Events that were sent, by what came of it",
            ["outcome"],
            registry=self._registry,
        )
        for outcome in OUTCOMES:
            self._attempts.labels(outcome)  # a first failure is a step from 0, and has a rate

    def _gauge(self, name: str, help: str, *labels: str, mode: Mode = "livesum") -> Gauge:
        return Gauge(
            f"priorshift_{name}",
            help,
            labels,
            registry=self._registry,
            multiprocess_mode=mode,
        )

    def page(self, besides: Iterable[Metric] = (), only: Collection[str] | None = None) -> bytes:
        """All of it in Prometheus's text format, of every worker, and ``besides``.

        ``only``: nothing that names other models than these.
        """
        counted, pids = self._registry, {os.getpid()}
        if FOLDER in os.environ:
            counted = CollectorRegistry()
            multiprocess.MultiProcessCollector(counted)  # type: ignore[no-untyped-call]
            pids = _workers(Path(os.environ[FOLDER]))
        families = [*_seen(counted.collect(), only), *_processes(pids), *besides]
        return generate_latest(_Page(families))

    def answered(self, method: str, route: str | None, status: int | None, seconds: float) -> None:
        """A request; ``status`` None: the connection ended before an answer began."""
        labels = (method, route or "(none)", "none" if status is None else str(status))
        self._requests.labels(*labels).observe(seconds)

    @contextmanager
    def estimating(self, model: str, version: int) -> Iterator[list[str]]:
        """Around an estimate; whoever makes it adds its method to the list."""
        method: list[str] = []
        began = perf_counter()
        yield method
        for name in method:
            self._durations.labels(name).observe(perf_counter() - began)
            self._estimates.labels(*self._named(model, version), name).inc()

    def _named(self, model: str, version: int) -> tuple[str, str]:
        with self._lock:
            if len(self._models) < MOST_MODELS:
                self._models.add(model)
            return (model, str(version)) if model in self._models else (OTHER, OTHER)

    def lane(self, name: str, waiting: int, busy: int) -> None:
        """How many requests wait, and how many have their turn."""
        self._waiting.labels(name).set(waiting)
        self._busy.labels(name).set(busy)

    def limits(self, name: str, slots: int, queue: int) -> None:
        """How many requests may have their turn, and how many may wait."""
        self._slots.labels(name).set(slots)
        self._queue.labels(name).set(queue)
        self.lane(name, 0, 0)

    def held(self, size: int) -> None:
        """Bytes of bodies in memory."""
        self._held.set(size)

    def connections(self, taken: int) -> None:
        """Connections to the database that are in use."""
        self._connections.set(taken)

    def connections_limit(self, most: int) -> None:
        """How many may be."""
        self._most_connections.set(most)

    def waiting(self, kind: str, number: int, late: float) -> None:
        """How many tasks of a kind there are in the database, and how late the first is."""
        self._tasks.labels(kind).set(number)
        self._late.labels(kind).set(late)

    def attempted(self, outcome: str) -> None:
        """An event was sent, and this came of it."""
        self._attempts.labels(outcome).inc()

    def unavailable(self) -> None:
        """The database did not answer."""
        self._unavailable.inc()


def _workers(folder: Path) -> set[int]:
    """The processes that run, by their files."""
    found = (re.fullmatch(r"gauge_livesum_(\d+)", path.stem) for path in folder.glob("*.db"))
    return {int(match[1]) for match in found if match is not None}


def _processes(pids: Collection[int]) -> Iterator[Metric]:
    """How many serve, and the memory that they have together, where the system tells it."""
    yield GaugeMetricFamily("priorshift_workers", "Processes that serve", len(pids))
    resident = sum(_resident(pid) for pid in pids)
    if resident:
        help = "Memory of the processes that serve, without the one that trains"
        yield GaugeMetricFamily("priorshift_resident_memory_bytes", help, resident)


def _resident(pid: int) -> int:
    """Bytes; 0 for a process that has just ended."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * resource.getpagesize()


class _Page(Collector):
    """What was collected already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _seen(families: Iterable[Metric], only: Collection[str] | None) -> Iterator[Metric]:
    for family in families:
        if only is not None:
            family.samples = [s for s in family.samples if s.labels.get("model") in (None, *only)]
        yield family


def forget(folder: Path, pid: int) -> None:
    """A worker has ended: what it held is not held any more."""
    multiprocess.mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]
