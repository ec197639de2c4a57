"""Monitors on the overview: their state, their mix and their last alert."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.http.audit_trail import CallerDep
from app.page import words
from app.page.sparkline import Sparkline, sparkline
from app.stored.alerts import StoredAlert
from app.stored.monitors import StoredMonitor
from models_store.alerts import AlertFilter
from models_store.monitors import MonitorRecord
from models_store.series import Columns
from models_store.store import UnitOfWork

MONITORS = 20
WINDOWS = 24
SHOWN = 3
STREAMS = 200
"""Segments of a monitor among which the last window is looked for."""


@dataclass(frozen=True)
class Mover:
    """A class of a window; named as a kept estimate's are."""

    class_: str
    estimate: float
    source: float


@dataclass(frozen=True)
class Watch:
    """A monitor on the overview; its mix is that of one segment, the last that alarmed."""

    record: MonitorRecord
    kept: StoredMonitor
    told: words.Told
    segment: str
    movers: Sequence[Mover]
    trend: Sparkline | None
    windows: int
    alert: StoredAlert | None


def watches(unit: UnitOfWork, caller: CallerDep) -> tuple[list[Watch], bool]:
    """The first monitors by name, and whether there are more."""
    found = unit.monitors.list(None, MONITORS, None, caller.models)
    return [_watch(unit, record) for record in found.items], found.next is not None


def state_of(alerts: Sequence[StoredAlert], any_windows: bool) -> words.Told:
    """How a monitor stands: alerts newest first."""
    states = [alert.state for alert in alerts]
    if "open" in states:
        return words.Told("shifted", "Alert open")
    if "acknowledged" in states:
        return words.Told("doubtful", "Alert acknowledged")
    return words.Told("steady", "Calm") if any_windows else words.Told("waiting", "No window yet")


def _watch(unit: UnitOfWork, record: MonitorRecord) -> Watch:
    found = unit.alerts.list(AlertFilter(record.id), None, SHOWN).items
    alerts = [StoredAlert.read(alert.content) for alert in found]
    streams = dict(list(unit.series.segments(record.id).items())[:STREAMS])
    under_way = [a.segment or "" for a in alerts if a.state != "closed"]
    segment = next((name for name in [*under_way, *streams] if name in streams), "")
    most = max(2, min(WINDOWS, 4_000 // max(len(record.classes), 1)))
    columns = None
    if segment in streams:
        columns = unit.series.newest(streams[segment], segment, len(record.classes), most)
    movers = [] if columns is None else _movers(record, columns)
    return Watch(
        record=record,
        kept=StoredMonitor.read(record.content),
        told=state_of(alerts, columns is not None and len(columns.start) > 0),
        segment=segment,
        movers=movers,
        trend=_trend(record, columns, movers[0].class_) if columns and movers else None,
        windows=0 if columns is None else len(columns.start),
        alert=alerts[0] if alerts else None,
    )


def _movers(record: MonitorRecord, columns: Columns) -> Sequence[Mover]:
    """Of the last window that said something, the classes that moved most."""
    said = np.flatnonzero(~np.isnan(columns.shares[:, 0, 0]))
    if not len(said):
        return []
    last = columns.shares[said[-1]]
    rows = [
        Mover(name, float(share[0]), float(share[3]))
        for name, share in zip(record.classes, last, strict=True)
    ]
    return words.moved(rows)[:SHOWN]


def _trend(record: MonitorRecord, columns: Columns, name: str) -> Sparkline | None:
    k = record.classes.index(name)
    shares = columns.shares[~np.isnan(columns.shares[:, 0, 0]), k]
    lower = np.where(np.isnan(shares[:, 1]), shares[:, 0], shares[:, 1])
    upper = np.where(np.isnan(shares[:, 2]), shares[:, 0], shares[:, 2])
    ends = list(zip(lower.tolist(), upper.tolist(), strict=True))
    return sparkline(shares[:, 0].tolist(), ends, float(shares[-1, 3]))
