"""A kept evaluation: what late truth said of a batch."""

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from app.stored.document import Document, Part, StoredWarning
from app.stored.estimates import StoredInterval


class StoredSharesError(Part):
    """Estimated shares against the true ones."""

    absolute_error: float
    normalised_absolute_error: float
    relative_absolute_error: float
    squared_error_sum: float
    kullback_leibler: float
    hellinger: float
    total_variation: float


class StoredBrier(Part):
    """brier = calibration_error + refinement_error + remainder."""

    brier: float
    calibration_error: float
    refinement_error: float
    remainder: float


class StoredQuality(Part):
    """Posteriors and their decisions against the labels; ``log_loss`` None where infinite."""

    equal_length_bins: StoredBrier
    equal_count_bins: StoredBrier
    log_loss: float | None
    accuracy: float
    macro_f1: float
    precision: dict[str, float]
    recall: dict[str, float]
    f1: dict[str, float]
    confusion_matrix: list[list[float]]


class StoredEvaluation(Document):
    """Shares counted and estimated, posteriors before and after adjusting, against the truth.

    ``covered``: whether the ``interval`` of each class holds its true share.
    """

    NAME: ClassVar[str] = "an evaluation"

    id: str
    created_at: datetime
    model: str
    version: int
    estimate_id: str | None
    method: str
    size: int
    truth: dict[str, float]
    counted: StoredSharesError | None
    estimate: StoredSharesError
    interval: StoredInterval | None = None
    covered: dict[str, bool] | None
    before: StoredQuality | None
    after: StoredQuality | None
    warnings: Sequence[StoredWarning]
