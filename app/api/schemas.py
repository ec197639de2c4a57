"""What goes in and out, as JSON shapes. Arrays are checked by ``wire``, not here."""

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

NAME = r"^[a-z0-9][a-z0-9._-]{0,62}$"
METADATA_BYTES = 16_384
METADATA_DEPTH = 20
MOST_FIELDS = 50
MOST_NAMES = 10_000

_NUMBERS = {"type": "object", "additionalProperties": {"type": "number"}}
_ROWS = {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}
_STRINGS = {"type": "array", "items": {"type": "string"}}

ByName = Annotated[Any, WithJsonSchema(_NUMBERS)]
Matrix = Annotated[Any, WithJsonSchema(_ROWS)]
Labels = Annotated[Any, WithJsonSchema(_STRINGS)]


def storable(value: str) -> str:
    """Text that every database takes: no NUL, no lone surrogates."""
    if "\x00" in value:
        raise ValueError("must not contain the character U+0000")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("must not contain lone surrogates") from None
    return value


def _timestamp(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError('must be a string like "2026-01-31T00:00:00Z"')
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(f"{value[:40]!r} is not an ISO 8601 time") from None


def _within_years(value: datetime) -> datetime:
    if not 1900 <= value.year <= 9000:
        raise ValueError("must lie between the years 1900 and 9000")
    return value


def _small_json(value: dict[str, Any]) -> dict[str, Any]:
    _shallow(value)
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise ValueError("must not contain numbers beyond the range of a double") from None
    if len(text.encode()) > METADATA_BYTES:
        raise ValueError(f"is larger than {METADATA_BYTES} bytes as JSON")
    return value


def _shallow(value: Any, depth: int = 0) -> None:
    """Refuse deep nesting, and text that no database takes."""
    if depth > METADATA_DEPTH:
        raise ValueError(f"is nested more than {METADATA_DEPTH} deep")
    if isinstance(value, str):
        storable(value)
    elif isinstance(value, dict):
        for name, item in value.items():
            storable(name)
            _shallow(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _shallow(item, depth + 1)


def at_most(limit: int) -> BeforeValidator:
    """Refuse long lists and objects before their items are looked at."""

    def check(value: Any) -> Any:
        if isinstance(value, list | dict) and len(value) > limit:
            raise ValueError(f"has {len(value)} items, at most {limit} are allowed")
        return value

    return BeforeValidator(check)


Text = Annotated[str, AfterValidator(storable)]
Name = Annotated[str, Field(pattern=NAME)]
ClassName = Annotated[Text, Field(min_length=1, max_length=200)]
Names = list[ClassName]
Timestamp = Annotated[AwareDatetime, BeforeValidator(_timestamp), AfterValidator(_within_years)]
SegmentKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
SegmentValue = Annotated[Text, Field(max_length=256)]
Metadata = Annotated[dict[str, Any], AfterValidator(_small_json)]


class In(BaseModel):
    """A request part: unknown fields are refused, types are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def few_fields(cls, value: Any) -> Any:
        """Refuse objects of very many fields without looking at each."""
        if isinstance(value, dict) and len(value) > MOST_FIELDS:
            raise ValueError(f"has {len(value)} fields; at most {MOST_FIELDS} are looked at")
        return value


class ValidationIn(In):
    """Labelled rows scored by a model that did not see them."""

    labels: Labels
    posteriors: Matrix
    columns: Labels | None = None


class SourceIn(In):
    """What is known of a classifier. At least priors, a confusion matrix or a validation set."""

    class_counts: ByName | None = None
    priors: ByName | None = None
    confusion_matrix: Matrix | None = None
    outputs: Annotated[Names | None, Field(min_length=1), at_most(MOST_NAMES)] = None
    validation: ValidationIn | None = None
    calibration: Literal["bcts", "none"] = "bcts"
    metadata: Metadata = Field(default_factory=dict)


class ModelIn(In):
    """A model to register; with ``source``, version 1 too."""

    name: Name
    kind: Literal["classifier"] = "classifier"
    classes: Annotated[Names, Field(min_length=1), at_most(MOST_NAMES)]
    description: Annotated[Text, Field(max_length=2000)] = ""
    source: SourceIn | None = None


class ModelPatch(In):
    """What can be changed of a model."""

    description: Annotated[Text, Field(max_length=2000)]


class VersionIn(In):
    """A source to register as a version."""

    source: SourceIn


class AliasIn(In):
    """The version that an alias points to."""

    version: Annotated[int, Field(ge=1, le=999_999_999)]


class IntervalIn(In):
    """Which interval is wanted."""

    level: Annotated[float, Field(gt=0, lt=1)] = 0.95
    method: Literal["auto", "wald", "profile", "bootstrap"] = "auto"
    of: Literal["population", "batch"] = "population"
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0


class ShiftIn(In):
    """What counts as a detected shift."""

    significance: Annotated[float, Field(gt=0, lt=1)] = 0.05
    minimum_effect: Annotated[float, Field(ge=0, le=1)] = 0.0
    reference: Literal["auto", "chi-square", "scaled-chi-square", "bootstrap"] = "auto"
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0


class OptionsIn(In):
    """When EM stops: mean absolute step below ``tolerance``, or ``max_iterations``."""

    tolerance: Annotated[float, Field(gt=0, le=1)] = 1e-6
    max_iterations: Annotated[int, Field(ge=1, le=100_000)] = 1000


class BatchIn(In):
    """A batch: exactly one of posteriors, predictions and predicted_counts."""

    posteriors: Matrix | None = None
    columns: Labels | None = None
    predictions: Labels | None = None
    predicted_counts: ByName | None = None
    options: OptionsIn = OptionsIn()


class EstimateIn(BatchIn):
    """A batch to estimate from."""

    method: str = "auto"
    interval: IntervalIn = IntervalIn()
    shift: ShiftIn = ShiftIn()
    observed_at: Timestamp | None = None
    segment: Annotated[dict[SegmentKey, SegmentValue], at_most(16)] = Field(default_factory=dict)
    include: Annotated[list[Literal["posteriors", "trace"]], at_most(2)] = Field(
        default_factory=list
    )


class PosteriorsIn(BatchIn):
    """Rows to adjust, to ``target_priors`` or to their own estimate."""

    method: str = "auto"
    target_priors: ByName | None = None


class RegionTestIn(BatchIn):
    """Stated priors that may or may not be compatible with a batch."""

    priors: ByName
    level: Annotated[float, Field(gt=0, lt=1)] = 0.95


class ShiftTestIn(BatchIn):
    """A batch to test."""

    shift: ShiftIn = ShiftIn()


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


class CalibrationOut(Out):
    """calibrated ∝ exp(scale · ln max(g, floor) + bias)."""

    method: Literal["bcts", "none"]
    scale: float
    bias: dict[str, float]
    floor: float
    regularised: bool


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
    metadata: dict[str, Any]
    warnings: list[WarningOut]


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
    version: VersionOut | None = None


class ModelPage(Out):
    """Models by name."""

    items: list[ModelOut]
    next_cursor: str | None


class VersionPage(Out):
    """Versions, newest first."""

    items: list[VersionOut]
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
    method: Literal["likelihood", "wald", "profile", "bootstrap", "exact-binomial"]
    of: Literal["population", "batch"]
    seed: int | None
    replicates: int | None


class AdjustmentOut(Out):
    """adjusted ∝ exp(scale · ln max(g_k, floor) + offsets_k), on raw posteriors g."""

    scale: float
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
    seed: int | None
    replicates: int | None


class DiagnosticsOut(Out):
    """How far the numbers can be trusted."""

    status: str
    iterations: int | None = None
    optimality_gap: float | None = None
    gain: float | None = None
    raw: dict[str, float] | None = None
    inadmissible: bool | None = None


class EstimateOut(Out):
    """What one batch said. ``posteriors`` and ``trace`` come when included, and are not kept."""

    id: str | None
    model: str
    version: int
    method: str
    reason: str
    size: int
    created_at: datetime
    observed_at: datetime | None
    segment: dict[str, str]
    prevalence: list[PrevalenceOut]
    interval: IntervalOut | None
    adjustment: AdjustmentOut | None
    shift: ShiftOut | None
    diagnostics: DiagnosticsOut
    warnings: list[WarningOut]
    posteriors: Matrix | None = None
    trace: Matrix | None = None


class EstimatePage(Out):
    """Kept estimates, newest first."""

    items: list[EstimateOut]
    next_cursor: str | None


class PosteriorsOut(Out):
    """Adjusted rows in the order of ``columns``; for counts, one row for each of ``outputs``."""

    model: str
    version: int
    size: int
    columns: list[str]
    outputs: list[str] | None
    method: str | None
    source_priors: dict[str, float]
    target_priors: dict[str, float]
    warnings: list[WarningOut]
    posteriors: Matrix


class ShiftTestOut(Out):
    """The shift results of a batch."""

    model: str
    version: int
    size: int
    shift: ShiftOut
    diagnostics: DiagnosticsOut
    warnings: list[WarningOut]


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
