"""What is kept of a monitor: what it was asked to do, with every default filled in."""

from typing import ClassVar

from app.stored.document import Document, Part


class StoredWindow(Part):
    """How windows are cut: by ``rows``, or by a ``duration`` (ISO 8601) with the other two."""

    rows: int | None
    duration: str | None
    minimum_rows: int | None
    grace: str | None


class StoredBudget(Part):
    """A budget of ``false_alarms`` ``per`` period (ISO 8601), and what makes an alert."""

    false_alarms: float
    per: str
    minimum_effect: float
    consecutive: int
    recovery: int
    test: str


class StoredMonitor(Document):
    """A monitor. ``version``: a number, ``latest`` or ``@alias``; ``alert`` None: no alarms."""

    NAME: ClassVar[str] = "a monitor"

    version: str
    method: str
    window: StoredWindow
    segment_by: str | None
    alert: StoredBudget | None
    interval_level: float
    keep_rows: bool
    description: str
