"""From a budget of false alarms to the level of one window, and what to say of it beforehand."""

from dataclasses import dataclass
from math import ceil, log, log1p, sqrt

from scipy.special import chdtri, gammainccinv

from app.core.arrays import Floats
from app.core.prevalence.watching.source_set import SOURCE_LEVEL
from app.core.warnings import Warning, WarningCode

LARGEST = 0.05
"""Nothing more likely than this by chance is an alert, however many false alarms are bearable: the
rest of the budget is not spent."""
COMFORTABLE = 10.0
"""So many validation rows for each row of a window leave nearly all of the power."""


@dataclass(frozen=True)
class Budget:
    """At most ``false_alarms`` alerts without a shift, on average, in ``seconds``."""

    false_alarms: float
    seconds: float

    def windows(self, duration: float) -> float:
        """How many windows of ``duration`` seconds the period holds, in each segment."""
        return self.seconds / duration

    def mean(self, certainty: float | None = None) -> float:
        """How many false alarms to expect, so that the budget is kept.

        ``certainty``: the share of periods with no more than ``false_alarms`` of them, by Poisson's
        distribution, whose P(count ≤ b) = Q(b + 1, mean) is taken for broken b too. None: kept on
        average; one a month then means more than one in a quarter of the months.
        """
        if certainty is None:
            return self.false_alarms
        return float(gammainccinv(self.false_alarms + 1, certainty))


def level_per_window(
    budget: Budget,
    windows_per_period: float,
    segments: int,
    consecutive: int = 1,
    certainty: float | None = None,
) -> float:
    """The level α of the test of one window, for one of ``segments`` of a stream.

    An alert needs k = ``consecutive`` rejected windows in a row. In W = ``windows_per_period`` ·
    ``segments`` windows at most W places can complete such a run, each with probability α^k, since
    windows share nothing but the source and α bounds the rejections of every source in its set,
    one by one. So α = (budget / W)^(1/k) keeps the expected number of alerts of such a source
    within the budget, whatever else is true of it, and overlapping runs, which are one alert, are
    counted as several. What the calculation cannot see is rows that depend on each other across
    windows for other reasons than the source (one campaign, one customer's thousand rows).
    ``certainty``: see ``Budget.mean``.

    For the other sources, ``source_level`` of them, the excess of a window's rate is raised to the
    k-th power; on average over all sources the number of alerts stays below the budget
    (docs/results/alerts.md, which also shows how far out the chi-square tail can be trusted).
    """
    places = max(windows_per_period * segments, 1.0)
    each = min(budget.mean(certainty) / places, LARGEST)
    return float(each ** (1.0 / consecutive))


def level_per_stream(budget: Budget, segments: int) -> float:
    """The level α of an e-process per segment, started again each period and after each alert.

    Without a shift another alert follows with probability at most α each time, so that a period
    has at most Σ_j α^j = α / (1 − α) alerts per segment; that equals its part of the budget.
    """
    part = budget.false_alarms / segments
    return min(part / (1.0 + part), LARGEST)


def smallest_shift(level: float, degrees_of_freedom: int = 1) -> float:
    """How many standard errors of a window's estimate a shift must reach to be found half the time.

    With the source priors known; the square root of the quantile of chi-square.
    """
    return sqrt(float(chdtri(degrees_of_freedom, level)))


def power_loss(
    source_rows: float, window_rows: float, level: float, source_level: float = SOURCE_LEVEL
) -> float:
    """By what factor a shift must be larger than with the source priors known, for two classes.

    The set of the source reaches z_s √(N/n) of a window's standard errors, z_s its own quantile.
    """
    reach = smallest_shift(source_level) * sqrt(window_rows / source_rows)
    return 1.0 + reach / smallest_shift(level)


def advice(
    source_rows: float | None,
    window_rows: float,
    level: float,
    priors: Floats | None = None,
    source_level: float = SOURCE_LEVEL,
) -> tuple[Warning, ...]:
    """What to say when a monitor is made, of n = ``source_rows`` and N = ``window_rows``.

    ``source_rows``: validation rows, None where there are none. ``priors``: the source's.
    """
    warnings = []
    if source_rows is None:
        message = (
            "the source priors and the classifier are taken as exact, so that an error in them "
            "counts as a shift in every window, and the budget of false alarms does not hold: "
            "register a version with a validation set"
        )
        warnings.append(Warning(WarningCode.NO_VALIDATION_SET, message))
    elif source_rows < COMFORTABLE * window_rows:
        factor = power_loss(source_rows, window_rows, level, source_level)
        message = (
            f"{source_rows:.0f} validation rows for windows of {window_rows:.0f}: what they leave "
            "open of the source priors cannot be told from a shift, which must be "
            f"{factor - 1:.0%} larger to be found; register {COMFORTABLE * window_rows:.0f} or "
            "more, or take smaller windows"
        )
        warnings.append(Warning(WarningCode.SMALL_VALIDATION_SET, message))
    unreachable = None if priors is None else _unreachable(window_rows, level, priors)
    if unreachable is not None:
        warnings.append(Warning(WarningCode.LEVEL_OUT_OF_REACH, unreachable))
    return tuple(warnings)


def _unreachable(window_rows: float, level: float, priors: Floats) -> str | None:
    """What no window of this size can show at this level, however sure the classifier is.

    A window of class k alone has the statistic 2N ln(1 / p0_k) at most, one without class k
    2N ln(1 / (1 − p0_k)).
    """
    known = priors[priors > 0]
    if len(known) < 2:
        return None
    needed = float(chdtri(len(known) - 1, level)) / 2
    smallest = float(known.min())
    if window_rows * -log(smallest) < needed:
        return (
            f"at a level of {level:.2g} no window of {window_rows:.0f} rows can raise an alert, "
            f"whatever it holds; take {ceil(needed / -log(smallest))} rows or more, or a larger "
            "budget"
        )
    if window_rows * -log1p(-smallest) < needed:
        return (
            f"windows of {window_rows:.0f} rows show when the rarest class grows, not when it "
            f"vanishes; that takes {ceil(needed / -log1p(-smallest))} rows or more"
        )
    return None
