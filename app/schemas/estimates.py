"""Estimates as answers, kept or not.

Their parts are what is kept of them; a part that comes to answer something else stops to inherit.
"""

from datetime import datetime

from app.schemas.base import Out, WarningOut
from app.schemas.requests import Matrix, Rows
from app.stored.estimates import (
    StoredAdjustment,
    StoredDiagnostics,
    StoredFit,
    StoredHistogram,
    StoredInterval,
    StoredShare,
    StoredShift,
    StoredUnknownShare,
)


class PrevalenceOut(StoredShare):
    """One class. ``weight`` = estimate / source, ``log_offset`` its logarithm."""


class IntervalOut(StoredInterval):
    """How ``lower`` and ``upper`` were found; seed and replicates of a bootstrap."""


class AdjustmentOut(StoredAdjustment):
    """adjusted ∝ exp(scale · ln max(g_k, floor) + offsets_k), on raw posteriors g.

    ``scale`` by class where the classes do not share one.
    """


class ShiftOut(StoredShift):
    """The likelihood-ratio test."""


class DiagnosticsOut(StoredDiagnostics):
    """How far the numbers can be trusted; ``radius``: of matching, a loose bound on the error."""


class UnknownShareOut(StoredUnknownShare):
    """The share of the population that is none of the classes."""


class FitOut(StoredFit):
    """Whether prior shift explains the batch; a small p-value: something else has changed too.

    ``residual``: of ``features`` the distance of the means, of ``posteriors`` the total variation
    between the binned ones. Drawn with ``seed``.
    """


class HistogramOut(StoredHistogram):
    """Rows by class and score, before and after adjusting, in bins of equal width from 0 to 1."""


class EstimateOut(Out):
    """What one batch said. ``posteriors``, ``trace`` and ``histogram`` come when included.

    A histogram is kept, a trace of up to 2,000 numbers too; posteriors are not.
    ``monitor``: whose window the batch was.
    """

    id: str | None
    model: str
    version: int
    method: str
    reason: str
    size: int
    labelled: int
    created_at: datetime
    observed_at: datetime | None
    segment: dict[str, str]
    prevalence: list[PrevalenceOut]
    unknown_share: UnknownShareOut | None
    interval: IntervalOut | None
    adjustment: AdjustmentOut | None
    shift: ShiftOut | None
    fit: FitOut | None
    diagnostics: DiagnosticsOut
    warnings: list[WarningOut]
    posteriors: Rows | None = None
    trace: Matrix | None = None
    weighted_precision: list[float] | None = None
    monitor: str | None = None
    histogram: HistogramOut | None = None


class GroupOut(Out):
    """The estimate of one group; ``holm_p_value``: of its shift test, adjusted for all groups."""

    group: str
    holm_p_value: float | None
    estimate: EstimateOut


class GroupsOut(Out):
    """One estimate for each group, in the order in which groups first occur."""

    group_by: str
    items: list[GroupOut]


class EstimatePage(Out):
    """Kept estimates, newest first."""

    items: list[EstimateOut]
    next_cursor: str | None
