"""What a request may hold, as JSON shapes. Arrays are checked by ``wire``, not here."""

import json
from datetime import datetime
from typing import Annotated, Literal

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

from app.access.gate import Scope
from app.core.json_types import JsonValue
from app.core.learners.recipe import Learner, Missing
from app.core.names import named, worded
from app.core.prevalence.calibration import Method
from app.core.prevalence.matching.bandwidth import Criterion
from app.core.prevalence.matching.version import FeatureMap
from models_store.webhooks import EVENTS, Event

NAME = r"^[a-z0-9][a-z0-9._-]{0,62}$"
MONITOR_NAME = r"^([a-z0-9][a-z0-9._-]{0,62}:)?[a-z0-9][a-z0-9._-]{0,62}$"
"""A name, or ``model:name``."""
METADATA_BYTES = 16_384
METADATA_DEPTH = 20
MOST_FIELDS = 50
MOST_NAMES = 10_000

_NUMBERS = {"type": "object", "additionalProperties": {"type": "number"}}
_ROWS = {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}
_COLUMNS = {
    "type": "object",
    "additionalProperties": {"type": "array", "items": {"type": "number"}},
}
_CELL = {"type": ["number", "string", "null"]}
_CELLS = {"type": "array", "items": {"type": "array", "items": _CELL}}
_STRINGS = {"type": "array", "items": {"type": "string"}}
_SOME_STRINGS = {"type": "array", "items": {"type": ["string", "null"]}}

_LIST = {"type": "array", "items": {"type": "number"}}

Numbers = Annotated[JsonValue, WithJsonSchema(_LIST)]
RowsOrNumbers = Annotated[JsonValue, WithJsonSchema({"anyOf": [_ROWS, _LIST]})]
"""Rows of numbers; a list of numbers is one column."""
NumberOrMore = Annotated[JsonValue, WithJsonSchema({"anyOf": [{"type": "number"}, _LIST, _ROWS]})]
ByName = Annotated[JsonValue, WithJsonSchema(_NUMBERS)]
Matrix = Annotated[JsonValue, WithJsonSchema(_ROWS)]
Rows = Annotated[JsonValue, WithJsonSchema({"anyOf": [_ROWS, _COLUMNS]})]
"""Rows, or lists by class."""
Table = Annotated[JsonValue, WithJsonSchema(_CELLS)]
Labels = Annotated[JsonValue, WithJsonSchema(_STRINGS)]
PartialLabels = Annotated[JsonValue, WithJsonSchema(_SOME_STRINGS)]


def storable(value: str) -> str:
    """Text that every database takes: no NUL, no lone surrogates."""
    if "\x00" in value:
        raise ValueError("must not contain the character U+0000")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("must not contain lone surrogates") from None
    return value


def _timestamp(value: object) -> object:
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


def _small_json(value: dict[str, object]) -> dict[str, object]:
    _shallow(value)
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except TypeError:
        # A matrix that was large enough to come as an array.
        raise ValueError(f"is larger than {METADATA_BYTES} bytes as JSON") from None
    except ValueError:
        raise ValueError("must not contain numbers beyond the range of a double") from None
    if len(text.encode()) > METADATA_BYTES:
        raise ValueError(f"is larger than {METADATA_BYTES} bytes as JSON")
    return value


def _shallow(value: object, depth: int = 0) -> None:
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

    def check(value: object) -> object:
        if isinstance(value, list | dict) and len(value) > limit:
            raise ValueError(f"has {len(value)} items, at most {limit} are allowed")
        return value

    return BeforeValidator(check)


def _unique(value: list[object] | None) -> list[object] | None:
    if value is not None and len(set(value)) < len(value):
        raise ValueError("repeats an item")
    return value


Text = Annotated[str, AfterValidator(storable)]
Words = Annotated[str, AfterValidator(worded)]
"""Of a description, or a note."""
Named = Annotated[str, AfterValidator(named)]
"""A name that callers choose freely."""
Name = Annotated[str, Field(pattern=NAME)]
ClassName = Annotated[Named, Field(min_length=1, max_length=200)]
Names = list[ClassName]
Timestamp = Annotated[AwareDatetime, BeforeValidator(_timestamp), AfterValidator(_within_years)]
SegmentKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
SegmentValue = Annotated[Named, Field(max_length=256)]
KeptSegment = Annotated[Text, Field(max_length=256)]
"""One that is looked for: what was kept before there were rules for names is found too."""
Metadata = Annotated[dict[str, object], AfterValidator(_small_json)]


class In(BaseModel):
    """A request part: unknown fields are refused, types are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def few_fields(cls, value: object) -> object:
        """Refuse objects of very many fields without looking at each."""
        if isinstance(value, dict) and len(value) > MOST_FIELDS:
            raise ValueError(f"has {len(value)} fields; at most {MOST_FIELDS} are looked at")
        return value


class ValidationIn(In):
    """Labelled rows scored by a model that did not see them; with features, or of these alone."""

    labels: Labels
    posteriors: Rows | None = None
    columns: Labels | None = None
    features: Matrix | None = None
    feature_names: Annotated[Names | None, Field(min_length=1), at_most(1000)] = None


class MatchingIn(In):
    """How features are matched. ``bandwidth``: of the Gaussian kernel, chosen where left out.

    ``criterion``: what chooses it, delta-min for shares that sum to one, lambda-min for soft ones.
    ``dimension``: of the random features. ``feature_map``: features, or the posteriors.
    """

    bandwidth: Annotated[float | None, Field(gt=1e-6, lt=1e6)] = None
    dimension: Annotated[int, Field(ge=2, le=10_000, multiple_of=2)] = 1000
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    standardise: bool = True
    criterion: Criterion = "delta-min"
    feature_map: FeatureMap = "features"


class TrainingIn(In):
    """Labelled rows to train a classifier on; null is a missing value."""

    features: Table
    labels: Labels
    feature_names: Annotated[Names | None, Field(min_length=1), at_most(1000)] = None
    categorical: Annotated[Names, at_most(1000)] = Field(default_factory=list)
    learner: Learner
    parameters: Annotated[dict[str, object], at_most(20)] = Field(default_factory=dict)
    folds: Annotated[int, Field(ge=2, le=20)] = 5
    missing: Missing = "refuse"
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0


class SourceIn(In):
    """What is known of a classifier: priors, a confusion matrix, a validation set; or training.

    ``calibration``: of the posteriors of validation or training, bcts if nothing is said.
    """

    class_counts: ByName | None = None
    priors: ByName | None = None
    confusion_matrix: Matrix | None = None
    outputs: Annotated[Names | None, Field(min_length=1), at_most(MOST_NAMES)] = None
    validation: ValidationIn | None = None
    training: TrainingIn | None = None
    matching: MatchingIn | None = None
    calibration: Literal["auto", Method] | None = None
    metadata: Metadata = Field(default_factory=dict)


class ModelIn(In):
    """A model to register; with ``source``, version 1 too."""

    name: Name
    kind: Literal["classifier"] = "classifier"
    classes: Annotated[Names, Field(min_length=1), at_most(MOST_NAMES)]
    description: Annotated[Words, Field(max_length=2000)] = ""
    source: SourceIn | None = None


class OtherModelIn(In):
    """A model of another kind; with ``source``, version 1 too. Mixtures have no classes."""

    name: Name
    kind: Literal["versatile-tree", "regression-mixture"]
    classes: Annotated[Names | None, Field(min_length=1), at_most(MOST_NAMES)] = None
    description: Annotated[Words, Field(max_length=2000)] = ""
    source: dict[str, object] | None = None


class ModelPatch(In):
    """What can be changed of a model."""

    description: Annotated[Words, Field(max_length=2000)]


class VersionIn(In):
    """A source to register as a version."""

    source: SourceIn


class AliasIn(In):
    """The version that an alias points to."""

    version: Annotated[int, Field(ge=1, le=999_999_999)]


class KeyIn(In):
    """A key to make. ``models``: the only models that exist for it; all where left out.

    ``roots``: the only data roots that its jobs read, null for all. Left out: all, but of a key
    that is restricted to models none.

    Not with the scope admin, which makes keys for any model. No key outlives the one that makes it.
    """

    name: Annotated[Named, Field(min_length=1, max_length=200)]
    scopes: Annotated[list[Scope], Field(min_length=1), AfterValidator(_unique), at_most(4)]
    models: Annotated[
        list[Name] | None, Field(min_length=1), AfterValidator(_unique), at_most(1000)
    ] = None
    roots: Annotated[list[Name] | None, AfterValidator(_unique), at_most(100)] = None
    expires_at: Timestamp | None = None

    @property
    def closed(self) -> bool:
        """Whether nothing was said of data roots, and a key like this opens none then."""
        return self.models is not None and "roots" not in self.model_fields_set


Url = Annotated[Text, Field(min_length=1, max_length=2048)]
Events = Annotated[list[Event], Field(min_length=1), AfterValidator(_unique), at_most(len(EVENTS))]
MonitorName = Annotated[str, Field(pattern=MONITOR_NAME)]
Watched = Annotated[list[Name] | None, Field(min_length=1), AfterValidator(_unique), at_most(1000)]
WatchedBy = Annotated[
    list[MonitorName] | None, Field(min_length=1), AfterValidator(_unique), at_most(1000)
]


class WebhookIn(In):
    """An address to tell of events. ``models``, ``monitors``: of these only; all if left out."""

    url: Url
    events: Events
    models: Watched = None
    monitors: WatchedBy = None
    description: Annotated[Words, Field(max_length=2000)] = ""


class WebhookPatch(In):
    """What to change of a webhook; what is left out stays."""

    url: Url = ""
    events: Events = Field(default_factory=list)
    models: Watched = None
    monitors: WatchedBy = None
    description: Annotated[Words, Field(max_length=2000)] = ""
    disabled: bool = False


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
    """When EM stops: mean absolute step below ``tolerance``, or ``max_iterations``.

    Of bayes: the Dirichlet ``prior`` (α by class, 1 by default) and the ``seed``. Of cde:
    ``refit`` the classifier on costs, for features. ``soft``: of rffm, kmm-gaussian and acc-qp,
    shares may sum to less than one; the rest is none of the classes.
    """

    tolerance: Annotated[float, Field(gt=0, le=1)] = 1e-6
    max_iterations: Annotated[int, Field(ge=1, le=100_000)] = 1000
    prior: ByName | None = None
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    refit: bool = False
    soft: bool = False


class BatchIn(In):
    """A batch: exactly one of posteriors, predictions, predicted_counts and features."""

    posteriors: Rows | None = None
    columns: Labels | None = None
    predictions: Labels | None = None
    predicted_counts: ByName | None = None
    features: Table | None = None


class LabelledBatchIn(BatchIn):
    """A batch whose rows may come with labels: one for each row, null where it is unknown."""

    labels: PartialLabels | None = None


class EstimateIn(LabelledBatchIn):
    """A batch to estimate from; ``options`` are those of em."""

    method: str = "auto"
    options: OptionsIn = OptionsIn()
    interval: IntervalIn = IntervalIn()
    shift: ShiftIn = ShiftIn()
    observed_at: Timestamp | None = None
    segment: Annotated[dict[SegmentKey, SegmentValue], at_most(16)] = Field(default_factory=dict)
    include: Annotated[list[Literal["posteriors", "trace", "histogram"]], at_most(3)] = Field(
        default_factory=list
    )


class PosteriorsIn(LabelledBatchIn):
    """Rows to adjust, to ``target_priors`` or to their own estimate."""

    method: str = "auto"
    options: OptionsIn = OptionsIn()
    target_priors: ByName | None = None
    costs: Matrix | None = None
    adjust: Literal["always", "if-shifted"] = "always"
    shift: ShiftIn = ShiftIn()


class AdjustedModelIn(LabelledBatchIn):
    """What to adjust a softmax model to: target_priors or a batch."""

    target_priors: ByName | None = None
    method: str = "auto"
    options: OptionsIn = OptionsIn()


class BiasAdjustmentIn(AdjustedModelIn):
    """Intercepts of a softmax model, and what to adjust them to: target_priors or a batch."""

    intercepts: ByName
    reference: str | None = None


class EvaluationIn(BatchIn):
    """Labels of every row of a batch, or of the rows of a kept estimate."""

    labels: Labels
    estimate: Annotated[str | None, Field(pattern=r"^[0-9a-f]{32}$")] = None
    method: str = "auto"
    options: OptionsIn = OptionsIn()
    interval: IntervalIn = IntervalIn()


class RegionTestIn(LabelledBatchIn):
    """Stated priors that may or may not be compatible with a batch."""

    priors: ByName
    level: Annotated[float, Field(gt=0, lt=1)] = 0.95


class ShiftTestIn(LabelledBatchIn):
    """A batch to test."""

    shift: ShiftIn = ShiftIn()
