"""What an answer holds, as JSON shapes."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.api.requests import Matrix, Rows
from app.core.prevalence.matching.bandwidth import Criterion
from app.core.prevalence.matching.version import FeatureMap
from models_store.records import DeliveryStatus


class Out(BaseModel):
    """An answer part."""

    model_config = ConfigDict(populate_by_name=True)


class WarningOut(Out):
    """What to doubt, or what was decided for the caller."""

    code: str
    message: str


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
    parameters: dict[str, Any]
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
    metadata: dict[str, Any]
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
    metadata: dict[str, Any]


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


class PosteriorsOut(Out):
    """Adjusted rows in the order of ``columns``; for counts, one row for each of ``outputs``.

    ``decisions``: classes of least expected cost, where ``costs`` were given; ``threshold``: what
    that comes to on the raw posterior of the second of two classes.
    """

    model: str
    version: int
    size: int
    columns: list[str]
    outputs: list[str] | None
    method: str | None
    source_priors: dict[str, float]
    target_priors: dict[str, float]
    warnings: list[WarningOut]
    decisions: list[str] | None
    threshold: float | None
    posteriors: Rows


class BiasAdjustmentOut(Out):
    """adjusted posteriors = softmax(scale · weights·x + intercepts)."""

    model: str
    version: int
    method: str | None
    scale: float
    intercepts: dict[str, float]
    reference: str | None
    target_priors: dict[str, float]
    warnings: list[WarningOut]


class LevelOut(Out):
    """A level of a categorical column, and what it adds to the score of each class."""

    level: str | float
    weights: list[float]


class ColumnOut(Out):
    """A column: ``fill`` stands for a missing value.

    A number x adds weights · (x − centre) / scale to the scores; a level adds its weights, an
    unknown one nothing.
    """

    name: str
    fill: str | float
    centre: float | None = None
    scale: float | None = None
    weights: list[float] | None = None
    levels: list[LevelOut] | None = None


class ParametersOut(Out):
    """posteriors = softmax(intercepts + what the columns add); weights in the order of classes.

    Adjusted to ``target_priors`` where those are there.
    """

    model: str
    version: int
    learner: str
    classes: list[str]
    method: str | None = None
    target_priors: dict[str, float] | None = None
    intercepts: dict[str, float]
    columns: list[ColumnOut]
    warnings: list[WarningOut]


class ShiftTestOut(Out):
    """The shift results of a batch."""

    model: str
    version: int
    size: int
    shift: ShiftOut
    diagnostics: DiagnosticsOut
    warnings: list[WarningOut]


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
    """What late truth says: shares counted and estimated, posteriors before and after adjusting."""

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
    before: QualityOut | None
    after: QualityOut | None
    warnings: list[WarningOut]


class EvaluationPage(Out):
    """Kept evaluations, newest first."""

    items: list[EvaluationOut]
    next_cursor: str | None


class RegionTestOut(Out):
    """Whether the stated priors lie in the region; statistic null where they are impossible."""

    model: str
    version: int
    size: int
    inside: bool
    level: float
    statistic: float | None
    factor: float
    degrees_of_freedom: int
    p_value: float
    priors: dict[str, float]
    prevalence: dict[str, float]
    warnings: list[WarningOut]


class FaultOut(Out):
    """One wrong thing."""

    pointer: str
    message: str
    row: int | None = None


class ProblemOut(Out):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    errors: list[FaultOut] | None = None
    error_count: int | None = None


class KeyOut(Out):
    """What is kept of an API key; ``key``: the key itself, in the answer that made it."""

    id: str
    prefix: str
    name: str
    scopes: list[str]
    models: list[str] | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    key: str | None = None


class KeyPage(Out):
    """API keys, newest first."""

    items: list[KeyOut]
    next_cursor: str | None


class WebhookOut(Out):
    """A webhook; ``secret``: what its receiver verifies with, in the answer that made it.

    ``reason``: why the service itself disabled it.
    """

    id: str
    url: str
    events: list[str]
    models: list[str] | None
    monitors: list[str] | None
    description: str
    disabled: bool
    reason: str | None
    created_at: datetime
    updated_at: datetime
    secret_rotated_at: datetime | None
    secret: str | None = None


class WebhookPage(Out):
    """Webhooks, newest first."""

    items: list[WebhookOut]
    next_cursor: str | None


class AttemptOut(Out):
    """An attempt: the status of the answer, or why there was none."""

    at: datetime
    status: int | None
    error: str | None
    milliseconds: float


class DeliveryOut(Out):
    """An event for a webhook; ``message``: its header webhook-id, the same in every attempt."""

    id: str
    message: str
    type: str
    status: DeliveryStatus
    created_at: datetime
    next_attempt_at: datetime | None
    attempts: list[AttemptOut]


class DeliveryPage(Out):
    """Deliveries, newest first."""

    items: list[DeliveryOut]
    next_cursor: str | None


class AuditOut(Out):
    """A write: who, what, when, from where."""

    at: datetime
    key_id: str | None
    key_name: str
    action: str
    target: str
    address: str


class AuditPage(Out):
    """Writes, newest first."""

    items: list[AuditOut]
    next_cursor: str | None
