"""What is registered: models, versions, aliases, and what is known of them."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from priorshift_client.results import Warning


@dataclass(frozen=True)
class Method:
    """Whether a version serves a method, and what it lacks."""

    name: str
    available: bool
    reason: str | None = None


@dataclass(frozen=True)
class Validation:
    """A validation set in brief; ``mean_gap``: mean posterior minus label frequency, raw."""

    size: int
    label_counts: dict[str, float]
    mean_gap: dict[str, float]


@dataclass(frozen=True)
class CalibrationQuality:
    """Quality of labelled posteriors; ``gap``: mean posterior minus label frequency."""

    log_loss: float | None
    brier: float
    calibration_error: float
    gap: dict[str, float]
    z: dict[str, float]
    raw_false_alarm_rate: float


@dataclass(frozen=True)
class CalibrationReport:
    """Before and after, cross-validated; ``losses``: what ``auto`` compared."""

    asked: str
    rows: int
    folds: int | None
    before: CalibrationQuality
    after: CalibrationQuality
    losses: dict[str, float | None] | None = None


@dataclass(frozen=True)
class Curve:
    """A curve, linear between its points."""

    scores: tuple[float, ...]
    probabilities: tuple[float, ...]


@dataclass(frozen=True)
class Calibration:
    """calibrated ∝ exp(scale · ln max(g, floor) + bias); isotonic: ``curves`` instead."""

    method: str
    scale: float | dict[str, float] | None
    bias: dict[str, float] | None
    floor: float = 0.0
    regularised: bool = False
    curves: dict[str, Curve] | None = None
    report: CalibrationReport | None = None


@dataclass(frozen=True)
class Trained:
    """How a version was trained in the service."""

    learner: str
    parameters: dict[str, Any]
    feature_names: tuple[str, ...]
    categorical: tuple[str, ...]
    missing: str
    rows: int
    folds: int
    seed: int


@dataclass(frozen=True)
class Version:
    """A version. ``priors``: of the training data; ``source_priors``: those in use."""

    model: str
    version: int
    digest: str
    created_at: datetime
    classes: tuple[str, ...]
    priors: dict[str, float]
    source_priors: dict[str, float]
    outputs: tuple[str, ...]
    confusion_matrix: tuple[tuple[float, ...], ...] | None
    validation: Validation | None
    calibration: Calibration
    methods: tuple[Method, ...]
    metadata: dict[str, Any]
    warnings: tuple[Warning, ...]
    training: Trained | None = None


@dataclass(frozen=True)
class Model:
    """A model; ``version`` is there where this call registered one."""

    name: str
    kind: str
    classes: tuple[str, ...]
    description: str
    versions: int
    aliases: dict[str, int]
    created_at: datetime
    updated_at: datetime
    version: Version | None = None


@dataclass(frozen=True)
class Alias:
    """A name of a version."""

    model: str
    alias: str
    version: int
    updated_at: datetime


@dataclass(frozen=True)
class BatchScore:
    """Mean error of the shares on batches of one size, drawn at priors of one kind."""

    size: int
    priors: str
    mean_absolute_error: float | None


@dataclass(frozen=True)
class Score:
    """What a method was worth; ``reason``: why it was not tried."""

    name: str
    mean_absolute_error: float | None
    standard_error: float | None = None
    brier_change: float | None = None
    batches: tuple[BatchScore, ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class Scorecard:
    """Methods on batches resampled from the validation rows; ``chosen``: what auto takes."""

    model: str
    version: int
    seed: int
    rows: int
    batches: int
    stopped: bool
    chosen: str
    reason: str
    methods: tuple[Score, ...] = field(repr=False)


@dataclass(frozen=True)
class Level:
    """A level of a categorical column, and what it adds to the score of each class."""

    level: str | float
    weights: tuple[float, ...]


@dataclass(frozen=True)
class FeatureColumn:
    """A number x adds weights · (x - centre) / scale, a level its weights; ``fill``: if missing."""

    name: str
    fill: str | float
    centre: float | None = None
    scale: float | None = None
    weights: tuple[float, ...] | None = None
    levels: tuple[Level, ...] | None = None


@dataclass(frozen=True)
class SoftmaxModel:
    """posteriors = softmax(intercepts + what the columns add); weights in the order of classes."""

    model: str
    version: int
    learner: str
    classes: tuple[str, ...]
    intercepts: dict[str, float]
    columns: tuple[FeatureColumn, ...]
    warnings: tuple[Warning, ...]
    method: str | None = None
    target_priors: dict[str, float] | None = None
