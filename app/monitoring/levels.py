"""How small the p-value of a window must be for the budget of its monitor to hold.

Windows of a duration are counted; how many windows of rows a period holds is told by the pace of
the last ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.clock import MICROSECONDS
from app.core.prevalence.watching.budget import Budget, level_per_stream, level_per_window
from app.monitoring.specification import AlertSpec, ByDuration, ByRows

SHORTEST = 1.0
"""Seconds that a window of rows counts for at least, however fast it was filled."""
PACED_BY = 20
"""Windows of rows whose mean length is taken for the length of the next."""


@dataclass(frozen=True)
class Level:
    """The level of one window, or of one stream in a period where evidence adds up.

    ``windows``: per period and segment; None while nobody knows how fast windows of rows fill, as
    ``value`` is then.
    """

    value: float | None
    windows: float | None


def of(
    alert: AlertSpec,
    window: ByRows | ByDuration,
    segments: int,
    spans: Sequence[tuple[int, int]] = (),
) -> Level:
    """The level under this budget; ``spans``: start and end of the last windows, latest first."""
    budget = Budget(alert.false_alarms, alert.seconds)
    seconds = _seconds(window, spans)
    windows = None if seconds is None else budget.windows(seconds)
    if alert.test == "always-valid":
        return Level(level_per_stream(budget, max(segments, 1)), windows)
    if windows is None:
        return Level(None, None)
    return Level(level_per_window(budget, windows, max(segments, 1), alert.consecutive), windows)


def _seconds(window: ByRows | ByDuration, spans: Sequence[tuple[int, int]]) -> float | None:
    """How long a window takes, from the end of the one before to its own."""
    if isinstance(window, ByDuration):
        return window.duration / MICROSECONDS
    if not spans:
        return None
    first = min(start for start, _ in spans)
    last = max(end for _, end in spans)
    return max((last - first) / MICROSECONDS / len(spans), SHORTEST)
