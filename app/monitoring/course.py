"""The course of an alert: opened by windows in a row, closed when the stream has recovered."""

from dataclasses import dataclass
from typing import Any, Literal

from app.monitoring.spec import AlertSpec

CALM = 0.05
"""A window whose p-value is at least this speaks for recovery."""
Event = Literal["open", "close"]


@dataclass(frozen=True)
class Course:
    """How many of the last windows in a row were detected, and how many were calm."""

    detected: int = 0
    calm: int = 0

    @classmethod
    def of(cls, state: dict[str, Any]) -> "Course":
        """From what a stream remembers."""
        return cls(state.get("detected", 0), state.get("calm", 0))

    def after(self, detected: bool, p_value: float) -> "Course":
        """With one more window."""
        calm = not detected and p_value >= CALM
        return Course(self.detected + 1 if detected else 0, self.calm + 1 if calm else 0)

    def event(self, alert: AlertSpec, under_way: bool) -> Event | None:
        """What the last window brings about; ``under_way``: whether there is an alert."""
        if not under_way:
            return "open" if self.detected >= alert.consecutive else None
        return "close" if self.calm >= alert.recovery else None
