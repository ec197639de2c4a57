"""What batches say: estimates, adjusted rows, tests."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from priorshift_client.names import place_of
from priorshift_client.reading import read

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Warning:
    """What to doubt. Programs read the code; binary answers bring no message."""

    code: str
    message: str = ""


@dataclass(frozen=True)
class ClassShare:
    """One class of a batch's population. ``weight`` = estimate / source."""

    name: str = field(metadata={"key": "class"})
    source: float
    counted: float | None
    estimate: float
    lower: float | None
    upper: float | None
    weight: float | None
    log_offset: float | None


@dataclass(frozen=True)
class Prevalence(Sequence[ClassShare]):
    """The classes in the model's order; an item by position or by class name."""

    classes: tuple[ClassShare, ...]

    @classmethod
    def of_json(cls, rows: Any) -> Self:
        """From a list of objects."""
        return cls(tuple(read(ClassShare, row) for row in rows))

    @overload
    def __getitem__(self, at: int | str) -> ClassShare: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[ClassShare, ...]: ...
    def __getitem__(self, at: int | str | slice) -> ClassShare | tuple[ClassShare, ...]:
        if isinstance(at, str):
            return self.classes[place_of(at, [share.name for share in self.classes])]
        return self.classes[at]

    def __len__(self) -> int:
        return len(self.classes)

    def __iter__(self) -> Iterator[ClassShare]:
        return iter(self.classes)

    @property
    def shares(self) -> dict[str, float]:
        """The estimated shares by class."""
        return {share.name: share.estimate for share in self.classes}

    @property
    def array(self) -> Floats:
        """The estimated shares in order."""
        return np.array([share.estimate for share in self.classes])


@dataclass(frozen=True)
class Interval:
    """How ``lower`` and ``upper`` were found."""

    level: float
    method: str
    of: str = "population"
    seed: int | None = None
    replicates: int | None = None


@dataclass(frozen=True)
class Adjustment:
    """adjusted ∝ exp(scale · ln max(g, floor) + offsets), on raw posteriors g."""

    scale: float | dict[str, float]
    offsets: dict[str, float | None]
    floor: float = 0.0


@dataclass(frozen=True)
class Shift:
    """The likelihood-ratio test of the priors."""

    statistic: float
    scale: float
    degrees_of_freedom: int
    p_value: float
    raw_p_value: float
    reference: str
    significance: float
    effect_size: float
    detected: bool
    minimum_effect: float = 0.0
    raw_false_alarm_rate: float | None = None
    mean_gap: dict[str, float] | None = None
    seed: int | None = None
    replicates: int | None = None


@dataclass(frozen=True)
class Diagnostics:
    """How far the numbers can be trusted."""

    status: str
    iterations: int | None = None
    optimality_gap: float | None = None
    gain: float | None = None
    raw: dict[str, float] | None = None
    inadmissible: bool | None = None


@dataclass(frozen=True, eq=False)
class Estimate:
    """What one batch said. ``id`` is None where nothing was kept."""

    id: str | None
    model: str
    version: int
    method: str
    reason: str
    size: int
    created_at: datetime
    observed_at: datetime | None
    segment: dict[str, str]
    prevalence: Prevalence
    interval: Interval | None
    adjustment: Adjustment | None
    shift: Shift | None
    diagnostics: Diagnostics
    warnings: tuple[Warning, ...]
    labelled: int = 0
    monitor: str | None = None
    posteriors: Floats | None = field(default=None, repr=False)
    trace: Floats | None = field(default=None, repr=False)
    weighted_precision: tuple[float, ...] | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class GroupEstimate:
    """A group; ``holm_p_value`` of its shift test allows for there being many groups."""

    group: str
    holm_p_value: float | None
    estimate: Estimate


@dataclass(frozen=True, eq=False)
class Groups:
    """An estimate for each group, in the order in which they first come."""

    group_by: str
    items: tuple[GroupEstimate, ...]

    def __iter__(self) -> Iterator[GroupEstimate]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, group: str) -> GroupEstimate:
        """A group by name; ``KeyError`` if there is none."""
        return self.items[place_of(group, [item.group for item in self.items])]


@dataclass(frozen=True, eq=False)
class Posteriors:
    """Adjusted rows; ``columns`` names their classes.

    ``method`` is None where the target priors were stated. ``columns`` and ``target_priors`` are
    None where a binary answer had too many classes to tell them.
    """

    array: Floats = field(repr=False)
    columns: tuple[str, ...] | None
    method: str | None
    target_priors: dict[str, float] | None
    warnings: tuple[Warning, ...]
    source_priors: dict[str, float] | None = None
    outputs: tuple[str, ...] | None = None
    decisions: tuple[str, ...] | None = field(default=None, repr=False)
    threshold: float | None = None

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """For ``numpy.asarray``."""
        target = self.array.dtype if dtype is None else np.dtype(dtype)
        return self.array.astype(target, copy=bool(copy))


@dataclass(frozen=True)
class BatchTest:
    """A test of a batch of ``size`` rows under a version."""

    model: str
    version: int
    size: int


@dataclass(frozen=True)
class ShiftTest(BatchTest):
    """Whether the priors have shifted."""

    shift: Shift
    diagnostics: Diagnostics
    warnings: tuple[Warning, ...]

    @property
    def detected(self) -> bool:
        """Significant, and as large as asked."""
        return self.shift.detected


@dataclass(frozen=True)
class RegionTest(BatchTest):
    """Whether stated priors are compatible with a batch; no statistic where they are impossible."""

    inside: bool
    level: float
    statistic: float | None
    factor: float
    degrees_of_freedom: int
    p_value: float
    priors: dict[str, float]
    prevalence: dict[str, float]
    warnings: tuple[Warning, ...]


@dataclass(frozen=True)
class BiasAdjustment:
    """adjusted posteriors = softmax(scale · weights·x + intercepts)."""

    model: str
    version: int
    method: str | None
    scale: float
    intercepts: dict[str, float]
    reference: str | None
    target_priors: dict[str, float]
    warnings: tuple[Warning, ...]
