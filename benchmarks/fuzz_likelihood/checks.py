"""What is wrong with an answer, by the ratio matrix, which the solver never forms."""

from collections.abc import Callable

import numpy as np

from app.core.arrays import Floats
from app.core.prevalence.calibration import Scaling
from app.core.prevalence.estimators.mle import MleResult, mle
from app.core.prevalence.likelihood.identifiability import degrees_of_freedom
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.replicates import Intervals
from app.core.prevalence.uncertainty.covariance import SourceError, widening
from app.core.prevalence.uncertainty.intervals import Kind, likelihood_intervals
from app.core.prevalence.uncertainty.profile import ENOUGH, Profile
from benchmarks.fuzz_likelihood.problems import Problem

HESSIAN_PASSES = 20
GRADIENT_PASSES = 30
BOTH = 40
"""Of both together, where a Hessian comes with every gradient.

Newton's step doubles a share that is far too small. So a batch of rows that stand for N rows each
may take log2 N passes more: that many doublings lie between its least share and another's.
"""
ROUNDING = 1e-11
"""Of a multiplier, a mean over the rows."""
NEXT_TO = 1e-9
"""How near a profile's end is to the true one; none is nearer to zero or one than tilts reach.

Of a billion rows an interval may be narrower than that: then its share is all that is within.
"""
LIMITS = (0.455, 2.706, 3.841, 7.38, 15.1)
"""Quantiles of chi-square, from a level of .5 to one of .9999."""
LEVELS = (0.5, 0.8, 0.95, 0.999)
KINDS: tuple[Kind, ...] = ("auto", "auto", "wald", "profile")


def maximum(problem: Problem, result: MleResult) -> str | None:
    """What is wrong with a maximum, or None.

    It lies on the simplex, its optimality gap is what was promised, and it took few passes.
    """
    p, known = result.prevalence, problem.priors > 0
    ratios, weights = problem.ratios
    if not np.isfinite(p).all() or (p < 0).any() or abs(p.sum() - 1) > 1e-12:
        return f"not on the simplex: {p}"
    if (p[~known] != 0).any():
        return f"a share for a class that the source lacks: {p}"
    if len(ratios) == 0:
        return None if result.status == "no-information" else f"status {result.status}"
    if result.status != "converged":
        return f"status {result.status}, gap {result.optimality_gap:.2e}"
    density = ratios @ p[known]
    if not (density > 0).all():
        return "a row has no density"
    gap = float((weights / density @ ratios).max()) / weights.sum() - 1
    promised = problem.tolerance or min(1e-8, 1e-3 / weights.sum())
    if gap > promised + ROUNDING + _share_rounding(p):
        return f"gap {gap:.2e} instead of {promised:.2e}"
    hessian, gradient = result.hessian_passes, result.gradient_passes
    doublings = float(np.log2(weights.sum() / len(weights)))
    if problem.likelihood.curved:
        many = hessian + gradient > BOTH + doublings
    else:
        many = hessian > HESSIAN_PASSES or gradient > GRADIENT_PASSES + doublings
    return f"{hessian} Hessian and {gradient} gradient passes" if many else None


def _share_rounding(p: Floats) -> float:
    """What rounding of one share does to the multiplier of the other, where there are two.

    They are kept as θ and 1 − θ, so that the smaller has the larger's absolute error.
    """
    shares = p[p > 0]
    return 2.0**-53 / float(shares.min()) if len(shares) == 2 else 0.0


def profiled(problem: Problem, top: MleResult, seed: int) -> str | None:
    """What is wrong with both ends of the profile of some class at some limit, or None."""
    rng = np.random.default_rng([problem.number, seed])
    k, limit = int(rng.choice(problem.likelihood.known)), float(rng.choice(LIMITS))
    deviance = _deviance(problem, top.prevalence, k)
    direction = -top.prevalence
    direction[k] = 1.0
    profile = Profile(problem.likelihood, top.prevalence, top.gain, k, direction)
    p = float(top.prevalence[k])
    lower, upper = profile.lower(limit, 0.9 * p), profile.upper(limit, 0.9 * p + 0.1)
    if not 0 <= lower <= p <= upper <= 1:
        return f"ends {lower} and {upper} of class {k}, whose share is {p}"
    for end, sign in ((lower, -1), (upper, 1)):
        inside = p if abs(end - p) <= NEXT_TO else end - sign * NEXT_TO
        least = deviance(inside)[0]
        if least > limit * (1 + 2 * ENOUGH):
            return f"class {k} within {end!r}: a deviance of {least} instead of {limit}"
        beyond = min(max(end + sign * NEXT_TO, 0.0), 1.0)
        most = np.inf if end == beyond else deviance(beyond)[1]
        if most < limit * (1 - 2 * ENOUGH):
            return f"class {k} beyond {end!r}: a deviance of {most} instead of {limit}"
    return None


def _deviance(problem: Problem, top: Floats, k: int) -> Callable[[float], tuple[float, float]]:
    """Bounds on 2N(ℓ̂ − ℓ_k(u)), as a function of u.

    With p_k held at u the others are a mixture of their own, whose columns are u r_k + (1 − u) r_j:
    a maximum from the start, without a tilt, and with its certificate.
    """
    ratios, weights = problem.ratios
    known = np.flatnonzero(problem.priors > 0)
    at_top = float(weights @ np.log(ratios @ top[known]))
    place = int(np.flatnonzero(known == k)[0])
    own, others = ratios[:, place, None], np.delete(ratios, place, axis=1)
    even = np.full(others.shape[1], 1 / others.shape[1])

    def of(u: float) -> tuple[float, float]:
        mixed = u * own + (1 - u) * others
        mass = mixed.sum(axis=1, keepdims=True)
        if (mass == 0).any():
            return np.inf, np.inf
        density = mixed @ mle(Likelihood.of(mixed / mass, even, weights)).prevalence
        gap = max(float((weights / density @ mixed).max()) - weights.sum(), 0.0)
        lack = at_top - float(weights @ np.log(density))
        return 2 * (lack - gap), 2 * lack

    return of


def intervals(problem: Problem, top: MleResult, seed: int) -> str | None:
    """What is wrong with the intervals of some kind and level, or None."""
    rng = np.random.default_rng([problem.number, seed])
    result = likelihood_intervals(
        problem.likelihood,
        top,
        float(rng.choice(LEVELS)),
        "population" if rng.random() < 0.8 else "batch",
        KINDS[rng.integers(len(KINDS))],
        _uncertainty(rng, problem) if rng.random() < 0.5 else None,
    )
    return ends(result, top.prevalence, problem.likelihood)


def ends(result: Intervals, p: Floats, likelihood: Likelihood) -> str | None:
    """What is wrong with them: they hold their shares, and of two classes there is one share."""
    lower, upper = result.lower, result.upper
    words = f"intervals {lower} to {upper} about {p}"
    if not ((lower >= 0) & (lower <= upper) & (upper <= 1)).all():
        return words
    known = likelihood.known
    if likelihood.size > 0 and not ((lower <= p) & (p <= upper)).all():
        return words
    if len(known) == 2 and abs(lower[known[0]] + upper[known[1]] - 1) > NEXT_TO:
        return f"no mirror images: {words}"
    return None


def region(problem: Problem, top: MleResult, seed: int) -> str | None:
    """What is wrong with what a region test asks at some priors, or None."""
    rng = np.random.default_rng([problem.number, seed])
    likelihood, known = problem.likelihood, problem.likelihood.known
    priors = np.zeros(len(problem.source))
    priors[known] = rng.dirichlet(np.full(len(known), rng.choice([0.1, 1.0])))
    lack = top.gain - likelihood.gain(priors)
    if likelihood.size > 0 and not lack >= -1e-8:
        return f"a gain {-lack} above that of the maximum"
    degrees = degrees_of_freedom(likelihood, top.hessian)
    if not 0 <= degrees < len(known):
        return f"{degrees} degrees of freedom"
    if likelihood.size == 0:
        return None
    hessian = likelihood.hessian(top.prevalence)[0] if top.hessian is None else top.hessian
    source = _uncertainty(rng, problem)
    factor = widening(likelihood, top.prevalence, hessian, priors - top.prevalence, source)
    return None if 0 <= factor <= 1 else f"a factor of {factor}"


def _uncertainty(rng: np.random.Generator, problem: Problem) -> SourceError:
    """An error of scale and priors of some size."""
    classes = len(problem.source)
    calibration = problem.calibration or Scaling.identity(classes)
    scales = 1 if calibration.common is not None else classes
    root = rng.normal(size=(scales + classes, 2)) * rng.choice([1e-3, 0.1, 3.0])
    return SourceError(root @ root.T, calibration)
