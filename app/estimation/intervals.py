"""Intervals: which kind suits which method."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import betaincinv, ndtri

from app.core.arrays import Floats
from app.core.errors import MethodUnavailable
from app.core.prevalence.estimators.bayes import Posterior
from app.core.prevalence.estimators.confusion import acc_many, acc_qp_many
from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.estimators.soft import soft_replicates
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.matching.kernels import Name as KernelName
from app.core.prevalence.matching.match import replicates as matched_replicates
from app.core.prevalence.replicates import Replicates
from app.core.prevalence.uncertainty import bootstrap
from app.core.prevalence.uncertainty.covariance import SourceError, inversion_covariance
from app.core.prevalence.uncertainty.intervals import likelihood_intervals
from app.core.warnings import WarningCode
from app.estimation.evidence import Evidence
from app.estimation.methods import MATCHING, Method
from app.estimation.request import IntervalOptions, OutputBatch, PosteriorBatch, SummedBatch
from app.estimation.results import IntervalAnswer, IntervalMethod
from app.estimation.solvers import Solution

FEW = 5
"""Cells with fewer labelled rows than this make an expansion around them doubtful."""
MOST_MATCHED = 100
"""Most classes whose exact kernels are redrawn."""
MOST_RESAMPLED = 900
"""Most cells, J × C, of a confusion matrix that is redrawn."""


def interval(
    evidence: Evidence, method: Method, solution: Solution, options: IntervalOptions
) -> IntervalAnswer | None:
    """Intervals for the shares that ``method`` estimated; each holds its estimate.

    ``MethodUnavailable`` for a kind that a method has not; None, with a warning, where there is
    none or it would cost too much.
    """
    answer = _by_kind(evidence, method, solution, options)
    if answer is None:
        return None
    p, unknown = solution.prevalence, answer.unknown
    if unknown is not None and solution.unknown is not None:
        unknown = min(unknown[0], solution.unknown), max(unknown[1], solution.unknown)
    lower, upper = np.minimum(answer.lower, p), np.maximum(answer.upper, p)
    if solution.unidentified:
        # Each of them may have nothing, or all that the others leave.
        twins = list(solution.unidentified)
        lower[twins] = 0.0
        upper[twins] = np.maximum(1.0 - lower.sum(), p[twins])
    if len(p) == 2 and unknown is None:
        # One share, told twice.
        lower, upper = np.minimum(lower, 1.0 - upper[::-1]), np.maximum(upper, 1.0 - lower[::-1])
    return replace(answer, lower=lower, upper=upper, unknown=unknown)


def _by_kind(
    evidence: Evidence, method: Method, solution: Solution, options: IntervalOptions
) -> IntervalAnswer | None:
    """The kind asked for, or what suits the method.

    Of the likelihood's maximum for em and mle; by the bootstrap for acc and acc-qp (and for counts
    where few errors were counted); exact binomial for cc; Wald's for pcc; credible for bayes.
    """
    kind = options.method
    if method in MATCHING or solution.unknown is not None:
        if kind not in ("auto", "bootstrap"):
            raise MethodUnavailable(f"a {kind} interval", "matching has the bootstrap")
        return _bootstrap(evidence, method, options, soft=solution.unknown is not None)
    if method in ("em", "mle"):
        if kind == "bootstrap" or (kind == "auto" and _few_errors_counted(evidence, options)):
            return _bootstrap(evidence, method, options)
        return _from_likelihood(evidence, options)
    if solution.credible is not None:
        return _credible(solution.credible, options)
    if method in ("cde", "em-stop"):
        evidence.warn(WarningCode.NO_INTERVAL, f"{method} has no interval; ask mle for one")
        return None
    if options.of == "batch":
        raise MethodUnavailable("an interval of the batch's own shares", "only em and mle have it")
    if kind == "profile":
        raise MethodUnavailable("a profile interval", f"{method} has no likelihood")
    if method == "cc" and kind == "auto":
        return _binomial(evidence, options)
    if method == "pcc" and kind in ("auto", "wald"):
        return _mean(evidence, solution, options)
    large = evidence.model.confusion is not None and evidence.confusion.counts.size > MOST_RESAMPLED
    if method in ("acc", "acc-qp") and (kind == "wald" or (kind == "auto" and large)):
        return _by_expansion(evidence, solution, options)
    if kind == "wald":
        raise MethodUnavailable("Wald's interval", f"{method} has the bootstrap")
    return _bootstrap(evidence, method, options)


def _by_expansion(
    evidence: Evidence, solution: Solution, options: IntervalOptions
) -> IntervalAnswer:
    """Wald's interval of an adjusted count, by linear expansion."""
    spread = inversion_covariance(evidence.confusion, evidence.output_counts, solution.prevalence)
    reach = -ndtri((1 - options.level) / 2) * np.sqrt(spread.diagonal())
    lower = np.maximum(solution.prevalence - reach, 0.0)
    upper = np.minimum(solution.prevalence + reach, 1.0)
    return IntervalAnswer(lower, upper, options.level, "wald", options.of)


def _few_errors_counted(evidence: Evidence, options: IntervalOptions) -> bool:
    """Whether a confusion matrix has cells too small for a linear expansion."""
    if not isinstance(evidence.batch, OutputBatch) or options.of == "batch" or evidence.labelled:
        return False
    counts = evidence.confusion.counts
    return bool(counts.min() < FEW) and counts.size <= MOST_RESAMPLED


def _credible(posterior: Posterior, options: IntervalOptions) -> IntervalAnswer:
    if options.of == "batch" or options.method != "auto":
        raise MethodUnavailable("this interval", "bayes has credible intervals of the population")
    return IntervalAnswer(posterior.lower, posterior.upper, options.level, "credible", options.of)


def _from_likelihood(evidence: Evidence, options: IntervalOptions) -> IntervalAnswer:
    kind = options.method
    assert kind != "bootstrap"
    intervals = likelihood_intervals(
        evidence.likelihood,
        evidence.maximum,
        options.level,
        options.of,
        kind,
        evidence.uncertainty,
    )
    if intervals.approximate:
        message = "ends near zero come from a quadratic approximation: the batch is large"
        evidence.warn(WarningCode.APPROXIMATE_INTERVAL, message)
    named: IntervalMethod = "likelihood" if kind == "auto" else kind
    return IntervalAnswer(intervals.lower, intervals.upper, options.level, named, options.of)


def _binomial(evidence: Evidence, options: IntervalOptions) -> IntervalAnswer:
    """Clopper and Pearson's interval of each counted share."""
    counts = evidence.class_counts
    N, tail = counts.sum(), (1 - options.level) / 2
    lower = np.zeros(len(counts))
    upper = np.ones(len(counts))
    some, short = counts > 0, counts < N
    lower[some] = betaincinv(counts[some], N - counts[some] + 1, tail)
    upper[short] = betaincinv(counts[short] + 1, N - counts[short], 1 - tail)
    return IntervalAnswer(lower, upper, options.level, "exact-binomial", options.of)


def _mean(evidence: Evidence, solution: Solution, options: IntervalOptions) -> IntervalAnswer:
    rows = evidence.row_mean
    if rows.size == 1:
        classes = len(rows.mean)
        ends = np.zeros(classes), np.ones(classes)
        return IntervalAnswer(*ends, options.level, "wald", options.of)
    # One more row at the source priors: equal rows do not make the mean certain.
    variance = rows.variances + (evidence.source - solution.prevalence) ** 2 / rows.size
    reach = -ndtri((1 - options.level) / 2) * np.sqrt(variance / rows.size)
    lower = np.maximum(solution.prevalence - reach, 0.0)
    upper = np.minimum(solution.prevalence + reach, 1.0)
    return IntervalAnswer(lower, upper, options.level, "wald", options.of)


def _bootstrap(
    evidence: Evidence, method: Method, options: IntervalOptions, soft: bool = False
) -> IntervalAnswer | None:
    if options.of == "batch":
        reason = "a bootstrap is of the population; ask for wald or profile"
        raise MethodUnavailable("a bootstrap interval of the batch's own shares", reason)
    replicates = _replicates(evidence, method, options.seed, soft)
    if replicates is None:
        message = f"a bootstrap of {method} would take too long at this size; no interval is given"
        evidence.warn(WarningCode.NO_INTERVAL, message)
        return None
    percentiles = replicates.intervals(options.level)
    lower, upper = percentiles.lower, percentiles.upper
    if method in ("em", "mle"):
        lower, upper = _with_profile(evidence, options, lower, upper)
    return IntervalAnswer(
        lower,
        upper,
        options.level,
        "bootstrap",
        options.of,
        replicates.seed,
        len(replicates.shares),
        _ends(1.0 - replicates.shares.sum(axis=1), options.level) if soft else None,
    )


def _ends(values: Floats, level: float) -> tuple[float, float]:
    """Percentiles of shares, without rounding beyond zero and one."""
    tail = (1 - level) / 2
    lower, upper = np.clip(np.quantile(values, [tail, 1 - tail]), 0.0, 1.0)
    return float(lower), float(upper)


def _with_profile(
    evidence: Evidence, options: IntervalOptions, lower: Floats, upper: Floats
) -> tuple[Floats, Floats]:
    """Ends widened to the profile's for classes at zero or one, which resampling leaves there."""
    p = evidence.maximum.prevalence
    ends = (p == 0) | (p == 1)
    if not ends.any():
        return lower, upper
    profile = likelihood_intervals(
        evidence.likelihood, evidence.maximum, options.level, "population", "wald"
    )
    return (
        np.where(ends, np.minimum(lower, profile.lower), lower),
        np.where(ends, np.maximum(upper, profile.upper), upper),
    )


def _replicates(
    evidence: Evidence, method: Method, seed: int, soft: bool = False
) -> Replicates | None:
    batch = evidence.batch
    if method in MATCHING:
        return _resample_match(evidence, method, seed, soft)
    if method == "cc":
        return bootstrap.resample_counts(evidence.class_counts, seed)
    if method == "pcc" and isinstance(batch, SummedBatch):
        return bootstrap.draw_mean(evidence.row_mean, seed)
    if method == "pcc":
        return bootstrap.resample_mean(evidence.rows, seed)
    if method in ("em", "mle") and isinstance(batch, PosteriorBatch):
        return _resample_maximum(evidence, seed)
    if method == "mle" and evidence.labelled:
        raise MethodUnavailable("a bootstrap of labelled rows", "mle has likelihood intervals")
    if method == "pacc-qp":
        return _soft(evidence, seed)
    if evidence.confusion.counts.size > MOST_RESAMPLED:
        return None
    many: Callable[[Floats, Floats, Floats], Floats] = _mle_many
    if method == "acc":
        many = acc_many
    elif method == "acc-qp":
        many = partial(acc_qp_many, soft=soft)
    priors = evidence.model.output_priors
    return bootstrap.resample_inversion(
        many, evidence.confusion, evidence.output_counts, priors, seed
    )


def _resample_maximum(evidence: Evidence, seed: int) -> Replicates | None:
    likelihood, top, source = evidence.likelihood, evidence.maximum, evidence.uncertainty
    known = source if isinstance(source, SourceError) else None
    if not likelihood.at_hand and likelihood.size:
        return bootstrap.draw_expansion(likelihood, top, seed, known)
    if bootstrap.too_large(likelihood) or not likelihood.at_hand:
        return None
    return bootstrap.resample_maximum(likelihood, top, seed, known)


def _resample_match(evidence: Evidence, method: Method, seed: int, soft: bool) -> Replicates | None:
    source = evidence.model.output_priors
    if method != "rffm" and len(source) > MOST_MATCHED:
        return None
    if method != "rffm":
        name: KernelName = "gaussian" if method == "kmm-gaussian" else "energy"
        return evidence.kernels(name).replicates(source, soft, seed)
    if evidence.matching.embedding.spread is None:
        return None
    return matched_replicates(evidence.matching.embedding, evidence.embedded, source, soft, seed)


def _soft(evidence: Evidence, seed: int) -> Replicates | None:
    """With the validation rows, where they are at hand and few classes."""
    validation = None if evidence.source_rows is None else evidence.source_rows.validation()
    too_many = len(evidence.source) ** 2 > MOST_RESAMPLED
    if validation is None or too_many or evidence.summed_up:
        return None
    rows = evidence.model.calibration.apply(validation.posteriors)
    batch, priors = evidence.unlabelled_mean, evidence.model.output_priors
    return soft_replicates(batch, rows, validation.labels, priors, seed)


def _mle_many(conditional: Floats, shares: Floats, source: Floats) -> Floats:
    """Maximum likelihood of B problems, B × C; M is B × J × C, v is B × J."""
    return np.array(
        [
            mle(Likelihood.of_outputs(M, source, v)).prevalence
            for M, v in zip(conditional, shares, strict=True)
        ]
    )
