"""Estimates as answers, kept or not."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from app.schemas.base import Out, WarningOut
from app.schemas.requests import Matrix, Rows


class PrevalenceOut(Out):
    """One class. ``weight`` = estimate / source, ``log_offset`` its logarithm."""

    class_: Annotated[str, Field(alias="class")]
    source: float
    counted: float | None
    estimate: float
    lower: float | None
    upper: float | None
    weight: float | None
    log_offset: float | None


class IntervalOut(Out):
    """How ``lower`` and ``upper`` were found; seed and replicates of a bootstrap."""

    level: float
    method: Literal["likelihood", "wald", "profile", "bootstrap", "exact-binomial", "credible"]
    of: Literal["population", "batch"]
    seed: int | None
    replicates: int | None


class AdjustmentOut(Out):
    """adjusted ∝ exp(scale · ln max(g_k, floor) + offsets_k), on raw posteriors g.

    ``scale`` by class where the classes do not share one.
    """

    scale: float | dict[str, float]
    offsets: dict[str, float | None]
    floor: float


class ShiftOut(Out):
    """The likelihood-ratio test."""

    statistic: float
    scale: float
    degrees_of_freedom: int
    p_value: float
    raw_p_value: float
    reference: Literal["chi-square", "scaled-chi-square", "bootstrap"]
    significance: float
    minimum_effect: float
    effect_size: float
    detected: bool
    raw_false_alarm_rate: float | None
    mean_gap: dict[str, float] | None
    seed: int | None
    replicates: int | None


class DiagnosticsOut(Out):
    """How far the numbers can be trusted; ``radius``: of matching, a loose bound on the error."""

    status: str
    iterations: int | None = None
    optimality_gap: float | None = None
    gain: float | None = None
    raw: dict[str, float] | None = None
    inadmissible: bool | None = None
    radius: float | None = None


class UnknownShareOut(Out):
    """The share of the population that is none of the classes."""

    estimate: float
    lower: float | None
    upper: float | None


class FitOut(Out):
    """Whether prior shift explains the batch; a small p-value: something else has changed too.

    ``residual``: of ``features`` the distance of the means, of ``posteriors`` the total variation
    between the binned ones. Drawn with ``seed``.
    """

    statistic: float
    p_value: float
    reference: Literal["features", "posteriors"]
    residual: float
    seed: int
    replicates: int


class HistogramOut(Out):
    """Rows by class and score, before and after adjusting, in bins of equal width from 0 to 1."""

    bins: int
    before: dict[str, list[float]]
    after: dict[str, list[float]]


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
