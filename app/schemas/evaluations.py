"""Evaluations by late truth, as answers."""

from datetime import datetime

from app.schemas.base import Out, WarningOut
from app.schemas.estimates import IntervalOut


class SharesErrorOut(Out):
    """Estimated shares against the true ones."""

    absolute_error: float
    normalised_absolute_error: float
    relative_absolute_error: float
    squared_error_sum: float
    kullback_leibler: float
    hellinger: float
    total_variation: float


class BrierOut(Out):
    """brier = calibration_error + refinement_error + remainder."""

    brier: float
    calibration_error: float
    refinement_error: float
    remainder: float


class QualityOut(Out):
    """Posteriors and their decisions against the labels; log_loss null where infinite."""

    equal_length_bins: BrierOut
    equal_count_bins: BrierOut
    log_loss: float | None
    accuracy: float
    macro_f1: float
    precision: dict[str, float]
    recall: dict[str, float]
    f1: dict[str, float]
    confusion_matrix: list[list[float]]


class EvaluationOut(Out):
    """What late truth says: shares counted and estimated, posteriors before and after adjusting.

    ``covered``: whether the ``interval`` of each class holds its true share.
    """

    id: str
    model: str
    version: int
    estimate_id: str | None
    method: str
    size: int
    created_at: datetime
    truth: dict[str, float]
    counted: SharesErrorOut | None
    estimate: SharesErrorOut
    covered: dict[str, bool] | None
    interval: IntervalOut | None = None
    before: QualityOut | None
    after: QualityOut | None
    warnings: list[WarningOut]


class EvaluationPage(Out):
    """Kept evaluations, newest first."""

    items: list[EvaluationOut]
    next_cursor: str | None
