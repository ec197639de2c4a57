"""Answers to batches that are not kept: adjusted posteriors, tests, parameters."""

from app.schemas.base import Out, WarningOut
from app.schemas.estimates import DiagnosticsOut, ShiftOut
from app.schemas.requests import Rows


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
