"""A kept alert."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, ClassVar, Literal

from pydantic import Field, PlainSerializer

from app.stored.document import Document, Part

Change = Annotated[datetime, PlainSerializer(datetime.isoformat, when_used="json")]
"""When somebody changed an alert; told with the offset +00:00, the other times with Z."""


class StoredAlertShare(Part):
    """A class in the window of an alert."""

    class_: Annotated[str, Field(alias="class")]
    source: float
    estimate: float
    lower: float | None
    upper: float | None


class StoredAlert(Document):
    """An alert: opened by a window, acknowledged by a caller, closed by recovery or a caller."""

    NAME: ClassVar[str] = "an alert"

    id: str
    monitor: str
    model: str
    version: int
    segment: str | None
    state: Literal["open", "acknowledged", "closed"]
    opened_at: datetime
    start: datetime
    end: datetime
    estimate: str
    size: int
    p_value: float
    level: float
    effect_size: float
    message: str
    prevalence: Sequence[StoredAlertShare]
    acknowledged_at: Change | None = None
    acknowledged_by: str | None = None
    note: str = ""
    closed_at: Change | None = None
    closed_by: str | None = None
