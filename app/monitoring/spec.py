"""What a monitor was asked to do, as values."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

MICROSECONDS = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DURATION = re.compile(
    r"P(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,8})H)?(?:(\d{1,8})M)?(?:(\d{1,8})S)?)?", re.ASCII
)
_UNITS = (604_800, 86_400, 3_600, 60, 1)


def duration(text: str) -> int:
    """Seconds of an ISO 8601 duration in weeks, days, hours, minutes and seconds."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()) or text.endswith("T"):
        raise ValueError('must be an ISO 8601 duration of weeks to seconds, like "PT1H" or "P30D"')
    return sum(int(n or 0) * unit for n, unit in zip(match.groups(), _UNITS, strict=True))


def micros(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment(micros: int) -> datetime:
    """The time so many microseconds after 1970."""
    return _EPOCH + timedelta(microseconds=micros)


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
