"""What requests about monitors hold, and what they are answered, as JSON shapes."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from app.clock import duration
from app.core.json_types import JsonValue
from app.schemas.base import Out, WarningOut
from app.schemas.requests import BatchIn, In, Name, SegmentKey, Text, Words
from app.stored.alerts import StoredAlert, StoredAlertShare
from app.stored.monitors import StoredBudget, StoredWindow

LONGEST_WINDOW = 31 * 86_400
LONGEST_PERIOD = 366 * 86_400
MOST_PERIODS = 100_000


def _duration(value: str) -> str:
    duration(value)
    return value


Duration = Annotated[str, Field(max_length=40), AfterValidator(_duration)]


class WindowIn(In):
    """Windows of ``rows``, or of a ``duration`` that are closed ``grace`` after their end.

    ``minimum_rows``: with fewer a window of a duration says nothing.
    """

    rows: Annotated[int | None, Field(ge=10, le=5_000_000)] = None
    duration: Duration | None = None
    minimum_rows: Annotated[int | None, Field(ge=1, le=5_000_000)] = None
    grace: Duration | None = None

    @model_validator(mode="after")
    def one_kind(self) -> "WindowIn":
        """Rows or a duration, and with rows nothing else."""
        if (self.rows is None) == (self.duration is None):
            raise ValueError('needs one of rows and duration, like {"rows": 1000}')
        if self.rows is not None:
            if self.minimum_rows is not None or self.grace is not None:
                raise ValueError("minimum_rows and grace belong to windows of a duration")
            return self
        assert self.duration is not None
        if not 1 <= duration(self.duration) <= LONGEST_WINDOW:
            raise ValueError("duration must lie between one second and 31 days")
        if self.grace is not None and duration(self.grace) > LONGEST_WINDOW:
            raise ValueError("grace must be at most 31 days")
        return self


class AlertSpecIn(In):
    """A budget of ``false_alarms`` ``per`` period, and what makes an alert.

    ``minimum_effect``: smallest total variation that counts; ``consecutive``: windows in a row;
    ``recovery``: calm windows in a row that close it. ``test``: each window by itself, or
    always-valid, which adds up evidence over windows.
    """

    false_alarms: Annotated[float, Field(gt=0, le=1000)] = 1.0
    per: Duration = "P30D"
    minimum_effect: Annotated[float, Field(ge=0, le=1)] = 0.0
    consecutive: Annotated[int, Field(ge=1, le=10)] = 1
    recovery: Annotated[int, Field(ge=1, le=100)] = 3
    test: Literal["window", "always-valid"] = "window"

    @model_validator(mode="after")
    def bounded(self) -> "AlertSpecIn":
        """A period of sensible length."""
        if not 3600 <= duration(self.per) <= LONGEST_PERIOD:
            raise ValueError("per must lie between one hour and 366 days")
        return self


class MonitorIn(In):
    """A stream of rows to watch under a version, or under whichever one an alias points to."""

    name: Name
    model: Name
    version: Annotated[int | None, Field(ge=1, le=999_999_999)] = None
    alias: Name | None = None
    method: Annotated[Text, Field(max_length=40)] = "auto"
    window: WindowIn
    segment_by: SegmentKey | None = None
    alert: AlertSpecIn | None = None
    interval_level: Annotated[float, Field(gt=0, lt=1)] = 0.95
    keep_rows: bool = False
    description: Annotated[Words, Field(max_length=2000)] = ""

    @model_validator(mode="after")
    def one_version(self) -> "MonitorIn":
        """A version or an alias."""
        if self.version is not None and self.alias is not None:
            raise ValueError("give one of version and alias; without either it is the latest")
        return self


class MonitorPatch(In):
    """What can be changed of a monitor: what alarms, and its description."""

    alert: AlertSpecIn | None = None
    description: Annotated[Words, Field(max_length=2000)] | None = None


_TEXTS = {"type": "array", "items": {"type": "string"}}
OneOrColumn = Annotated[JsonValue, WithJsonSchema({"anyOf": [{"type": "string"}, _TEXTS]})]
"""One value for all rows, or a list with one for each."""


class ObservationsIn(BatchIn):
    """Rows to count. ``observed_at`` and ``segment``: one for all of them, or one for each."""

    observed_at: OneOrColumn | None = None
    segment: Annotated[
        dict[str, object],
        WithJsonSchema(
            {
                "type": "object",
                "additionalProperties": {"anyOf": [{"type": "string"}, _TEXTS]},
            }
        ),
    ] = Field(default_factory=dict)


class AlertPatch(In):
    """An alert that somebody has seen; ``note``: what they make of it."""

    state: Literal["acknowledged", "closed"]
    note: Annotated[Words, Field(max_length=2000)] = ""


class WindowOut(StoredWindow):
    """How windows are cut."""


class AlertSpecOut(StoredBudget):
    """The budget, and the level that follows.

    ``level``: of one window; ``windows_per_period``: of each of ``segments``. Null while windows of
    rows have not shown how fast they fill.
    """

    level: float | None
    windows_per_period: float | None
    segments: int


class MonitorOut(Out):
    """A monitor. ``takes``: what its rows are, once there are some.

    ``name``: by which whoever asked finds it, ``model:name`` where another he sees has the name.
    """

    name: str
    model: str
    version: str
    method: str
    window: WindowOut
    segment_by: str | None
    alert: AlertSpecOut | None
    interval_level: float
    keep_rows: bool
    description: str
    takes: str | None
    segments: int
    created_at: datetime
    updated_at: datetime
    warnings: list[WarningOut]


class MonitorPage(Out):
    """Monitors by name."""

    items: list[MonitorOut]
    next_cursor: str | None


class SealedOut(Out):
    """A window that takes no more rows; its estimate follows."""

    number: int
    start: datetime
    end: datetime
    size: int


class StreamOut(Out):
    """What became of the rows of one segment."""

    segment: str | None
    accepted: int
    late: int
    closed: list[SealedOut]


class ObservationsOut(Out):
    """What was counted. ``late``: rows of windows that are closed, which count nowhere."""

    monitor: str
    accepted: int
    late: int
    streams: list[StreamOut]
    warnings: list[WarningOut]


class WindowItemOut(Out):
    """A window. ``note``: why it has no estimate; ``state`` sealed: its estimate is on its way."""

    id: int
    segment: str | None
    number: int
    state: Literal["open", "sealed", "closed", "failed"]
    start: datetime
    end: datetime
    size: int
    estimate: str | None
    note: str | None


class WindowPageOut(Out):
    """Windows, the latest begun first."""

    items: list[WindowItemOut]
    next_cursor: str | None


class ShareOut(StoredAlertShare):
    """A class in the window of an alert."""


class AlertOut(StoredAlert):
    """An alert: opened by a window, acknowledged by a caller, closed by recovery or a caller."""

    prevalence: list[ShareOut]
    acknowledged_at: datetime | None = None
    closed_at: datetime | None = None


class AlertPage(Out):
    """Alerts, newest first."""

    items: list[AlertOut]
    next_cursor: str | None


class SeriesOut(Out):
    """Windows as columns, oldest first within each segment; shares by class.

    ``windows``: how many stand behind each point, 1 unless a long range was made shorter: then
    estimates are means by size, ``lower``, ``upper`` and ``p_value`` the outermost.
    """

    monitor: str
    classes: list[str]
    count: int
    time: list[datetime]
    end: list[datetime]
    segment: list[str | None]
    size: list[int]
    windows: list[int]
    p_value: list[float | None]
    level: list[float | None]
    detected: list[bool | None]
    version: list[int | None]
    estimate: dict[str, list[float | None]]
    lower: dict[str, list[float | None]]
    upper: dict[str, list[float | None]]
    source: dict[str, list[float | None]]
