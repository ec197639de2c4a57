"""The questions that a caller may ask."""

import numpy as np
from scipy.special import chdtrc

from app.core.arrays import Floats
from app.core.errors import MethodUnavailable
from app.core.prevalence.adjustment.costs import least_cost, score_threshold
from app.core.prevalence.adjustment.intercepts import adjusted_intercepts
from app.core.prevalence.adjustment.posteriors import gains_from_nothing, log_weights
from app.core.prevalence.calibration import Scaling
from app.core.prevalence.calibration.false_alarms import raw_false_alarm_rate
from app.core.prevalence.likelihood import identifiability
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.matching.feature_fit import Fit
from app.core.prevalence.source import SourceModel
from app.core.prevalence.tests import two_sample
from app.core.prevalence.tests.shift import (
    Reference,
    ShiftTest,
    likelihood_ratio_test,
    with_p_value,
)
from app.core.prevalence.uncertainty.covariance import covariance, widening
from app.core.warnings import WarningCode
from app.estimation.evidence import Evidence
from app.estimation.histogram import Histogram, histogram
from app.estimation.intervals import interval
from app.estimation.methods import choose
from app.estimation.request import Batch, FeatureBatch, PosteriorBatch, Request, ShiftOptions
from app.estimation.results import (
    AdjustedModel,
    AdjustedRows,
    Estimate,
    IntervalAnswer,
    RegionAnswer,
    ShiftAnswer,
    UnknownShare,
)
from app.estimation.solvers import Solution, solve
from app.estimation.validation_rows import SourceRows

SMALL_BATCH = 100
NOT_PRIOR_SHIFT = 0.01
"""p-value of the fit below which prior shift is no believable explanation."""


def estimate(
    model: SourceModel, batch: Batch, request: Request, rows: SourceRows | None = None
) -> Estimate:
    """Estimate the class shares of the population that ``batch`` comes from."""
    return estimate_from(Evidence(model, batch, rows), request)


def estimate_from(evidence: Evidence, request: Request) -> Estimate:
    """The same from evidence that is at hand, or answers from elsewhere."""
    model, batch, rows = evidence.model, evidence.batch, evidence.source_rows
    method, reason = choose(model, batch, request.method)
    solution = solve(evidence, method, request)
    p, source = solution.prevalence, evidence.source_of(method)
    shift = None
    if not evidence.has_likelihood:
        _warn_untested(evidence)
    elif request.shift is not None:
        shift = _shift(evidence, p, source, request.shift, rows)
    _advise(evidence, shift)
    fit = evidence.fit
    if fit is not None and fit.p_value < NOT_PRIOR_SHIFT:
        evidence.warn(WarningCode.NOT_PRIOR_SHIFT, _misfit(fit))
    if request.trace and solution.trace is None:
        message = f"{method} does not iterate from the source priors; em has a trace"
        evidence.warn(WarningCode.NO_TRACE, message)
    adjusted = None
    if request.posteriors or request.histogram:
        adjusted = evidence.adjusted(source, p)
    counted = _histogram(evidence, adjusted) if request.histogram else None
    spread = None
    if request.interval is not None:
        spread = interval(evidence, method, solution, request.interval)
    return Estimate(
        method=method,
        reason=reason,
        size=batch.size,
        source=source,
        counted=evidence.counted,
        prevalence=p,
        log_offsets=evidence.log_offsets(source, p),
        interval=spread,
        adjustment=evidence.adjustment(source, p),
        shift=shift,
        diagnostics=solution.diagnostics,
        labelled=evidence.labelled,
        posteriors=adjusted if request.posteriors else None,
        trace=solution.trace if request.trace else None,
        weighted_precision=solution.weighted_precision if request.trace else None,
        unknown=_unknown(solution, spread),
        fit=fit,
        histogram=counted,
        warnings=evidence.warnings,
    )


def _histogram(evidence: Evidence, adjusted: Floats | None) -> Histogram | None:
    outcome = histogram(evidence.batch, adjusted)
    if isinstance(outcome, Histogram):
        return outcome
    evidence.warn(outcome.code, outcome.message)
    return None


def _unknown(solution: Solution, spread: IntervalAnswer | None) -> UnknownShare | None:
    if solution.unknown is None:
        return None
    ends = (None, None) if spread is None or spread.unknown is None else spread.unknown
    return UnknownShare(max(solution.unknown, 0.0), *ends)


def _misfit(fit: Fit) -> str:
    message = (
        f"no class shares explain this batch (p = {fit.p_value:.2g}): something else than them has "
        "changed, a new kind of case, say; doubt every share"
    )
    if fit.reference == "features":
        return message
    return (
        f"{message}. Or the validation rows were scored by other models than the batch, as out of "
        "fold, whose posteriors are spread differently: score held-out rows with the model itself"
    )


def _warn_untested(evidence: Evidence) -> None:
    if isinstance(evidence.batch, FeatureBatch):
        message = "features that no classifier has scored have no shift test; send posteriors"
    else:
        message = "predicted outputs need a confusion matrix for a shift test"
    evidence.warn(WarningCode.NO_SHIFT_TEST, message)


def adjust_batch(
    model: SourceModel,
    batch: Batch,
    target: Floats | None,
    request: Request,
    rows: SourceRows | None = None,
    costs: Floats | None = None,
) -> AdjustedRows:
    """Adjust the rows to ``target`` priors or, without them, to the estimate of these rows.

    With ``request.only_if_shifted`` rows are left at the source priors unless a shift is
    detected. ``costs`` (C × C, rows true classes, columns decided) asks for decisions of least
    expected cost.
    """
    evidence = Evidence(model, batch, rows)
    evidence.require_likelihood("posteriors")
    method = None
    if target is None:
        method, _ = choose(model, batch, request.method)
        target = _known(solve(evidence, method, request).prevalence)
    source = evidence.source_of(method)
    tested = request.shift or ShiftOptions()
    if request.only_if_shifted and not _shift(evidence, target, source, tested, rows).detected:
        evidence.warn(
            WarningCode.LITTLE_SHIFT, "no shift was detected; posteriors keep the source priors"
        )
        target = source
    adjusted = evidence.adjusted(source, target)
    decided, threshold = None, None
    if costs is not None:
        decided = least_cost(adjusted, costs)
        weights = evidence.log_offsets(source, target)
        if len(model.classes) == 2 and weights is not None:
            threshold = score_threshold(costs, model.calibration, weights)
    return AdjustedRows(adjusted, source, target, method, evidence.warnings, decided, threshold)


def _known(shares: Floats) -> Floats:
    """Shares among the classes, of soft ones too."""
    total = float(shares.sum())
    if total <= 0:
        reason = "the batch holds nothing of the classes"
        raise MethodUnavailable("adjusting posteriors to this estimate", reason)
    return shares if abs(total - 1) < 1e-9 else np.asarray(shares / total)


def adjust_intercepts(
    model: SourceModel,
    intercepts: Floats,
    reference: int | None,
    target: Floats | None,
    batch: Batch | None,
    request: Request,
    rows: SourceRows | None = None,
) -> AdjustedModel:
    """Intercepts of a softmax model, adjusted to ``target`` or to the estimate of a batch.

    ``MethodUnavailable`` where a share is zero, or the calibration is no common scale.
    """
    method, warnings = None, model.warnings
    source = model.output_priors
    if target is None:
        assert batch is not None
        evidence = Evidence(model, batch, rows)
        method, _ = choose(model, batch, request.method)
        target = _known(solve(evidence, method, request).prevalence)
        source = evidence.source_of(method)
        warnings = evidence.warnings
    if gains_from_nothing(source, target) or (target == 0).any():
        reason = "a class with a share of zero, in the source or in the target, has no intercept"
        raise MethodUnavailable("adjusting intercepts to these priors", reason)
    calibration = model.calibration
    scale = calibration.common if isinstance(calibration, Scaling) else None
    if scale is None:
        reason = f"{calibration.method} is not one scale and a bias per class, as bcts is"
        raise MethodUnavailable("adjusting intercepts", reason)
    offsets = calibration.bias + log_weights(source, target)
    adjusted = adjusted_intercepts(intercepts, scale, offsets, reference)
    return AdjustedModel(adjusted.scale, adjusted.intercepts, target, method, warnings)


def compare_priors(
    model: SourceModel, batch: Batch, request: Request, rows: SourceRows | None = None
) -> ShiftAnswer:
    """Test whether the priors of the batch's population differ from the source's."""
    evidence = Evidence(model, batch, rows)
    evidence.require_likelihood("a shift test")
    solution = solve(evidence, "mle", request)
    tested = request.shift or ShiftOptions()
    shift = _shift(evidence, solution.prevalence, evidence.source, tested, rows)
    return ShiftAnswer(batch.size, shift, solution.diagnostics, evidence.warnings)


def check_region(model: SourceModel, batch: Batch, priors: Floats, level: float) -> RegionAnswer:
    """Whether ``priors`` lie in the likelihood-ratio region of the batch at ``level``.

    The uncertainty of the source scales the statistic by (δᵀΣ⁺δ) / (δᵀS⁺δ), δ = priors − p̂, Σ the
    covariance of p̂ with it and S without.
    """
    evidence = Evidence(model, batch)
    evidence.require_likelihood("a region test")
    likelihood, top = evidence.likelihood, evidence.maximum
    lack = top.gain - likelihood.gain(priors) if likelihood.size else 0.0
    factor = _factor(evidence, priors - top.prevalence)
    degrees = _degrees_of_freedom(evidence, likelihood)
    statistic = 2 * likelihood.size * max(lack, 0.0) * factor
    p_value = 1.0 if degrees == 0 and np.isfinite(statistic) else 0.0
    if degrees > 0:
        p_value = float(chdtrc(degrees, statistic))
    return RegionAnswer(
        size=batch.size,
        inside=p_value > 1 - level,
        level=level,
        statistic=statistic if np.isfinite(statistic) else None,
        factor=factor,
        degrees_of_freedom=degrees,
        p_value=p_value,
        prevalence=top.prevalence,
        warnings=evidence.warnings,
    )


def _advise(evidence: Evidence, shift: ShiftTest | None) -> None:
    """Where correcting a batch is known to do little, or harm (SLD reassessment, section 6)."""
    if evidence.batch.size < SMALL_BATCH:
        evidence.warn(
            WarningCode.SMALL_BATCH,
            f"the batch has {evidence.batch.size} rows; below {SMALL_BATCH} the interval says more "
            "than the estimate: gather more rows",
        )
    if shift is not None and not shift.detected:
        evidence.warn(
            WarningCode.LITTLE_SHIFT,
            "no shift was detected: adjusting posteriors to this estimate may do more harm than "
            'good; "adjust": "if-shifted" leaves them',
        )


def _factor(evidence: Evidence, change: Floats) -> float:
    source = evidence.uncertainty
    if source is None or not change.any() or evidence.likelihood.size == 0:
        return 1.0
    likelihood, top = evidence.likelihood, evidence.maximum
    hessian = likelihood.hessian(top.prevalence)[0] if top.hessian is None else top.hessian
    return widening(likelihood, top.prevalence, hessian, change, source)


def _shift(
    evidence: Evidence,
    prevalence: Floats,
    source: Floats,
    options: ShiftOptions,
    rows: SourceRows | None,
) -> ShiftTest:
    """The test at the likelihood's maximum; the effect size is that of ``prevalence``."""
    likelihood = evidence.likelihood
    reference = _reference(evidence, options, rows)
    test = likelihood_ratio_test(
        evidence.maximum.gain,
        likelihood.size,
        _degrees_of_freedom(evidence, likelihood),
        0.5 * float(np.abs(prevalence - source).sum()),
        None if reference == "chi-square" else _source_rows(evidence),
        options.significance,
        options.minimum_effect,
        _raw_rate(evidence, options.significance),
    )
    if reference == "bootstrap":
        return _resample_test(evidence, test, options.seed, rows)
    return test


def _reference(evidence: Evidence, options: ShiftOptions, rows: SourceRows | None) -> Reference:
    reference = options.reference
    available = _source_rows(evidence) is not None
    if reference in ("scaled-chi-square", "bootstrap") and not available:
        reason = "the version has no validation set; register one"
        raise MethodUnavailable(f"the {reference} reference", reason)
    if reference == "bootstrap" and not isinstance(evidence.batch, PosteriorBatch):
        reason = "predicted outputs have the scaled-chi-square reference"
        raise MethodUnavailable("the bootstrap reference", reason)
    if reference == "chi-square" or not available:
        advice = 'ask for reference "auto"' if available else "register a validation set"
        evidence.warn(
            WarningCode.RAW_SHIFT_TEST,
            "the test takes the source priors and the calibration as exact; a slightly "
            f"miscalibrated classifier alarms on every large batch: {advice}",
        )
        return "chi-square"
    if reference == "auto" and rows is not None and _at_the_boundary(evidence):
        evidence.warn(
            WarningCode.BOUNDARY_SOURCE,
            "a source prior is within two standard errors of zero, where chi-square is too "
            "cautious; the test was made by resampling the validation set",
        )
        return "bootstrap"
    return "bootstrap" if reference == "bootstrap" else "scaled-chi-square"


def _source_rows(evidence: Evidence) -> float | None:
    """The n rows behind the source priors."""
    if isinstance(evidence.batch, PosteriorBatch):
        return evidence.model.validation_size
    return evidence.model.output_validation_size


def _at_the_boundary(evidence: Evidence) -> bool:
    """Whether p0_k is within two standard errors of p̂_k (at p0) from zero, for some k."""
    n = evidence.model.validation_size
    if not isinstance(evidence.batch, PosteriorBatch) or n is None:
        return False
    if n * len(evidence.source) > two_sample.UNASKED or evidence.likelihood.size == 0:
        return False
    source, known = evidence.source, evidence.source > 0
    hessian = evidence.information
    if identifiability.null_directions(hessian, known).shape[1] > 0:
        return False
    spread = covariance(evidence.likelihood, source, hessian, known)
    return bool((source[known] < 2 * spread.standard_errors[known]).any())


def _resample_test(
    evidence: Evidence, test: ShiftTest, seed: int, rows: SourceRows | None
) -> ShiftTest:
    null = None if rows is None else rows.null_statistics(evidence.likelihood.size, seed)
    if null is None:
        reason = f"it needs the validation rows, at most {two_sample.MOST_NUMBERS} numbers in them"
        raise MethodUnavailable("the bootstrap reference", reason)
    p = two_sample.p_value(test.statistic, null)
    if test.significance < 2 / (len(null) + 1) and p <= 2 / (len(null) + 1):
        evidence.warn(
            WarningCode.COARSE_RESAMPLING,
            f"{len(null)} resamples cannot show a p-value below this significance; the scaled "
            "chi-square decides",
        )
        return test
    return with_p_value(test, p, seed, len(null))


def _raw_rate(evidence: Evidence, significance: float) -> float | None:
    model = evidence.model
    if not isinstance(evidence.batch, PosteriorBatch):
        return None
    if model.mean_gap is None or model.second_moment is None:
        return None
    size = evidence.likelihood.size
    return raw_false_alarm_rate(model.mean_gap, model.second_moment, size, significance)


def _degrees_of_freedom(evidence: Evidence, likelihood: Likelihood) -> int:
    """Rank of the information; for outputs rank M − 1, whichever outputs occurred."""
    if isinstance(evidence.batch, PosteriorBatch):
        # The Hessian sees the same directions wherever the densities are positive.
        hessian = evidence.maximum.hessian
        information = evidence.information if hessian is None else hessian
        return identifiability.degrees_of_freedom(likelihood, information)
    outputs = np.ones(len(evidence.model.outputs))
    everything = Likelihood.of_outputs(
        evidence.confusion.conditional, evidence.source, outputs, evidence.label_counts
    )
    return identifiability.degrees_of_freedom(everything)
