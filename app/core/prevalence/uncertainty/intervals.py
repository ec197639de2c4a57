"""Intervals for the shares at the maximum of the likelihood.

Where a share is more than three standard errors away from 0 and from 1, Wald's interval on the
log-odds. Elsewhere the profile likelihood: the u with 2N(ℓ̂ − ℓ_k(u)) ≤ φ_k χ²₁, where
φ_k = total variance / variance of the batch carries the uncertainty of the source.

At zero the limit is raised from χ²₁(level) towards −2 ln(α/2), in proportion to 1 − m_k: where the
classes are far apart no row of the batch resembles class k (m_k near 0), and the exact bound for
0 of N is (1 − u)^N = α/2; where they overlap, m_k is near 1 and χ²₁ holds. A share at one is
treated like the nearest of the other classes. Of two classes there is one share, and one interval.
"""

from typing import Literal

import numpy as np
from scipy.special import chdtri, expit, logit, ndtri

from app.core.arrays import Codes, Floats, Mask
from app.core.prevalence.estimators.mle import MleResult
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.replicates import Intervals
from app.core.prevalence.uncertainty.covariance import (
    Covariance,
    Of,
    Uncertainty,
    covariance,
    covariance_at_vertex,
)
from app.core.prevalence.uncertainty.profile import Profile

Kind = Literal["auto", "wald", "profile"]
MOST_WORK = 4e7
"""Most work, N · C + C³ for each profiled class, that is done exactly."""
FAR = 3.0
"""Standard errors between a share and 0 or 1 that Wald's interval needs."""


def likelihood_intervals(
    likelihood: Likelihood,
    top: MleResult,
    level: float = 0.95,
    of: Of = "population",
    kind: Kind = "auto",
    source: Uncertainty | None = None,
) -> Intervals:
    """An interval for every share of the maximum ``top``.

    ``of``: shares of the population, or the realised shares of these rows; ``source``: what is
    uncertain about the source, None for nothing. Classes of zero source prior get [0, 0]. With
    ``wald`` classes at zero, at one or undetermined are profiled all the same. Where
    profiling would cost more than ``MOST_WORK``, or the rows are not at hand, ℓ_k is replaced by
    its quadratic expansion.
    """
    p = top.prevalence
    lower, upper = np.zeros(len(p)), np.zeros(len(p))
    if len(likelihood.known) == 1 or likelihood.size == 0:
        known = likelihood.source > 0
        upper[known] = 1.0
        lower[known] = 1.0 if len(likelihood.known) == 1 else 0.0
        return Intervals(lower, upper, level)
    hessian = likelihood.hessian(p)[0] if top.hessian is None else top.hessian
    free = p > 0
    spread = covariance(likelihood, p, hessian, free, source, of)
    error = spread.standard_errors
    near = (np.minimum(p, 1 - p) <= FAR * error) | (p == 0)
    near[list(top.undetermined)] = True
    exactly = (p == 0) | (p == 1)
    exactly[list(top.undetermined)] = True
    by_profile = exactly if kind == "wald" else near | (kind == "profile")
    z = -float(ndtri((1 - level) / 2))
    classes = _independent_classes(likelihood, p)
    for k in classes[~by_profile[classes]]:
        lower[k], upper[k] = _wald(float(p[k]), z * float(error[k]))
    profiled = classes[by_profile[classes]]
    work = likelihood.rows * len(p) + len(p) ** 3
    approximate = work * len(profiled) > (MOST_WORK if likelihood.at_hand else 0)
    if approximate:
        _expand(likelihood, top, hessian, spread, profiled, level, (lower, upper))
    else:
        for k in profiled:
            moving = _moving(likelihood, p, int(k))
            own = spread
            if p.max() == 1 and np.count_nonzero(moving) == 2:
                own = covariance_at_vertex(likelihood, p, hessian, moving, source)
            elif (moving != free).any():
                own = covariance(likelihood, p, hessian, moving, source, of)
            lower[k], upper[k] = _profile_ends(likelihood, top, int(k), level, own)
    if len(likelihood.known) == 2:
        _mirror(classes, likelihood.known, p, lower, upper)
    return Intervals(lower, upper, level, approximate)


def _independent_classes(likelihood: Likelihood, p: Floats) -> Codes:
    """The known classes; of two the rarer, whose complement the other is."""
    known = likelihood.known
    return known if len(known) != 2 else known[[int(np.argmin(p[known]))]]


def _mirror(classes: Codes, known: Codes, p: Floats, lower: Floats, upper: Floats) -> None:
    """The ends of the other of two classes."""
    one, other = int(classes[0]), int(known[known != classes[0]][0])
    lower[other] = min(1.0 - float(upper[one]), float(p[other]))
    upper[other] = max(1.0 - float(lower[one]), float(p[other]))


def _moving(likelihood: Likelihood, p: Floats, k: int) -> Mask:
    """The classes whose shares vary with that of class k: the positive ones and k.

    A share at one can only give to another class: to the nearest of them.
    """
    moving = p > 0
    moving[k] = True
    if np.count_nonzero(moving) == 1:
        others = likelihood.known[likelihood.known != k]
        moving[others[np.argmax(likelihood.multipliers(p)[others])]] = True
    return moving


def _wald(share: float, reach: float) -> tuple[float, float]:
    if not 0 < share < 1:
        return max(share - reach, 0.0), min(share + reach, 1.0)
    reach /= share * (1 - share)
    centre = logit(share)
    # Rounding of the odds must not move a certain share out of its interval.
    lower, upper = float(expit(centre - reach)), float(expit(centre + reach))
    return min(lower, share), max(upper, share)


def _reach(likelihood: Likelihood, p: Floats, k: int, limit: float, variance: float) -> float:
    """The u with N(1 − m_k)u + u²/2V = limit/2: where the quadratic profile from zero ends."""
    slope = likelihood.size * max(1.0 - float(likelihood.multipliers(p)[k]), 0.0)
    return float(limit / (slope + np.sqrt(slope**2 + limit / variance)))


def _expand(
    likelihood: Likelihood,
    top: MleResult,
    hessian: Floats,
    spread: Covariance,
    classes: Codes,
    level: float,
    ends: tuple[Floats, Floats],
) -> None:
    """Ends from ℓ_k(u) ≈ ℓ̂ − (1 − m_k)(u − p_k) − (u − p_k)² / 2V_k, V_k / N the variance.

    For a class at zero V_k is one over the Schur complement of H. The source widens them as it
    widens the largest of the free classes.
    """
    p, N = top.prevalence, likelihood.size
    limit = float(chdtri(1, 1 - level))
    m = likelihood.multipliers(p)
    free = np.flatnonzero(p > 0)
    alone = np.maximum(spread.target.diagonal()[free], 1e-300)
    wider = max(float((spread.total.diagonal()[free] / alone).max(initial=1.0)), 1.0)
    inverse = np.linalg.pinv(hessian[np.ix_(free, free)], hermitian=True)
    for k in classes:
        if p[k] > 0:
            effective = max(float(p[k]) ** 2 / max(float(spread.total[k, k]), 1e-300), 1e-300)
            ends[0][k], ends[1][k] = _count_like(float(p[k]), effective, limit)
            continue
        column = hessian[free, k]
        curvature = max(float(hessian[k, k] - column @ inverse @ column), 0.0)
        slope = min(max(1.0 - float(m[k]), 0.0), 1.0)
        drop = _raise_limit(limit, level, 1.0 - slope) * wider / (2 * N)
        root = slope + np.sqrt(slope**2 + 2 * curvature * drop)
        ends[1][k] = min(2 * drop / root, 1.0) if root > 0 else 1.0


def _count_like(share: float, effective: float, limit: float) -> tuple[float, float]:
    """Ends where 2 n (x − 1 − ln x) = limit for u = share · x, the deviance of a count of n.

    ``effective``: the n that has the share's variance. Exact for a rare class that is told apart
    perfectly, and the usual interval for many.
    """
    ends = []
    for start in (np.exp(-1.0 - limit / (2 * effective)), 1.0 + limit / (2 * effective) + 1.0):
        x = max(float(start), 1e-300)
        for _ in range(50):
            if x == 1.0:
                break
            x = max(x - (x - 1 - np.log(x) - limit / (2 * effective)) / (1 - 1 / x), 1e-300)
        ends.append(min(share * x, 1.0))
    return ends[0], ends[1]


def _raise_limit(limit: float, level: float, m: float) -> float:
    """The limit for a share at zero whose multiplier is ``m``."""
    exact = -2 * np.log((1 - level) / 2)
    return limit + max(float(exact) - limit, 0.0) * min(max(1 - m, 0.0), 1.0)


def _profile_ends(
    likelihood: Likelihood, top: MleResult, k: int, level: float, spread: Covariance
) -> tuple[float, float]:
    """Ends of the profile interval, stretched about the share for realised shares."""
    p = float(top.prevalence[k])
    alone, total = float(spread.target[k, k]), float(spread.total[k, k])
    plain = float(chdtri(1, 1 - level))
    if p in (0.0, 1.0):
        m = likelihood.multipliers(top.prevalence)
        plain = _raise_limit(plain, level, float(m[k] if p == 0 else np.delete(m, k).max()))
    wider = total > alone > 0
    limit = plain * (total / alone if wider else 1.0)
    direction = spread.target[:, k] / alone if alone > 0 else -top.prevalence
    direction[k] = 1.0
    profile = Profile(likelihood, top.prevalence, top.gain, k, direction)
    reach = float(np.sqrt(limit * alone)) if alone > 0 else 0.5
    up = _reach(likelihood, top.prevalence, k, limit, alone) if p == 0 and alone > 0 else reach
    ends = profile.lower(limit, p - reach), profile.upper(limit, p + up)
    narrower = np.sqrt(max(total, 0.0) / alone) if alone > 0 and total < alone else 1.0
    # Zero and one stay within reach: realised shares sit there exactly.
    lower = 0.0 if ends[0] <= 0 else p + (ends[0] - p) * narrower
    upper = 1.0 if ends[1] >= 1 else p + (ends[1] - p) * narrower
    return min(float(lower), p), max(float(upper), p)
