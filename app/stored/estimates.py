"""A kept estimate. Its test's statistic is looked for by name in SQL too (``Standings``)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from app.stored.document import Document, Part, StoredWarning


class StoredShare(Part):
    """A class. ``weight`` = estimate / source, ``log_offset`` its logarithm."""

    class_: Annotated[str, Field(alias="class")]
    source: float
    counted: float | None
    estimate: float
    lower: float | None
    upper: float | None
    weight: float | None
    log_offset: float | None


class StoredInterval(Part):
    """How ``lower`` and ``upper`` were found."""

    level: float
    method: Literal["likelihood", "wald", "profile", "bootstrap", "exact-binomial", "credible"]
    of: Literal["population", "batch"]
    seed: int | None
    replicates: int | None


class StoredAdjustment(Part):
    """What a scorer applies itself."""

    scale: float | dict[str, float]
    offsets: dict[str, float | None]
    floor: float


class StoredShift(Part):
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


class StoredDiagnostics(Part):
    """How far the numbers can be trusted."""

    status: str
    iterations: int | None = None
    optimality_gap: float | None = None
    gain: float | None = None
    raw: dict[str, float] | None = None
    inadmissible: bool | None = None
    radius: float | None = None


class StoredUnknownShare(Part):
    """The share of the population that is none of the classes."""

    estimate: float
    lower: float | None
    upper: float | None


class StoredFit(Part):
    """Whether prior shift explained the batch."""

    statistic: float
    p_value: float
    reference: Literal["features", "posteriors"]
    residual: float
    seed: int
    replicates: int


class StoredHistogram(Part):
    """Rows by class and score, before and after adjusting, in bins of equal width from 0 to 1."""

    bins: int
    before: dict[str, list[float]]
    after: dict[str, list[float]]


class StoredEstimate(Document):
    """What one batch said. ``monitor``: whose window the batch was, by its name in the model."""

    NAME: ClassVar[str] = "an estimate"
    LEFT_OUT: ClassVar[frozenset[str]] = frozenset({"trace", "monitor", "histogram"})

    id: str
    created_at: datetime
    observed_at: datetime | None
    model: str
    version: int
    segment: dict[str, str]
    monitor: str | None = None
    size: int
    labelled: int
    method: str
    reason: str
    prevalence: Sequence[StoredShare]
    unknown_share: StoredUnknownShare | None
    interval: StoredInterval | None
    adjustment: StoredAdjustment | None
    shift: StoredShift | None
    fit: StoredFit | None
    diagnostics: StoredDiagnostics
    trace: list[list[float]] | None = None
    histogram: StoredHistogram | None = None
    warnings: Sequence[StoredWarning]

    @property
    def moment(self) -> datetime:
        """When the batch was observed, else when it was estimated."""
        return self.observed_at or self.created_at

    def share(self, name: str) -> StoredShare:
        """Of a class; ``StopIteration`` of none."""
        return next(row for row in self.prevalence if row.class_ == name)
