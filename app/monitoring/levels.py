"""How small the p-value of a window must be for the budget of its monitor to hold.

A budget of A false alarms per period of T seconds is spent evenly over time and segments: a window
that took t seconds, one of S segments, may alarm by chance with probability A · t / (T · S). The
expected number of false alarms in any period is then at most A, however the windows are cut, as
long as their lengths do not depend on what the rows say.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.monitoring.spec import MICROSECONDS, AlertSpec, ByDuration, ByRows

SHORTEST = 1.0
"""Seconds that a window of rows counts for at least, however fast it was filled."""
PACED_BY = 20
"""Windows of rows whose mean length is taken for the length of the next."""
LARGEST = 0.05
"""No window is judged at a level above this, whatever the budget would allow."""


@dataclass(frozen=True)
class Level:
    """The level of one window, and where it comes from.

    ``windows``: per period and segment; None while nobody knows how fast windows of rows fill.
    """

    level: float | None
    windows: float | None
    segments: int


def of(
    alert: AlertSpec,
    window: ByRows | ByDuration,
    segments: int,
    spans: Sequence[tuple[int, int]] = (),
) -> Level:
    """The level under this budget; ``spans``: start and end of the last windows, latest first."""
    seconds = _seconds(window, spans)
    if seconds is None:
        return Level(None, None, segments)
    windows = alert.seconds / seconds
    share = alert.false_alarms / (windows * max(segments, 1))
    return Level(min(share, LARGEST), windows, segments)


def _seconds(window: ByRows | ByDuration, spans: Sequence[tuple[int, int]]) -> float | None:
    """How long a window takes, from the end of the one before to its own."""
    if isinstance(window, ByDuration):
        return window.duration / MICROSECONDS
    if not spans:
        return None
    first = min(start for start, _ in spans)
    last = max(end for _, end in spans)
    return max((last - first) / MICROSECONDS / len(spans), SHORTEST)
