"""What comes of a window: an alert opens or closes, in the transaction that closes the window."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

import numpy as np

from app.clock import moment, now
from app.core.arrays import Floats
from app.estimation import Estimate
from app.monitoring.alert_course import Course, calm
from app.monitoring.specification import AlertSpec
from app.monitoring.window_tests import Tested
from app.schemas import presenters
from app.stored.alerts import StoredAlert, StoredAlertShare
from app.stored.monitors import StoredMonitor
from app.stored.streams import StoredStream
from models_store.monitors import MonitorRecord
from models_store.records import VersionRecord
from models_store.store import UnitOfWork
from models_store.webhooks import Event
from models_store.windows import StreamRecord, WindowRecord

MOST_TOLD = 20
"""Classes in an event; the alert itself has all of them."""


@dataclass(frozen=True)
class Found:
    """A sealed window, and what belongs to it."""

    monitor: MonitorRecord
    stream: StreamRecord
    window: WindowRecord
    spans: list[tuple[int, int]]
    segments: int


@dataclass(frozen=True)
class Answered:
    """An estimate of a window, and its test."""

    record: VersionRecord
    result: Estimate
    test: Tested | None


def decide(
    unit: UnitOfWork,
    found: Found,
    alert: AlertSpec,
    stream: StreamRecord,
    said: Answered,
    estimate_id: str,
) -> None:
    """Open an alert, or close one, or neither; the stream is locked."""
    if said.test is None:
        return
    test, under_way = said.test, unit.alerts.under_way(stream.id)
    alarm = None if under_way is None else StoredAlert.read(under_way.content)
    opened_by = 0.0 if alarm is None else alarm.effect_size
    quiet = calm(test.alone, test.effect_size, opened_by)
    course = Course.of(StoredStream.read(stream.state)).after(test.detected, quiet)
    remembered = StoredStream(**vars(course), evidence=test.memory)
    unit.windows.remember(stream.id, state=remembered.written())
    event = course.event(alert, alarm is not None)
    if event == "open":
        opened = _opened(found, stream, said, test, estimate_id)
        unit.alerts.open(found.monitor.id, stream.id, opened.written(), opened.opened_at)
        publish(unit, "alert.opened", opened.id)
    elif event == "close" and alarm is not None:
        closed(unit, alarm, "recovery")


def closed(unit: UnitOfWork, alert: StoredAlert, by: str, note: str = "") -> StoredAlert:
    """Close an alert and tell it; the alert then."""
    changes = {"state": "closed", "closed_at": now(), "closed_by": by}
    return _changed(unit, alert, changes, note, "alert.closed")


def acknowledged(unit: UnitOfWork, alert: StoredAlert, by: str, note: str) -> StoredAlert:
    """Somebody has seen an alert; the alert then."""
    changes = {"state": "acknowledged", "acknowledged_at": now(), "acknowledged_by": by}
    return _changed(unit, alert, changes, note, "alert.acknowledged")


def _changed(
    unit: UnitOfWork, alert: StoredAlert, changes: Mapping[str, object], note: str, event: Event
) -> StoredAlert:
    """Change an alert and tell it."""
    after = alert.model_copy(update={**changes, "note": note or alert.note})
    unit.alerts.change(alert.id, after.written())
    publish(unit, event, alert.id)
    return after


def publish(unit: UnitOfWork, event: Event, alert_id: str) -> None:
    """Tell those who asked to be told, in this transaction; of the classes that moved most."""
    alert = StoredAlert.read(unit.alerts.get(alert_id).content)
    moved = sorted(alert.prevalence, key=lambda share: -abs(share.estimate - share.source))
    told = presenters.kept_alert(alert.model_copy(update={"prevalence": moved[:MOST_TOLD]}))
    unit.webhooks.publish(event, told, now(), model=alert.model, monitor=alert.monitor)


def shares(result: Estimate) -> Floats:
    """C × 4: estimate, lower and upper end (NaN where there is no interval), source."""
    missing = np.full(len(result.prevalence), np.nan)
    spread = result.interval
    lower, upper = (missing, missing) if spread is None else (spread.lower, spread.upper)
    return np.column_stack([result.prevalence, lower, upper, result.source])


def _opened(
    found: Found, stream: StreamRecord, said: Answered, test: Tested, estimate_id: str
) -> StoredAlert:
    names, window = found.monitor.classes, found.window
    table = shares(said.result)
    segmented = StoredMonitor.read(found.monitor.content).segment_by is not None
    return StoredAlert(
        id=uuid4().hex,
        monitor=found.monitor.name,
        model=found.monitor.model,
        version=said.record.number,
        segment=stream.segment if segmented else None,
        state="open",
        opened_at=now(),
        start=moment(window.start),
        end=moment(window.end),
        estimate=estimate_id,
        size=said.result.size,
        p_value=test.p_value,
        level=test.level,
        effect_size=test.effect_size,
        message=sentence(names, table),
        prevalence=[
            StoredAlertShare(
                class_=name,
                estimate=row[0],
                lower=presenters.finite(row[1]),
                upper=presenters.finite(row[2]),
                source=row[3],
            )
            for name, row in zip(names, table.tolist(), strict=True)
        ],
    )


def sentence(names: tuple[str, ...], table: Floats) -> str:
    """The class that moved most, the rarer one of two that tie, in words."""
    moved = np.round(np.abs(table[:, 0] - table[:, 3]), 9)
    k = int(np.lexsort((table[:, 3], -moved))[0])
    estimate, lower, upper, source = 100 * table[k]
    verb = "rose" if estimate > source else "fell"
    reach = "" if np.isnan(lower) else f" ({lower:.3g}–{upper:.3g} %)"
    return f"{names[k]} {verb} from {source:.3g} % to {estimate:.3g} %{reach}"
