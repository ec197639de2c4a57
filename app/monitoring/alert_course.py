"""The course of an alert: opened by windows in a row, closed when the stream has recovered."""

from dataclasses import dataclass
from typing import Literal

from app.monitoring.specification import AlertSpec
from app.stored.streams import StoredStream

CALM = 0.05
"""A window whose p-value by itself is at least this may speak for recovery."""
LEFT = 0.5
"""And only if less than this part of the effect is left that opened the alert."""
Event = Literal["open", "close"]


def calm(p_value: float, effect: float, opened_by: float) -> bool:
    """Whether a window speaks for recovery from an alert that an effect ``opened_by`` opened.

    Small windows seldom show a shift by themselves, but keep most of its effect.
    """
    return p_value >= CALM and effect < LEFT * opened_by


@dataclass(frozen=True)
class Course:
    """How many of the last windows in a row were detected, and how many were calm."""

    detected: int = 0
    calm: int = 0

    @classmethod
    def of(cls, kept: StoredStream) -> "Course":
        """From what a stream remembers."""
        return cls(kept.detected, kept.calm)

    def after(self, detected: bool, calm: bool) -> "Course":
        """With one more window."""
        calm = calm and not detected
        return Course(self.detected + 1 if detected else 0, self.calm + 1 if calm else 0)

    def event(self, alert: AlertSpec, under_way: bool) -> Event | None:
        """What the last window brings about; ``under_way``: whether there is an alert."""
        if not under_way:
            needed = 1 if alert.test == "always-valid" else alert.consecutive
            return "open" if self.detected >= needed else None
        return "close" if self.calm >= alert.recovery else None
