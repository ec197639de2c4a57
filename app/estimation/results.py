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

    ``status``: of the solver, in its words: converged, max-iterations, stalled, cycle, stopped, …
    ``iterations``: steps that were taken.
    ``optimality_gap``: ≥ 0; an upper bound on what the objective lacks of its optimum.
    ``gain``: ≥ 0; mean log-likelihood of the estimate over that of the source priors.
    ``raw``: C shares before clipping, of acc; any sign, sum one.
    ``inadmissible``: whether ``raw`` had left the simplex.
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
    """What a scorer applies to its raw posteriors g.

    adjusted ∝ exp(scale_k · ln max(g_k, floor) + offsets_k).

    ``scale``: C factors of the log-posteriors, of the calibration.
    ``offsets``: C; the calibration's bias and ln(p_k / p0_k); −∞ for a class at zero.
    ``floor``: what stands for exact zeros.
    """

    scale: Floats
    offsets: Floats
    floor: float


@dataclass(frozen=True)
class AdjustedRows:
    """Adjusted posteriors, and the priors they were adjusted from and to.

    K = N for posteriors and predicted labels; one row per output for bare counts.

    ``posteriors``: K × C.
    ``source``: the source priors, C.
    ``target``: the target priors, C: stated, or estimated from these rows.
    ``method``: what estimated ``target``; None where it was stated.
    ``warnings``: in the order in which they came up.
    ``decided``: K classes of least expected cost; None without costs.
    ``threshold``: what they come to on the raw posterior of the second of two classes; None where
        there is no single one.
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
    """Adjusted intercepts of a softmax model, and the scale for its weights.

    ``scale``: the factor of the weights, of the calibration.
    ``intercepts``: C.
    ``target``: the target priors, C: stated, or estimated from a batch.
    ``method``: what estimated ``target``; None where it was stated.
    ``warnings``: in the order in which they came up.
    """

    scale: float
    intercepts: Floats
    target: Floats
    method: Method | None
    warnings: tuple[Warning, ...]


@dataclass(frozen=True)
class IntervalAnswer:
    """An interval for every share, which holds the estimate.

    ``lower``: C ends, in [0, 1].
    ``upper``: C ends, in [0, 1].
    ``level``: the nominal coverage of each interval by itself.
    ``method``: how they were made; ``likelihood`` is Wald's on the log-odds away from the boundary,
        and profile likelihood near it.
    ``of``: the shares of the population, or the realised ones of these rows.
    ``seed``: repeats the draws; None where nothing is drawn.
    ``replicates``: how many were drawn; None where nothing is.
    ``unknown``: ends of the share that is none of the classes, of soft estimates; None for others.
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
    """The share of a batch's population that is none of the classes.

    ``estimate``: 1 − Σ_k p_k, not below 0.
    ``lower``: of its interval; None without one.
    ``upper``: of its interval; None without one.
    """

    estimate: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class Estimate:
    """What one batch said; immutable. Arrays are in the order of the model's classes.

    ``method``: the one that answered, never auto.
    ``reason``: why that one, in words.
    ``size``: N, rows, or those that they stand for.
    ``source``: the source priors on the scale of the method, C.
    ``counted``: class shares by counting decisions, C, NaN for a class that no output is named
        after; None for features, and where nothing was decided to be in a class.
    ``prevalence``: the estimated shares, C; they sum to one, with ``unknown`` if that is there.
    ``log_offsets``: ln(p_k / p0_k), C, −∞ for a class at zero; None where a class of zero source
        prior has a share.
    ``interval``: None where none was asked for, or there is none.
    ``adjustment``: None as for ``log_offsets``, and for calibrations that are no ``Scaling``.
    ``shift``: None where it was not asked for, or the batch has no likelihood.
    ``diagnostics``: of the solver.
    ``warnings``: in the order in which they came up, those of the version first.
    ``labelled``: how many rows came with their class.
    ``trace``: (iterations + 1) × C, the priors at the start and after each step; of cde, iterations
        × 2; None where it was not asked for, or the method has none.
    ``weighted_precision``: of em-stop, one value per row of ``trace``; None for others.
    ``posteriors``: adjusted, N × C, one row per output for bare counts; None where not asked for.
    ``unknown``: of soft estimates; None for others.
    ``fit``: whether prior shift is a believable explanation of the batch; None where that is not
        tested.
    ``histogram``: of the scores; None where it was not asked for, or there are no scores.
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
    """Whether the priors of a batch's population differ from the source's, and nothing else.

    ``size``: N, rows, or those that they stand for.
    ``shift``: the test, at the likelihood's maximum.
    ``diagnostics``: of that maximum.
    ``warnings``: in the order in which they came up.
    """

    size: int
    shift: ShiftTest
    diagnostics: Diagnostics
    warnings: tuple[Warning, ...]


@dataclass(frozen=True)
class RegionAnswer:
    """Whether stated priors p are compatible with a batch.

    ``size``: N, rows, or those that they stand for.
    ``inside``: whether p lies in the likelihood-ratio region: ``p_value`` > 1 − ``level``.
    ``level``: the nominal coverage of the region.
    ``statistic``: 2N(ℓ(p̂) − ℓ(p)) · ``factor`` ≥ 0; None where the batch excludes p outright.
    ``factor``: ≤ 1; carries the uncertainty of the source.
    ``degrees_of_freedom``: of the chi-square reference.
    ``p_value``: P(χ² ≥ ``statistic``).
    ``prevalence``: p̂, the maximum of the likelihood, C.
    ``warnings``: in the order in which they came up.
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
