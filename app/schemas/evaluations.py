"""Evaluations by late truth, as answers."""

from datetime import datetime

from app.schemas.base import Out, WarningOut
from app.schemas.estimates import IntervalOut
from app.stored.evaluations import StoredBrier, StoredQuality, StoredSharesError


class SharesErrorOut(StoredSharesError):
    """Estimated shares against the true ones."""


class BrierOut(StoredBrier):
    """brier = calibration_error + refinement_error + remainder."""


class QualityOut(StoredQuality):
    """Posteriors and their decisions against the labels; log_loss null where infinite."""

    equal_length_bins: BrierOut
    equal_count_bins: BrierOut


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
