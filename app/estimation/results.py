"""What comes back. Arrays are in the order of the model's classes."""

from dataclasses import dataclass
from typing import Literal

from app.core.arrays import Codes, Floats
from app.core.prevalence.matching.feature_fit import Fit
from app.core.prevalence.tests.shift import ShiftTest
from app.core.prevalence.uncertainty.covariance import Of
from app.core.warnings import Warning
from app.estimation.histogram import Histogram
from app.estimation.methods import Method

IntervalMethod = Literal["likelihood", "wald", "profile", "bootstrap", "exact-binomial", "credible"]


@dataclass(frozen=True)
class Diagnostics:
    """How far the numbers can be trusted; None where a notion does not apply.

    ``radius``: of matching, a bound on ‖p̂ − p‖₂ that holds with probability .95 (theorem 1, with
    p̂ for p); loose, often above 1.
    """

    status: str
    iterations: int | None = None
    optimality_gap: float | None = None
    gain: float | None = None
    raw: Floats | None = None
    inadmissible: bool | None = None
    radius: float | None = None


@dataclass(frozen=True)
class Adjustment:
    """What a scorer applies to its raw posteriors.

    adjusted ∝ exp(scale_k · ln max(g_k, floor) + offsets_k); offset −∞ for a class at zero.
    """

    scale: Floats
    offsets: Floats
    floor: float


@dataclass(frozen=True)
class AdjustedRows:
    """Adjusted posteriors, K × C, and the priors they were adjusted from and to.

    K = N for posteriors and predicted labels; one row per output for bare counts. ``decided``:
    K classes of least expected cost; ``threshold``: what they come to on the raw posterior of the
    second of two classes.
    """

    posteriors: Floats
    source: Floats
    target: Floats
    method: Method | None
    warnings: tuple[Warning, ...]
    decided: Codes | None = None
    threshold: float | None = None


@dataclass(frozen=True)
class AdjustedModel:
    """Adjusted intercepts of a softmax model, and the scale for its weights."""

    scale: float
    intercepts: Floats
    target: Floats
    method: Method | None
    warnings: tuple[Warning, ...]


@dataclass(frozen=True)
class IntervalAnswer:
    """C lower and C upper ends, and how they were found.

    ``likelihood``: Wald's on the log-odds away from the boundary, profile likelihood near it.
    ``seed`` and ``replicates`` are None where nothing is drawn. ``unknown``: ends of the share that
    is none of the classes, of soft estimates.
    """

    lower: Floats
    upper: Floats
    level: float
    method: IntervalMethod
    of: Of
    seed: int | None = None
    replicates: int | None = None
    unknown: tuple[float, float] | None = None


@dataclass(frozen=True)
class UnknownShare:
    """The share of a batch's population that is none of the classes; ends None without interval."""

    estimate: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class Estimate:
    """What one batch said.

    ``labelled``: rows of known class. ``counted``: NaN for a class that no output is named after.
    ``source``: the source priors on the scale of the method. ``weighted_precision``: of em-stop,
    per step of the trace. ``histogram``: of the scores, where that was asked for. ``unknown``: of
    soft estimates, whose prevalence sums to one without it. ``fit``: whether prior shift is a
    believable explanation of the batch.
    """

    method: Method
    reason: str
    size: int
    source: Floats
    counted: Floats | None
    prevalence: Floats
    log_offsets: Floats | None
    interval: IntervalAnswer | None
    adjustment: Adjustment | None
    shift: ShiftTest | None
    diagnostics: Diagnostics
    warnings: tuple[Warning, ...]
    labelled: int = 0
    trace: Floats | None = None
    weighted_precision: Floats | None = None
    posteriors: Floats | None = None
    unknown: UnknownShare | None = None
    fit: Fit | None = None
    histogram: Histogram | None = None


@dataclass(frozen=True)
class ShiftAnswer:
    """The shift results alone."""

    size: int
    shift: ShiftTest
    diagnostics: Diagnostics
    warnings: tuple[Warning, ...]


@dataclass(frozen=True)
class RegionAnswer:
    """Whether stated priors are compatible with a batch.

    ``statistic`` = 2N(ℓ(p̂) − ℓ(p)) times ``factor``, which carries the uncertainty of the
    source; None where the batch excludes p outright.
    """

    size: int
    inside: bool
    level: float
    statistic: float | None
    factor: float
    degrees_of_freedom: int
    p_value: float
    prevalence: Floats
    warnings: tuple[Warning, ...]
