"""One solver per method, all from the same evidence."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from app.core.arrays import Floats
from app.core.errors import InvalidInput, MethodUnavailable
from app.core.prevalence.estimators import bayes, em_stop
from app.core.prevalence.estimators.bayes import Posterior
from app.core.prevalence.estimators.cde import cde_iterate
from app.core.prevalence.estimators.confusion import Inversion, acc, acc_qp
from app.core.prevalence.estimators.em import em
from app.core.prevalence.matching.geometry import delta_min, lambda_min, radius
from app.core.prevalence.matching.kernels import Name as KernelName
from app.core.prevalence.matching.kernels import gram
from app.core.prevalence.matching.match import Match, match_means
from app.core.warnings import WarningCode
from app.estimation.evidence import Evidence
from app.estimation.methods import Method
from app.estimation.request import BayesOptions, EmOptions, OutputBatch, Request
from app.estimation.results import Diagnostics

WITHOUT_LABELS: frozenset[Method] = frozenset({"cc", "acc", "acc-qp", "pacc-qp"})
SOFT: frozenset[Method] = frozenset({"acc-qp", "kmm-gaussian", "rffm"})
"""Methods whose shares may sum to less than one."""
OPTIONS: dict[str, tuple[Method, ...]] = {
    "tolerance": ("em", "em-stop"),
    "max_iterations": ("em", "em-stop", "cde"),
    "prior": ("bayes",),
    "seed": ("bayes",),
}
"""The methods that have an option; to others it would say nothing."""
RADIUS_RISK = 0.05
MOST_WORK = 2e10
"""Most numbers, N · C · max_iterations, that a longer EM than usual may go through."""
MOST_TRACE = 1_000_000
MOST_WATCHED = 2e9
"""Most numbers, n · C · max_iterations, of validation rows that em-stop watches."""


@dataclass(frozen=True)
class Solution:
    """Shares as one method finds them, and how far to trust them.

    ``prevalence``: C; on the simplex, or of sum at most one where ``unknown`` is there.
    ``diagnostics``: of the solver.
    ``trace``: see ``Estimate``.
    ``weighted_precision``: see ``Estimate``.
    ``credible``: the posterior distribution, of bayes; None for others.
    ``unknown``: 1 − Σ_k p_k, of soft estimates; None for others.
    ``unidentified``: positions of classes that an inversion or a match does not tell apart.
    """

    prevalence: Floats
    diagnostics: Diagnostics
    trace: Floats | None = None
    weighted_precision: Floats | None = None
    credible: Posterior | None = None
    unknown: float | None = None
    unidentified: tuple[int, ...] = ()


def solve(evidence: Evidence, method: Method, request: Request) -> Solution:
    """The estimate of ``method``."""
    if evidence.labelled and method in WITHOUT_LABELS:
        evidence.warn(
            WarningCode.LABELS_UNUSED,
            f"{method} cannot use the labels of {evidence.labelled} rows; mle does",
        )
    _require_used(evidence, method, request)
    return _SOLVERS[method](evidence, request)


def _require_used(evidence: Evidence, method: Method, request: Request) -> None:
    """``InvalidInput`` for an option other than its default that ``method`` has not.

    Whoever leaves the method to the service is told instead.
    """
    if request.soft and method not in SOFT:
        raise InvalidInput.at("/options/soft", _hard(method))
    options = {**vars(request.em), **vars(request.bayes)}
    defaults = {**vars(EmOptions()), **vars(BayesOptions())}
    unused = []
    for name, methods in OPTIONS.items():
        if method in methods or np.array_equal(options[name], defaults[name]):
            continue
        owners = " and ".join(methods)
        if request.method != "auto":
            message = f"is of {owners}, not of {method}; leave it out"
            raise InvalidInput.at(f"/options/{name}", message)
        unused.append(f"{name} is of {owners}")
    if unused:
        evidence.warn(
            WarningCode.OPTIONS_UNUSED, f"{'; '.join(unused)}; the method here is {method}"
        )


def _hard(method: Method) -> str:
    if method == "kmm-energy":
        return (
            "the energy kernel is zero at the origin, so that the unknown share would depend on "
            "where that is; choose rffm or kmm-gaussian"
        )
    return f"{method} has no share that is none of the classes; choose rffm or kmm-gaussian"


def _cc(evidence: Evidence, request: Request) -> Solution:
    counted = evidence.counted
    if counted is None:
        raise MethodUnavailable("cc", "no row of the batch was predicted to be in a class")
    _warn_uncorrected(evidence)
    return Solution(counted, Diagnostics("converged"))


def _pcc(evidence: Evidence, request: Request) -> Solution:
    _warn_uncorrected(evidence)
    mean = evidence.row_mean.mean
    # Rows of single precision sum to one to seven digits.
    return Solution(mean / mean.sum(), Diagnostics("converged"))


def _warn_uncorrected(evidence: Evidence) -> None:
    message = "counting carries the source priors into the estimate; prefer a corrected method"
    evidence.warn(WarningCode.UNCORRECTED, message)


def _invert(
    solver: Callable[[Floats, Floats, Floats], Inversion], evidence: Evidence, request: Request
) -> Solution:
    counts = evidence.output_counts
    shares = counts / counts.sum()
    result = solver(evidence.confusion.conditional, shares, evidence.model.output_priors)
    return _solution_of_inversion(evidence, result)


def _acc_qp(evidence: Evidence, request: Request) -> Solution:
    solution = _invert(partial(acc_qp, soft=request.soft), evidence, request)
    if not request.soft:
        return solution
    evidence.warn(
        WarningCode.BLIND_TO_THE_UNKNOWN,
        "predicted outputs always sum to one: what is none of the classes is taken for a mixture "
        "of them, and unknown_share says nothing; match features with rffm",
    )
    return replace(solution, unknown=1.0 - float(solution.prevalence.sum()))


def _random_features(evidence: Evidence, request: Request) -> Solution:
    embedding, source = evidence.matching.embedding, evidence.model.output_priors
    match = match_means(embedding.means, evidence.embedded.mean, source, request.soft)
    return _solution_of_match(evidence, match, embedding.gram, 1.0, request.soft)


def _kernel(name: KernelName, evidence: Evidence, request: Request) -> Solution:
    kernels = evidence.kernels(name)
    match = kernels.match(evidence.model.output_priors, request.soft)
    G = gram(kernels.reference.within, kernels.reference.labels)
    bound = 1.0 if name == "gaussian" else None
    return _solution_of_match(evidence, match, G, bound, request.soft)


def _solution_of_match(
    evidence: Evidence, match: Match, G: Floats, bound: float | None, soft: bool
) -> Solution:
    """``bound``: the largest norm of a row's features; None where they have none."""
    _warn_unidentified(evidence, match.unidentified)
    if match.status != "converged":
        message = f"the solver reports {match.status}; do not rely on this estimate"
        evidence.warn(WarningCode.SOLVER, message)
    reach = float("inf")
    if bound is not None:
        sizes = evidence.matching.embedding.counts
        separation = lambda_min(G) if soft else delta_min(G)
        shares, size = match.prevalence, evidence.batch.size
        reach = radius(shares, sizes, size, RADIUS_RISK, bound, separation)
    diagnostics = Diagnostics(
        match.status,
        optimality_gap=match.optimality_gap,
        radius=reach if np.isfinite(reach) else None,
    )
    unknown = 1.0 - float(match.prevalence.sum()) if soft else None
    return Solution(match.prevalence, diagnostics, unknown=unknown, unidentified=match.unidentified)


def _soft(evidence: Evidence, request: Request) -> Solution:
    assert evidence.model.soft is not None
    shares = evidence.unlabelled_mean.mean
    return _solution_of_inversion(
        evidence, acc_qp(evidence.model.soft, shares, evidence.model.output_priors)
    )


def _solution_of_inversion(evidence: Evidence, result: Inversion) -> Solution:
    _warn_unidentified(evidence, result.unidentified)
    if result.status != "converged":
        message = f"the solver reports {result.status}; do not rely on this estimate"
        evidence.warn(WarningCode.SOLVER, message)
    if result.inadmissible:
        message = (
            "the linear solution leaves the simplex and was clipped and rescaled; "
            "diagnostics.raw has it"
        )
        evidence.warn(WarningCode.INADMISSIBLE, message)
    diagnostics = Diagnostics(
        result.status,
        optimality_gap=result.optimality_gap,
        raw=result.raw,
        inadmissible=None if result.raw is None else result.inadmissible,
    )
    return Solution(result.prevalence, diagnostics, unidentified=result.unidentified)


def _em(evidence: Evidence, request: Request) -> Solution:
    options = request.em
    numbers = evidence.likelihood.rows * len(evidence.source) * options.max_iterations
    if numbers > MOST_WORK and options.max_iterations > 1000:
        message = "allows too much work on a batch of this size; prefer the method mle"
        raise InvalidInput.at("/options/max_iterations", message)
    if request.trace and options.max_iterations * len(evidence.source) > MOST_TRACE:
        message = "allows too long a trace for this many classes; lower it"
        raise InvalidInput.at("/options/max_iterations", message)
    result = em(evidence.likelihood, options.tolerance, options.max_iterations, request.trace)
    evidence.warn_if_short(result.status, result.optimality_gap)
    _warn_unidentified(evidence, evidence.maximum.undetermined)
    diagnostics = Diagnostics(result.status, result.iterations, result.optimality_gap, result.gain)
    return Solution(result.prevalence, diagnostics, result.trace)


def _em_stop(evidence: Evidence, request: Request) -> Solution:
    validation = None if evidence.source_rows is None else evidence.source_rows.validation()
    if validation is None:
        raise MethodUnavailable("em-stop", "the validation rows are not at hand")
    options = request.em
    numbers = validation.posteriors.size * options.max_iterations
    if numbers > MOST_WATCHED:
        message = "allows too many steps for this many validation rows; lower it"
        raise InvalidInput.at("/options/max_iterations", message)
    result = em(evidence.likelihood, options.tolerance, options.max_iterations, trace=True)
    assert result.trace is not None
    rows = evidence.model.calibration.apply(validation.posteriors)
    stop = em_stop.stop(result.trace, evidence.source, rows, validation.labels)
    evidence.warn(
        WarningCode.BLOCKS_SHIFTS,
        "em-stop judges precision at the source's prevalence and stops early where the shift is "
        "real; register with calibration instead, and use mle",
    )
    p = result.trace[stop.step]
    gain = evidence.likelihood.gain(p)
    gap = max(float(evidence.likelihood.multipliers(p).max()) - 1.0, 0.0)
    diagnostics = Diagnostics("stopped", stop.step, gap, gain)
    return Solution(p, diagnostics, result.trace, stop.precision)


def _cde(evidence: Evidence, request: Request) -> Solution:
    source = float(evidence.source[1])
    if not 0 < source < 1:
        raise MethodUnavailable("cde", "a class has a source prior of zero")
    if request.refit is None:
        result = cde_iterate(evidence.rows[:, 1], source, request.em.max_iterations)
    else:
        result, notes = request.refit()
        for note in notes:
            evidence.warn(note.code, note.message)
    evidence.warn(
        WarningCode.NOT_FISHER_CONSISTENT,
        "cde misses the truth even with perfect posteriors and many rows; prefer mle or acc-qp",
    )
    if result.status != "converged":
        evidence.warn(
            WarningCode.CDE_CYCLE, f"cde ended in: {result.status}; the mean of it is given"
        )
    p = np.array([1 - result.prevalence, result.prevalence])
    trace = np.column_stack([1 - result.trace, result.trace])
    return Solution(p, Diagnostics(result.status, result.iterations), trace)


def _bayes(evidence: Evidence, request: Request) -> Solution:
    options = request.bayes
    prior = np.ones(len(evidence.source)) if options.prior is None else options.prior
    level = 0.95 if request.interval is None else request.interval.level
    if isinstance(evidence.batch, OutputBatch):
        counts = evidence.unlabelled_counts
        if evidence.label_counts is not None:
            prior = prior + evidence.label_counts
        posterior = bayes.of_counts(evidence.confusion, counts, prior, level, options.seed)
    else:
        if bayes.too_large(evidence.likelihood):
            reason = "sampling this many rows and classes would take too long; use mle"
            raise MethodUnavailable("bayes", reason)
        posterior = bayes.of_rows(evidence.likelihood, evidence.maximum, prior, level, options.seed)
    return Solution(posterior.mean, Diagnostics("converged"), credible=posterior)


def _mle(evidence: Evidence, request: Request) -> Solution:
    result = evidence.maximum
    _warn_unidentified(evidence, result.undetermined)
    unique = result.status != "converged" or not result.undetermined
    status = result.status if unique else "not-identifiable"
    diagnostics = Diagnostics(status, result.iterations, result.optimality_gap, result.gain)
    return Solution(result.prevalence, diagnostics)


def _warn_unidentified(evidence: Evidence, positions: tuple[int, ...]) -> None:
    if positions:
        names = ", ".join(evidence.model.classes[k] for k in positions)
        evidence.warn(
            WarningCode.NOT_IDENTIFIABLE,
            f"this batch cannot tell the shares of {names} apart; of the answers that fit equally "
            "well, the one nearest to the source priors is given",
        )


_SOLVERS: dict[Method, Callable[[Evidence, Request], Solution]] = {
    "cc": _cc,
    "pcc": _pcc,
    "acc": partial(_invert, acc),
    "acc-qp": _acc_qp,
    "pacc-qp": _soft,
    "bayes": _bayes,
    "cde": _cde,
    "em": _em,
    "em-stop": _em_stop,
    "mle": _mle,
    "kmm-gaussian": partial(_kernel, "gaussian"),
    "kmm-energy": partial(_kernel, "energy"),
    "rffm": _random_features,
}
