"""What late truth says."""

from dataclasses import dataclass
from datetime import datetime

from priorshift_client.results import Warning


@dataclass(frozen=True)
class SharesError:
    """Estimated shares against the true ones."""

    absolute_error: float
    normalised_absolute_error: float
    relative_absolute_error: float
    squared_error_sum: float
    kullback_leibler: float
    hellinger: float
    total_variation: float


@dataclass(frozen=True)
class Brier:
    """brier = calibration_error + refinement_error + remainder."""

    brier: float
    calibration_error: float
    refinement_error: float
    remainder: float


@dataclass(frozen=True)
class Quality:
    """Posteriors and their decisions against the labels; log_loss None where infinite."""

    equal_length_bins: Brier
    equal_count_bins: Brier
    log_loss: float | None
    accuracy: float
    macro_f1: float
    precision: dict[str, float]
    recall: dict[str, float]
    f1: dict[str, float]
    confusion_matrix: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Evaluation:
    """Shares counted and estimated, posteriors before and after adjusting, against the truth."""

    id: str
    model: str
    version: int
    estimate_id: str | None
    method: str
    size: int
    created_at: datetime
    truth: dict[str, float]
    counted: SharesError | None
    estimate: SharesError
    covered: dict[str, bool] | None
    before: Quality | None
    after: Quality | None
    warnings: tuple[Warning, ...]
