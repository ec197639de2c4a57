"""What a monitor was asked to do, as values."""

from dataclasses import dataclass
from typing import Any

from app.clock import MICROSECONDS, duration


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
    def of(cls, content: dict[str, Any]) -> "Spec":
        """From the JSON form that is kept, which was checked."""
        alert = content["alert"]
        return cls(
            version=content["version"],
            method=content["method"],
            window=_window(content["window"]),
            segment_by=content["segment_by"],
            alert=None if alert is None else _alert(alert),
            interval_level=content["interval_level"],
            keep_rows=content["keep_rows"],
        )


def _window(given: dict[str, Any]) -> ByRows | ByDuration:
    if given.get("rows") is not None:
        return ByRows(given["rows"])
    length, grace = duration(given["duration"]), duration(given["grace"])
    return ByDuration(length * MICROSECONDS, grace * MICROSECONDS, given["minimum_rows"])


def _alert(given: dict[str, Any]) -> AlertSpec:
    return AlertSpec(
        false_alarms=given["false_alarms"],
        seconds=duration(given["per"]),
        minimum_effect=given["minimum_effect"],
        consecutive=given["consecutive"],
        recovery=given["recovery"],
        test=given["test"],
    )
