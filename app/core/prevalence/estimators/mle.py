"""The maximum-likelihood target priors, with a proof.

ℓ is concave, so that p is the maximum exactly if m_k ≤ 1 for all k, and whatever p is, ℓ(p) lacks
at most max_k m_k − 1, the optimality gap. The solvers go on until the gap is
min(1e-8, 1e-3 / N): the likelihood-ratio statistic 2 N ℓ is then right to 0.002.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.core.arrays import Floats
from app.core.prevalence.estimators.newton import Climb, Iterate
from app.core.prevalence.estimators.two_classes import FLAT, maximise
from app.core.prevalence.likelihood.identifiability import (
    definite,
    nearest,
    null_directions,
    taking_part,
)
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.likelihood.moments import moments
from app.core.prevalence.likelihood.subsamples import subsamples, sufficient

Status = Literal["converged", "max-iterations", "stalled", "no-information"]

POLISHED = 1e-4
"""Small batches are taken further, to this part of the tolerance: it costs next to nothing."""
DUST = 1e-7
"""A share this small on a class whose multiplier is below one is tried at zero."""
TIGHT = 1e-6
"""A class at zero takes part in what is undetermined if its multiplier is this near to one."""
STILL_GOOD = 1e-3
"""The Hessian is handed out if no share has changed by more than this since."""


@dataclass(frozen=True)
class MleResult:
    """The maximum, as far as it was reached.

    ``prevalence``: the C shares; exactly zero at a boundary.
    ``status``: ``converged`` (the gap is below the tolerance), ``max-iterations``, ``stalled``
        (rounding allows no better), or ``no-information`` (no informative row: the source priors).
    ``iterations``: steps.
    ``gradient_passes``: over the whole batch, line searches among them.
    ``hessian_passes``: over the whole batch.
    ``gain``: ℓ ≥ 0, mean log-likelihood over that of the source priors.
    ``optimality_gap``: ≥ 0; max_k m_k − 1, an upper bound on what ``gain`` lacks.
    ``hessian``: C × C, −∂²ℓ/∂p∂p at the maximum to a relative 2 · ``STILL_GOOD``; None where it
        would cost another pass.
    ``undetermined``: positions of the classes whose shares could be exchanged without changing ℓ;
        the answer is then that with the least Σ_k p_k ln(p_k / p0_k), in which twins keep the
        proportion of their source priors.
    """

    prevalence: Floats
    status: Status
    iterations: int
    gradient_passes: int
    hessian_passes: int
    gain: float
    optimality_gap: float
    hessian: Floats | None = None
    undetermined: tuple[int, ...] = ()


def mle(
    likelihood: Likelihood,
    tolerance: float | None = None,
    max_iterations: int = 100,
    start: Floats | None = None,
) -> MleResult:
    """Maximise ℓ over the simplex, from ``start`` or the source priors.

    ``tolerance``: the optimality gap to reach, min(1e-8, 1e-3 / N) by default. Without a
    ``start``, large batches are solved on strided subsamples first.
    """
    known = likelihood.known
    if len(known) == 2:
        return _two_classes(likelihood, start, tolerance, max_iterations)
    if likelihood.size == 0:
        return _no_information(likelihood)
    if len(known) == 1:
        return MleResult(_one_class(likelihood), "converged", 0, 0, 0, 0.0, 0.0)
    return _more_classes(likelihood, start, _aim(tolerance, likelihood), max_iterations)


def _aim(tolerance: float | None, likelihood: Likelihood) -> float:
    return min(1e-8, 1e-3 / likelihood.size) if tolerance is None else tolerance


def _no_information(likelihood: Likelihood) -> MleResult:
    return MleResult(likelihood.source, "no-information", 0, 0, 0, 0.0, 0.0)


def _status(converged: bool, steps: int, allowed: int) -> Status:
    if converged:
        return "converged"
    return "max-iterations" if steps >= allowed else "stalled"


def _one_class(likelihood: Likelihood) -> Floats:
    p = np.zeros(len(likelihood.source))
    p[likelihood.known] = 1.0
    return p


def _two_classes(
    likelihood: Likelihood, start: Floats | None, tolerance: float | None, max_passes: int
) -> MleResult:
    known, source = likelihood.known, likelihood.source
    theta = float((source if start is None else start)[known[1]])
    for sample in subsamples(likelihood) if start is None else ():
        first = moments(sample, theta)
        theta = maximise(sample, first, sufficient(sample), 20).theta
    # This pass counts the rows as well; nothing before it needs to know.
    first = moments(likelihood, theta)
    if likelihood.size == 0:
        return _no_information(likelihood)
    tolerance = _aim(tolerance, likelihood)
    aim = tolerance * POLISHED if likelihood.blocks.few else tolerance
    answer = maximise(likelihood, first, aim, max_passes)
    at, delta = answer.moments, answer.theta - answer.moments.theta
    prevalence = np.zeros(len(source))
    prevalence[known] = 1.0 - answer.theta, answer.theta
    hessian = np.zeros((len(source), len(source)))
    hessian[np.ix_(known, known)] = at.hessian_at(delta)
    return MleResult(
        prevalence,
        _status(answer.gap <= tolerance, answer.passes, max_passes),
        answer.passes,
        answer.passes,
        0,
        max(at.gain_at(delta), 0.0),
        answer.gap,
        hessian if np.isfinite(hessian).all() else None,
        tuple(int(k) for k in known) if at.S[1] < FLAT else (),
    )


def _more_classes(
    likelihood: Likelihood, start: Floats | None, tolerance: float, max_iterations: int
) -> MleResult:
    p, hessian = likelihood.source if start is None else start, None
    for sample in subsamples(likelihood) if start is None else ():
        if sample.size == 0:
            continue
        below = Climb(sample, hessian)
        point, _ = below.to_the_top(p, sufficient(sample), 20)
        p, hessian = _interior(point.p, likelihood.source, likelihood.size), below.hessian
    climb = Climb(likelihood, hessian, frugal=True)
    point, steps = climb.to_the_top(p, tolerance, max_iterations)
    if likelihood.blocks.few and tolerance * POLISHED < point.gap <= tolerance:
        point = climb.polish(point)
    point = _without_dust(climb, point, tolerance)
    basis = _flat(climb, point)
    if basis.shape[1] > 0:
        point = _nearest(climb, point, basis, tolerance)
    return MleResult(
        point.p,
        _status(point.gap <= tolerance, steps, max_iterations),
        steps,
        climb.passes.gradient,
        climb.passes.hessian,
        max(likelihood.gain(point.p), 0.0),
        point.gap,
        _hessian(climb, point.p),
        taking_part(basis),
    )


def _interior(p: Floats, source: Floats, size: float) -> Floats:
    """The answer of a subsample, no class at zero: a row outside it may need that class."""
    alive = p + source / size
    shares: Floats = alive / alive.sum()
    return shares


def _without_dust(climb: Climb, point: Iterate, tolerance: float) -> Iterate:
    """Without specks on classes that the multipliers push to zero, if the gap allows it."""
    dust = (point.p > 0) & (point.p <= DUST) & (point.m < 1)
    if point.gap > tolerance or not dust.any():
        return point
    p = np.where(dust, 0.0, point.p)
    clean = climb.evaluate(p / p.sum())
    return clean if clean.gap <= tolerance else point


def _flat(climb: Climb, point: Iterate) -> Floats:
    """Directions (C × q) in which ℓ does not change, among the classes with m_k = 1."""
    tight = (point.p > 0) | (point.m > 1.0 - TIGHT)
    if climb.hessian is not None and definite(climb.hessian, tight):
        return np.zeros((len(tight), 0))
    if climb.at is None:
        climb.with_hessian(point.p)
    if climb.hessian is None:
        return np.zeros((len(tight), 0))
    return null_directions(climb.hessian, tight)


def _nearest(climb: Climb, point: Iterate, basis: Floats, tolerance: float) -> Iterate:
    """The maximiser nearest to the source priors, if it is one by the certificate too."""
    p = nearest(point.p, basis, climb.likelihood.source)
    near = climb.evaluate(p / p.sum())
    return near if near.gap <= max(tolerance, point.gap) else point


def _hessian(climb: Climb, p: Floats) -> Floats | None:
    """The last Hessian, if no share has changed by more than a trifle since."""
    if climb.at is None:
        return None
    moved = np.abs(p - climb.at) > STILL_GOOD * p
    return None if moved[(p > 0) | (climb.at > DUST)].any() else climb.hessian
