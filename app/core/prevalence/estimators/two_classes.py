"""The maximum for two classes: few passes, each of which tells the likelihood around its θ."""

import math
from dataclasses import dataclass

from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.likelihood.moments import Moments, moments

EDGE = 1e-9
"""An answer this near to 0 or 1 is compared with the end point itself."""
FLAT = 1e-12
"""Below this mean w² the batch does not tell the classes apart."""
NEXT_TO_NOTHING = 1e-16
SLOW = 0.4
"""Newton's steps give way to bisection where they leave more of the slope than this."""


@dataclass(frozen=True)
class Maximum:
    """The maximum of two classes.

    ``theta``: share of the second class.
    ``gap``: ≥ 0; an upper bound on the optimality gap there.
    ``moments``: of the pass that it was computed from.
    ``passes``: over the batch.
    """

    theta: float
    gap: float
    moments: Moments
    passes: int


def maximise(likelihood: Likelihood, at: Moments, tolerance: float, max_passes: int) -> Maximum:
    """The θ of the maximum from a pass ``at`` some θ: a bracket, Newton in it, exact end points.

    The gap max((1 − θ) ℓ', −θ ℓ') is at most |ℓ'| inside and ℓ' into the simplex at its ends.
    """
    lower, upper, tried, last = 0.0, 1.0, set[float](), 0.0
    best = at
    for passes in range(1, max_passes + 1):
        slope = at.S[0]
        best = min(best, at, key=lambda seen: abs(seen.S[0]))
        if at.theta in (0.0, 1.0):
            tried.add(at.theta)
            inward = slope if at.theta == 0 else -slope
            if inward <= tolerance:
                return Maximum(at.theta, max(inward, 0.0), at, passes)
        if at.S[1] < FLAT and abs(slope) <= tolerance:
            return Maximum(at.theta, abs(slope), at, passes)
        lower, upper = (at.theta, upper) if slope > 0 else (lower, at.theta)
        delta, gap = at.proposal(tolerance)
        following = at.theta + delta
        if gap <= tolerance and 0 <= following <= 1:
            edge = float(round(following))
            if abs(following - edge) > EDGE or edge in tried:
                return Maximum(following, gap, at, passes)
            following = edge
        elif not lower < following < upper or _creeps(slope, last):
            following = _inside(lower, upper, tried)
        last = slope
        if following in (at.theta, *tried) or passes == max_passes:
            break
        at = moments(likelihood, following)
    return Maximum(best.theta, abs(best.S[0]), best, passes)


def _creeps(slope: float, last: float) -> bool:
    """Whether a step left the slope's sign and most of its size."""
    return slope * last > 0 and abs(slope) > SLOW * abs(last)


def _inside(lower: float, upper: float, tried: set[float]) -> float:
    """An untried end of the simplex that the bracket reaches, else the middle in logits."""
    if lower == 0 and 0.0 not in tried and upper < 0.5:
        return 0.0
    if upper == 1 and 1.0 not in tried and lower > 0.5:
        return 1.0
    middle = 0.5 * (_logit(lower) + _logit(upper))
    return 1.0 / (1.0 + math.exp(-middle))


def _logit(theta: float) -> float:
    return math.log(max(theta, NEXT_TO_NOTHING)) - math.log(max(1.0 - theta, NEXT_TO_NOTHING))
