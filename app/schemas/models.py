"""Models, versions and what is known of them, as answers."""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict

from app.core.prevalence.matching.bandwidth import Criterion
from app.core.prevalence.matching.version import FeatureMap
from app.schemas.base import Out, WarningOut


class MethodOut(Out):
    """Whether a version serves a method."""

    name: str
    available: bool
    reason: str | None = None


class ValidationOut(Out):
    """The validation set in brief; ``mean_gap``: mean posterior minus label frequency, raw."""

    size: int
    label_counts: dict[str, float]
    mean_gap: dict[str, float]


class CurveOut(Out):
    """A curve, linear between its points."""

    scores: list[float]
    probabilities: list[float]


class CalibrationQualityOut(Out):
    """Quality of labelled posteriors; ``gap``: mean posterior minus label frequency."""

    log_loss: float | None
    brier: float
    calibration_error: float
    gap: dict[str, float]
    z: dict[str, float]
    raw_false_alarm_rate: float


class CalibrationReportOut(Out):
    """Before and after, by cross-validation in ``folds`` parts; ``losses``: what auto compared."""

    asked: str
    rows: int
    folds: int | None
    before: CalibrationQualityOut
    after: CalibrationQualityOut
    losses: dict[str, float | None] | None


class CalibrationOut(Out):
    """calibrated ∝ exp(scale · ln max(g, floor) + bias), scale and bias by class.

    platt: ∝ σ(scale · ln(g / (1 − g)) + bias). isotonic: ∝ ``curves``, without scale and bias.
    """

    method: str
    scale: float | dict[str, float] | None
    bias: dict[str, float] | None
    floor: float
    regularised: bool
    curves: dict[str, CurveOut] | None = None
    report: CalibrationReportOut | None = None


class TrainingOut(Out):
    """How a version was trained in the service."""

    learner: str
    parameters: dict[str, object]
    feature_names: list[str]
    categorical: list[str]
    missing: Literal["refuse", "impute"]
    rows: int
    folds: int
    seed: int


class MatchingOut(Out):
    """What features are matched with: random features of ``dimension`` at ``bandwidth``.

    ``delta_min``, ``lambda_min``: how well they tell the classes apart, for hard and soft shares.
    ``exact``: whether standardised rows are kept, which the exact kernels need.
    """

    feature_map: FeatureMap
    feature_names: list[str]
    rows: int
    bandwidth: float
    criterion: Criterion
    dimension: int
    seed: int
    standardise: bool
    delta_min: float
    lambda_min: float
    condition: float | None
    exact: bool


class VersionOut(Out):
    """A version. ``priors``: of the training data; ``source_priors``: those in use."""

    model: str
    version: int
    digest: str
    created_at: datetime
    classes: list[str]
    priors: dict[str, float]
    source_priors: dict[str, float]
    outputs: list[str]
    confusion_matrix: list[list[float]] | None
    validation: ValidationOut | None
    calibration: CalibrationOut
    methods: list[MethodOut]
    matching: MatchingOut | None
    training: TrainingOut | None
    metadata: dict[str, object]
    warnings: list[WarningOut]


class BatchScoreOut(Out):
    """Mean error of the shares on batches of one size, drawn at priors of one kind."""

    size: int
    priors: str
    mean_absolute_error: float | None


class ScoreOut(Out):
    """What a method was worth; ``reason``: why it was not tried."""

    name: str
    mean_absolute_error: float | None
    standard_error: float | None
    brier_change: float | None
    batches: list[BatchScoreOut]
    reason: str | None


class ScorecardOut(Out):
    """Methods on batches resampled from the validation rows, cross-fitted.

    ``stopped``: time ran out. ``chosen``: what auto takes for posteriors, and why.
    """

    model: str
    version: int
    seed: int
    rows: int
    batches: int
    stopped: bool
    chosen: str
    reason: str
    methods: list[ScoreOut]


class OtherVersionOut(Out):
    """A version of a model that is no classifier; what else there is depends on the kind."""

    model_config = ConfigDict(extra="allow")

    model: str
    kind: str
    version: int
    digest: str
    created_at: datetime
    metadata: dict[str, object]


class AdaptationOut(Out):
    """A source model adapted to a sample; what else there is depends on the kind."""

    model_config = ConfigDict(extra="allow")

    id: str
    model: str
    version: int
    kind: str
    created_at: datetime
    size: int
    warnings: list[WarningOut]


class PredictionsOut(Out):
    """What an adaptation says of rows; what else there is depends on the kind."""

    model_config = ConfigDict(extra="allow")

    adaptation: str
    size: int


class ModelOut(Out):
    """A model; ``version`` is there in the answer that registered it."""

    name: str
    kind: str
    classes: list[str]
    description: str
    versions: int
    aliases: dict[str, int]
    created_at: datetime
    updated_at: datetime
    version: VersionOut | OtherVersionOut | None = None


class ModelPage(Out):
    """Models by name."""

    items: list[ModelOut]
    next_cursor: str | None


class VersionPage(Out):
    """Versions, newest first."""

    items: list[VersionOut | OtherVersionOut]
    next_cursor: str | None


class AliasOut(Out):
    """An alias."""

    model: str
    alias: str
    version: int
    updated_at: datetime
