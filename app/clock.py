"""Moments and lengths of time: the present, microseconds since 1970, ISO 8601 durations."""

import re
from datetime import UTC, datetime, timedelta

MICROSECONDS = 1_000_000
"""In a second."""
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


def rfc3339(moment: datetime) -> str:
    """A time as answers tell it, with Z for UTC."""
    return moment.isoformat().replace("+00:00", "Z")


def now() -> datetime:
    """The present, in UTC."""
    return datetime.now(UTC)
