"""How the monitors stand, read from the database when Prometheus asks.

Whichever worker closed a window, every worker tells the same, and nothing goes stale or is added
up over them. Labels are bounded: at most ``MOST_STREAMS`` segments of all monitors together, every
monitor's first before anyone's second, and of each the first ``MOST_CLASSES`` classes, the others
added up as ``(other)``; what is left out is counted. A label that is empty, as ``segment`` of a
monitor without segments, is none to Prometheus.

A window's own series are those of the last that closed; they are absent while it says nothing,
having too few rows. ``window_lag_seconds``: how long the first window has waited that could be
closed, at most: from its end, or from the request to close it, whichever was later, so that rows of
long ago that come now make no lag.

A scrape never fails for the database, and waits ``PATIENCE_SECONDS`` at most: without an answer
``database_up`` and ``ready`` are 0, and everything else of this module is absent.
"""

import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from time import monotonic, time

import numpy as np
import sqlalchemy as sa
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from app.core.arrays import Floats
from app.logs import log
from app.metrics import OTHER, Metrics
from models_store import schema
from models_store.errors import Unavailable
from models_store.monitor_standings import Standing, StreamStanding
from models_store.series import Columns
from models_store.store import Store

MOST_STREAMS = 200
MOST_CLASSES = 20
FRESH_SECONDS = 1.0
"""How long an answer stands for whoever else asks."""
PATIENCE_SECONDS = 3.0
"""Less than a scrape has: Prometheus gives it 10 seconds by default."""
MOST_LOOKS = 16
Only = frozenset[str] | None


@dataclass
class _Look:
    """One question to the database; ``found`` None: not answered, or not yet.

    ``up``: it answers something; ``ready``: and is migrated to this release.
    """

    found: Standing | None = None
    up: bool = False
    ready: bool = False
    done: threading.Event = field(default_factory=threading.Event)
    at: float = 0.0

    @property
    def fresh(self) -> bool:
        """Whether it stands, or is under way."""
        return not self.done.is_set() or monotonic() - self.at < FRESH_SECONDS


class MonitorStandings:
    """Asks, once for all who ask at a time; ``closes``: the kind of the tasks that close windows.

    Everyone who may see the same models is told the same.
    """

    def __init__(self, store: Store, closes: str) -> None:
        self._store = store
        self._closes = closes
        self._head = schema.head()
        self._looks: dict[Only, _Look] = {}
        self._lock = threading.Lock()

    def families(self, only: Only = None) -> list[Metric]:
        """The metrics; ``only`` of monitors of these models, None for all."""
        look = self._look(only)
        look.done.wait(PATIENCE_SECONDS)
        found = look.found
        up = _gauge("database_up", "Whether the database answers", [])
        up.add_metric([], float(look.up))
        ready = _gauge("ready", "Whether the database answers, and is migrated to this release", [])
        ready.add_metric([], float(look.ready))
        return [up, ready] if found is None else [up, ready, *_families(found, time())]

    def _look(self, only: Only) -> _Look:
        with self._lock:
            look = self._looks.get(only)
            if look is not None and look.fresh:
                return look
            if len(self._looks) >= MOST_LOOKS:
                self._looks = {key: kept for key, kept in self._looks.items() if kept.fresh}
            look = self._looks[only] = _Look()
        threading.Thread(target=self._run, args=(look, only), daemon=True).start()
        return look

    def _run(self, look: _Look, only: Only) -> None:
        try:
            look.ready = schema.current(self._store.engine) == self._head
            look.up = True
            with self._store.read() as unit:
                now = int(time() * 1e6)
                look.found = unit.standings.get(self._closes, now, MOST_STREAMS, only)
        except (Unavailable, sa.exc.SQLAlchemyError):
            pass  # which is what database_up or ready says
        except Exception as error:
            log.error("looking at the monitors failed", exc_info=error)
        finally:
            look.at = monotonic()
            look.done.set()


def watch_pool(engine: sa.Engine, metrics: Metrics) -> None:
    """Tell of every connection that is taken from the engine's pool, or given back."""
    pool = engine.pool
    assert isinstance(pool, sa.QueuePool)
    metrics.connections_limit(pool.size() + pool._max_overflow)

    @sa.event.listens_for(engine, "checkout")
    def taken(*_: object) -> None:
        metrics.connections(pool.checkedout())

    @sa.event.listens_for(engine, "checkin")
    def given_back(*_: object) -> None:
        # The one that is given back is still among them.
        metrics.connections(max(pool.checkedout() - 1, 0))


def _gauge(name: str, help: str, labels: Collection[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"priorshift_{name}", help, labels=list(labels))


def _families(found: Standing, now: float) -> Iterator[Metric]:
    yield from _shares(found.streams)
    yield from _tests(found.streams)
    yield _by_monitor(
        "window_lag_seconds",
        "How long the first window that could be closed has waited, at most",
        _lags(found.streams, now),
    )
    names = {stream.monitor for stream in found.streams}
    for state, help in (
        ("open", "Alerts that nobody has acknowledged"),
        ("acknowledged", "Alerts that somebody has seen and that are not closed"),
    ):
        yield _by_monitor(f"alerts_{state}", help, _alerts(found, names, state))
    yield _left_out(found)


def _shares(streams: Collection[StreamStanding]) -> Iterator[Metric]:
    """Of every class: estimate, ends of the interval, source."""
    labels = ["monitor", "segment", "class"]
    columns = [
        _gauge("prevalence_ratio", "Share of a class in the last closed window", labels),
        _gauge("prevalence_lower_ratio", "Lower end of its interval", labels),
        _gauge("prevalence_upper_ratio", "Upper end of its interval", labels),
        _gauge("prevalence_source_ratio", "Share of the class in the training data", labels),
    ]
    for stream in streams:
        if stream.last is None:
            continue
        for name, row in _bounded(stream.classes, stream.last.shares[-1]):
            for gauge, value in zip(columns, row, strict=True):
                _add(gauge, [stream.monitor, stream.segment, name], value)
    yield from columns


def _bounded(classes: tuple[str, ...], table: Floats) -> Iterator[tuple[str, list[float]]]:
    """The first classes, and the sum of the others, which has no interval unless it is of one."""
    first = [k for k, name in enumerate(classes[:MOST_CLASSES]) if name != OTHER]
    for k in first:
        yield classes[k], table[k].tolist()
    others = np.delete(table, first, axis=0)
    if len(others):
        total = others.sum(axis=0)
        total[1:3] = total[1:3] if len(others) == 1 else np.nan
        yield OTHER, total.tolist()


def _tests(streams: Collection[StreamStanding]) -> Iterator[Metric]:
    """Of every stream: its last window's test, size and end."""
    values: Mapping[tuple[str, str], Callable[[StreamStanding], float]] = {
        ("shift_statistic", "Likelihood-ratio statistic of the last closed window"): _statistic,
        ("shift_p_value", "p-value that decides on an alert"): lambda s: _last(s).p_value[-1],
        ("shift_level", "Level below which the p-value detects"): lambda s: _last(s).level[-1],
        ("window_rows", "Rows of the last closed window"): lambda s: _last(s).size[-1],
        ("window_end_timestamp_seconds", "When it ended"): lambda s: _last(s).end[-1] / 1e6,
    }
    for (name, help), value in values.items():
        gauge = _gauge(name, help, ["monitor", "segment"])
        for stream in streams:
            if stream.last is not None:
                _add(gauge, [stream.monitor, stream.segment], float(value(stream)))
        yield gauge


def _last(stream: StreamStanding) -> Columns:
    assert stream.last is not None
    return stream.last


def _statistic(stream: StreamStanding) -> float:
    return math.nan if stream.statistic is None else stream.statistic


def _add(gauge: GaugeMetricFamily, labels: list[str], value: float) -> None:
    """A sample, unless there is no such number."""
    if not math.isnan(value):
        gauge.add_metric(labels, value)


def _by_monitor(name: str, help: str, values: Mapping[str, float]) -> Metric:
    gauge = _gauge(name, help, ["monitor"])
    for monitor, value in values.items():
        gauge.add_metric([monitor], value)
    return gauge


def _lags(streams: Collection[StreamStanding], now: float) -> dict[str, float]:
    lags: dict[str, float] = {}
    for stream in streams:
        lag = 0.0 if stream.since is None else max(now - stream.since / 1e6, 0.0)
        lags[stream.monitor] = max(lag, lags.get(stream.monitor, 0.0))
    return lags


def _alerts(found: Standing, names: Collection[str], state: str) -> dict[str, float]:
    """By monitor; those of monitors without a series of their own as ``(other)``."""
    counts = dict.fromkeys(sorted(names), 0.0)
    for (monitor, its), count in found.under_way.items():
        if its == state:
            name = monitor if monitor in names else OTHER
            counts[name] = counts.get(name, 0.0) + count
    return counts


def _left_out(found: Standing) -> Metric:
    gauge = _gauge("series_left_out", "What has no series of its own, there being too many", ["of"])
    classes = sum(max(len(s.classes) - MOST_CLASSES, 0) for s in found.streams)
    for of, count in {**found.others, "classes": classes}.items():
        gauge.add_metric([of], count)
    return gauge
