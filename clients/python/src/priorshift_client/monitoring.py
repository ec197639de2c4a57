"""Streams that are watched: monitors, their windows and series, and alerts."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from priorshift_client.results import Floats, Warning

Duration = timedelta | str
"""Whole seconds, or as ISO 8601 has them: ``"PT1H"``, ``"P30D"``; answers have the text."""
WindowState = Literal["open", "sealed", "closed", "failed"]
AlertState = Literal["open", "acknowledged", "closed"]


@dataclass(frozen=True)
class WindowSpec:
    """Windows of ``rows``, or of a ``duration`` that are closed ``grace`` after their end.

    ``minimum_rows``: with fewer a window of a duration says nothing.
    """

    rows: int | None = None
    duration: Duration | None = None
    minimum_rows: int | None = None
    grace: Duration | None = None

    def content(self) -> dict[str, Any]:
        """For JSON, without what was not given."""
        content = {
            "rows": self.rows,
            "duration": _iso(self.duration),
            "minimum_rows": self.minimum_rows,
            "grace": _iso(self.grace),
        }
        return {name: value for name, value in content.items() if value is not None}


@dataclass(frozen=True)
class AlertSpec:
    """A budget of ``false_alarms`` ``per`` period, and what makes an alert.

    ``minimum_effect``: smallest total variation that counts; ``consecutive``: windows in a row;
    ``recovery``: calm windows in a row that close it. ``test``: each window by itself, or
    always-valid, which adds up evidence over windows.
    """

    false_alarms: float = 1.0
    per: Duration = "P30D"
    minimum_effect: float = 0.0
    consecutive: int = 1
    recovery: int = 3
    test: Literal["window", "always-valid"] = "window"

    def content(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "false_alarms": self.false_alarms,
            "per": _iso(self.per),
            "minimum_effect": self.minimum_effect,
            "consecutive": self.consecutive,
            "recovery": self.recovery,
            "test": self.test,
        }


@dataclass(frozen=True)
class Budget(AlertSpec):
    """The budget with the ``level`` of one window that follows from it.

    ``windows_per_period``: of each of ``segments``. Both are None while windows of rows have not
    shown how fast they fill.
    """

    level: float | None = None
    windows_per_period: float | None = None
    segments: int = 1


@dataclass(frozen=True)
class Monitor:
    """A monitor. ``takes``: what its rows are, once there are some."""

    name: str
    model: str
    version: str
    method: str
    window: WindowSpec
    segment_by: str | None
    alert: Budget | None
    interval_level: float
    keep_rows: bool
    description: str
    takes: str | None
    segments: int
    created_at: datetime
    updated_at: datetime
    warnings: tuple[Warning, ...]


@dataclass(frozen=True)
class SealedWindow:
    """A window that takes no more rows; its estimate follows."""

    number: int
    start: datetime
    end: datetime
    size: int


@dataclass(frozen=True)
class ObservedSegment:
    """What became of the rows of one segment, and the windows that they ended."""

    segment: str | None
    accepted: int
    late: int
    closed: tuple[SealedWindow, ...]


@dataclass(frozen=True)
class Observed:
    """What was counted. ``late``: rows of windows that are closed, which count nowhere."""

    monitor: str
    accepted: int
    late: int
    streams: tuple[ObservedSegment, ...]
    warnings: tuple[Warning, ...]


@dataclass(frozen=True)
class Window:
    """A window; ``estimate``: the id of what it said, or else a ``note`` that says why not.

    ``state`` sealed: its estimate is on its way.
    """

    id: int
    segment: str | None
    number: int
    state: str
    start: datetime
    end: datetime
    size: int
    estimate: str | None
    note: str | None


@dataclass(frozen=True, eq=False)
class Series:
    """Windows as columns, oldest first within each segment; shares by class. NaN: nothing said.

    ``windows``: how many stand behind each point, 1 unless a long range was made shorter: then
    estimates are means by size, ``lower``, ``upper`` and ``p_value`` the outermost. ``count``:
    windows in all.
    """

    monitor: str
    classes: tuple[str, ...]
    count: int
    time: tuple[datetime, ...] = field(repr=False)
    end: tuple[datetime, ...] = field(repr=False)
    segment: tuple[str | None, ...] = field(repr=False)
    size: tuple[int, ...] = field(repr=False)
    windows: tuple[int, ...] = field(repr=False)
    p_value: Floats = field(repr=False)
    level: Floats = field(repr=False)
    detected: tuple[bool | None, ...] = field(repr=False)
    version: tuple[int | None, ...] = field(repr=False)
    estimate: dict[str, Floats] = field(repr=False)
    lower: dict[str, Floats] = field(repr=False)
    upper: dict[str, Floats] = field(repr=False)
    source: dict[str, Floats] = field(repr=False)

    def __len__(self) -> int:
        """Points."""
        return len(self.time)


@dataclass(frozen=True)
class AlertShare:
    """A class in the window of an alert."""

    name: str = field(metadata={"key": "class"})
    source: float
    estimate: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class Alert:
    """An alert: opened by a window, acknowledged by a caller, closed by recovery or a caller.

    ``estimate``: the id of what its window said, in the history.
    """

    id: str
    monitor: str
    model: str
    version: int
    segment: str | None
    state: str
    opened_at: datetime
    start: datetime
    end: datetime
    estimate: str
    size: int
    p_value: float
    level: float
    effect_size: float
    message: str
    prevalence: tuple[AlertShare, ...]
    acknowledged_at: datetime | None = None
    acknowledged_by: str | None = None
    note: str = ""
    closed_at: datetime | None = None
    closed_by: str | None = None


def _iso(duration: Duration | None) -> str | None:
    """ISO 8601; ``ValueError`` for what has parts of seconds, or runs backwards."""
    if not isinstance(duration, timedelta):
        return duration
    seconds, rest = divmod(duration, timedelta(seconds=1))
    if rest or seconds < 0:
        raise ValueError(f"durations are whole seconds, not {duration}")
    return f"PT{seconds}S"
