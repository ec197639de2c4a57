"""The maximum for two classes, from power sums of one number per row.

With θ the share of the second class, d_i = r_i0 + θ (r_i1 − r_i0) and w_i = (r_i1 − r_i0) / d_i,
the derivative of ℓ is mean w. Moving by Δ turns w into w / (1 + Δ w), so

    ℓ'(θ + Δ) = S1 − Δ S2 + Δ² S3 − Δ³ S4 + Δ⁴ mean w⁵ / (1 + Δ w),   S_k = mean w^k,

and the last term is bounded by Δ⁴ S4 times the largest |w / (1 + Δ w)|, which is at the smallest
or the largest w. One pass gives the next θ together with a proof of how good it is.
"""

import math
from dataclasses import dataclass

import numpy as np

from app.core.prevalence.arrays import Floats
from app.core.prevalence.likelihood import Likelihood

EDGE = 1e-9
"""An answer this near to 0 or 1 is compared with the end point itself."""
FLAT = 1e-12
"""Below this mean w² the batch does not tell the classes apart."""
POLISH = 20
NEXT_TO_NOTHING = 1e-16
SLOW = 0.4
"""Newton's steps give way to bisection where they leave more of the slope than this."""


@dataclass(frozen=True)
class Moments:
    """One pass at θ: ℓ(θ), the means S1 … S4 of w, w², w³, w⁴, and the range of w."""

    theta: float
    gain: float
    S1: float
    S2: float
    S3: float
    S4: float
    lowest: float
    highest: float

    def reach(self, delta: float) -> float:
        """The largest |w / (1 + Δ w)|; infinite where a row would lose its density."""
        ends = 1.0 + delta * self.lowest, 1.0 + delta * self.highest
        if not min(ends) > 0:
            return float("inf")
        return max(abs(self.lowest / ends[0]), abs(self.highest / ends[1]))

    def slope(self, delta: float) -> float:
        """ℓ'(θ + Δ), up to ``error``."""
        return self.S1 - delta * (self.S2 - delta * (self.S3 - delta * self.S4))

    def error(self, delta: float) -> float:
        """Bound on what ``slope`` leaves out."""
        if delta == 0:
            return 0.0
        return delta**4 * self.S4 * self.reach(delta)

    def zero(self) -> float:
        """The Δ where the slope vanishes: Newton's step, polished on the cubic."""
        if not 0 < self.S2 < float("inf"):
            return 0.0
        delta = self.S1 / self.S2
        for _ in range(POLISH):
            curvature = self.S2 - delta * (2 * self.S3 - 3 * delta * self.S4)
            if not curvature > 0.2 * self.S2:
                return self.S1 / self.S2
            change = self.slope(delta) / curvature
            delta += change
            if abs(change) <= 1e-15 * abs(delta):
                break
        return delta

    def gain_at(self, delta: float) -> float:
        """ℓ(θ + Δ), with an error of Δ⁵."""
        inner = self.S2 / 2 - delta * (self.S3 / 3 - delta * self.S4 / 4)
        return self.gain + delta * (self.S1 - delta * inner)

    def hessian_at(self, delta: float) -> Floats:
        """H of the two classes at θ + Δ: r_1/d = 1 + (1 − θ) w and r_0/d = 1 − θ w."""
        theta = self.theta + delta
        S1 = self.slope(delta)
        S2 = self.S2 - delta * (2 * self.S3 - 3 * delta * self.S4)
        both = 1 + (1 - 2 * theta) * S1 - theta * (1 - theta) * S2
        first = 1 - 2 * theta * S1 + theta**2 * S2
        second = 1 + 2 * (1 - theta) * S1 + (1 - theta) ** 2 * S2
        return np.array([[first, both], [both, second]])


@dataclass(frozen=True)
class Answer:
    """θ and a bound on |ℓ'| there (zero at an end point that ℓ' points to), from ``moments``."""

    theta: float
    slope: float
    moments: Moments
    passes: int
    found: bool


def moments(likelihood: Likelihood, theta: float) -> Moments:
    """One pass over a batch with two known classes."""
    p0, p1 = (float(share) for share in likelihood.source[likelihood.known])
    # The ratio of one class and d gives w without cancellation away from that class's corner.
    column, own, weight = (1, p1, 1.0 - theta) if theta <= 0.5 else (0, p0, -theta)
    x = np.array([own * (1.0 - theta) / p0, own * theta / p1])
    total, log_total, size = np.zeros(4), 0.0, likelihood.size
    lowest, highest = np.inf, -np.inf
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for block, weights in likelihood.informative:
            density = block @ x
            v = block[:, column] / density
            v -= 1.0
            lowest, highest = min(lowest, v.min(initial=0.0)), max(highest, v.max(initial=0.0))
            logs = np.log(density, out=density)
            square = v * v
            if weights is None:
                log_total += float(logs.sum())
                total += (v.sum(), v @ v, square @ v, square @ square)
            else:
                log_total += float(weights @ logs)
                wv, wsquare = weights * v, weights * square
                total += (wv.sum(), wv @ v, wsquare @ v, wsquare @ square)
        total /= size * np.power(weight, [1, 2, 3, 4])
    gain = (log_total - likelihood.census.log_mass) / size - float(np.log(own))
    ends = sorted((float(lowest) / weight, float(highest) / weight))
    return Moments(theta, gain, *(float(value) for value in total), *ends)


def maximise(likelihood: Likelihood, theta: float, tolerance: float, max_passes: int) -> Answer:
    """The θ of the maximum from a start ``theta``: a bracket, Newton in it, exact end points."""
    lower, upper, tried, last = 0.0, 1.0, set[float](), float("inf")
    at = moments(likelihood, theta)
    for passes in range(1, max_passes + 1):
        if at.theta in (0.0, 1.0):
            tried.add(at.theta)
            inward = at.S1 if at.theta == 0 else -at.S1
            if inward <= tolerance:
                return Answer(at.theta, max(inward, 0.0), at, passes, True)
        if at.S2 < FLAT and abs(at.S1) <= tolerance:
            return Answer(at.theta, abs(at.S1), at, passes, True)
        lower, upper = (at.theta, upper) if at.S1 > 0 else (lower, at.theta)
        delta = at.zero()
        following = at.theta + delta
        bound = abs(at.slope(delta)) + at.error(delta)
        if bound <= tolerance and 0 <= following <= 1:
            edge = float(round(following))
            if abs(following - edge) > EDGE or edge in tried:
                return Answer(following, bound, at, passes, True)
            following = edge
        elif not lower < following < upper or abs(at.S1) > SLOW * last:
            following = _inside(lower, upper, tried)
        last = abs(at.S1)
        if following in (at.theta, *tried) or passes == max_passes:
            break
        at = moments(likelihood, following)
    return Answer(at.theta, abs(at.S1), at, passes, abs(at.S1) <= tolerance)


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
