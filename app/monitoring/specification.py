"""What a monitor was asked to do, as values."""

from dataclasses import dataclass

from app.clock import MICROSECONDS, duration
from app.stored.monitors import StoredBudget, StoredMonitor, StoredWindow


@dataclass(frozen=True)
class ByRows:
    """Windows of so many rows, in the order in which they come."""

    rows: int


@dataclass(frozen=True)
class ByDuration:
    """Windows of ``duration`` microseconds, counted from 1970, closed ``grace`` after their end.

    With fewer than ``minimum_rows`` a window says nothing.
    """

    duration: int
    grace: int
    minimum_rows: int


@dataclass(frozen=True)
class AlertSpec:
    """A budget of ``false_alarms`` per ``seconds``, and what makes an alert."""

    false_alarms: float
    seconds: int
    minimum_effect: float
    consecutive: int
    recovery: int
    test: str


@dataclass(frozen=True)
class Spec:
    """A monitor. ``alert`` None: nothing alarms."""

    version: str
    method: str
    window: ByRows | ByDuration
    segment_by: str | None
    alert: AlertSpec | None
    interval_level: float
    keep_rows: bool

    @classmethod
    def of(cls, kept: StoredMonitor) -> "Spec":
        """From what is kept, which was checked."""
        return cls(
            version=kept.version,
            method=kept.method,
            window=_window(kept.window),
            segment_by=kept.segment_by,
            alert=None if kept.alert is None else _alert(kept.alert),
            interval_level=kept.interval_level,
            keep_rows=kept.keep_rows,
        )


def _window(kept: StoredWindow) -> ByRows | ByDuration:
    if kept.rows is not None:
        return ByRows(kept.rows)
    assert kept.duration is not None
    assert kept.grace is not None
    assert kept.minimum_rows is not None
    length, grace = duration(kept.duration), duration(kept.grace)
    return ByDuration(length * MICROSECONDS, grace * MICROSECONDS, kept.minimum_rows)


def _alert(kept: StoredBudget) -> AlertSpec:
    return AlertSpec(
        false_alarms=kept.false_alarms,
        seconds=duration(kept.per),
        minimum_effect=kept.minimum_effect,
        consecutive=kept.consecutive,
        recovery=kept.recovery,
        test=kept.test,
    )
