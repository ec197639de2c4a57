"""The maximum for two classes, from power sums of one number per row.

With θ the share of the second class, d_i = r_i0 + θ (r_i1 − r_i0) and w_i = (r_i1 − r_i0) / d_i,
the derivative of ℓ is mean w. Moving by Δ turns w into w / (1 + Δ w), so that with S_k = mean w^k

    ℓ'(θ + Δ) = S_1 − Δ S_2 + Δ² S_3 − … − Δ⁵ S_6 + Δ⁶ mean w⁷ / (1 + Δ w),

and as w / (1 + Δ w) is the w at θ' = θ + Δ, which is between −1 / (1 − θ') and 1 / θ', the last
term is at most Δ⁶ S_6 max(1 / θ', 1 / (1 − θ')). One pass gives the next θ together with a proof
of how good it is.
"""

import math
from dataclasses import dataclass

import numpy as np

from app.core.prevalence.arrays import Floats
from app.core.prevalence.likelihood import Likelihood

ORDER = 6
"""How many power sums a pass takes."""
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
    """One pass at θ: ℓ(θ), and the means S_1 … S_6 of the powers of w."""

    theta: float
    gain: float
    S: tuple[float, ...]

    def slope(self, delta: float) -> float:
        """ℓ'(θ + Δ), up to ``error``."""
        total = 0.0
        for S in reversed(self.S):
            total = S - delta * total
        return total

    def curvature(self, delta: float) -> float:
        """−ℓ''(θ + Δ) = mean (w / (1 + Δ w))², to one order less."""
        total = 0.0
        for k in range(ORDER - 1, 0, -1):
            total = k * self.S[k] - delta * total
        return total

    def gain_at(self, delta: float) -> float:
        """ℓ(θ + Δ), with an error of at most |Δ| times ``error``."""
        total = 0.0
        for k in range(ORDER, 0, -1):
            total = self.S[k - 1] / k - delta * total
        return self.gain + delta * total if delta else self.gain

    def error(self, delta: float) -> float:
        """Bound on what ``slope`` leaves out."""
        nearest_end = min(self.theta + delta, 1.0 - self.theta - delta)
        if delta == 0:
            return 0.0
        return delta**ORDER * self.S[-1] / nearest_end if nearest_end > 0 else math.inf

    def zero(self) -> float:
        """The Δ where the slope vanishes: Newton's step, polished on the polynomial."""
        if not 0 < self.S[1] < math.inf:
            return 0.0
        newton = delta = self.S[0] / self.S[1]
        for _ in range(POLISH):
            curvature = self.curvature(delta)
            if not 0.2 * self.S[1] < curvature < 5 * self.S[1]:
                return newton
            change = self.slope(delta) / curvature
            delta += change
            if abs(change) <= 1e-15 * abs(delta):
                break
        return delta

    def hessian_at(self, delta: float) -> Floats:
        """H of the two classes at θ + Δ: r_1/d = 1 + (1 − θ) w and r_0/d = 1 − θ w."""
        theta, S1, S2 = self.theta + delta, self.slope(delta), self.curvature(delta)
        first = 1 - 2 * theta * S1 + theta**2 * S2
        both = 1 + (1 - 2 * theta) * S1 - theta * (1 - theta) * S2
        second = 1 + 2 * (1 - theta) * S1 + (1 - theta) ** 2 * S2
        return np.array([[first, both], [both, second]])


@dataclass(frozen=True)
class Answer:
    """θ, a bound on the optimality gap there, and the ``moments`` it came from."""

    theta: float
    gap: float
    moments: Moments
    passes: int


def moments(likelihood: Likelihood, theta: float) -> Moments:
    """One pass over a batch with two known classes."""
    ratio = likelihood.ratio
    # The ratio of one class and d gives w without cancellation away from that class's corner.
    column, weight = (1, 1.0 - theta) if theta <= 0.5 else (0, -theta)
    own = float(ratio[column])
    x = ratio * (1.0 - theta, theta) / own
    totals, log_total = [0.0] * ORDER, 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for block, weights in likelihood.informative:
            density = block @ x
            v = block[:, column] / density
            v -= 1.0
            logs = np.log(density, out=density)
            log_total += float(logs.sum() if weights is None else weights @ logs)
            sums = _power_sums(v, weights)
            totals = [total + more for total, more in zip(totals, sums, strict=True)]
    size = likelihood.size
    S = tuple(total / size / weight ** (k + 1) for k, total in enumerate(totals))
    gain = (log_total - likelihood.census.log_mass) / size + math.log(own)
    return Moments(theta, gain, S)


def _power_sums(v: Floats, weights: Floats | None) -> list[float]:
    """Σ v, Σ v², …, Σ v⁶, weighted."""
    square = v * v
    powers = v, square, square * v
    heavy = powers if weights is None else tuple(weights * power for power in powers)
    pairs = (0, 0), (0, 1), (1, 1), (1, 2), (2, 2)
    return [float(heavy[0].sum()), *(float(heavy[i] @ powers[j]) for i, j in pairs)]


def maximise(likelihood: Likelihood, theta: float, tolerance: float, max_passes: int) -> Answer:
    """The θ of the maximum from a start ``theta``: a bracket, Newton in it, exact end points.

    The gap max((1 − θ) ℓ', −θ ℓ') is at most |ℓ'| inside and ℓ' into the simplex at its ends.
    """
    lower, upper, tried, last = 0.0, 1.0, set[float](), 0.0
    best = at = moments(likelihood, theta)
    for passes in range(1, max_passes + 1):
        slope = at.S[0]
        best = min(best, at, key=lambda seen: abs(seen.S[0]))
        if at.theta in (0.0, 1.0):
            tried.add(at.theta)
            inward = slope if at.theta == 0 else -slope
            if inward <= tolerance:
                return Answer(at.theta, max(inward, 0.0), at, passes)
        if at.S[1] < FLAT and abs(slope) <= tolerance:
            return Answer(at.theta, abs(slope), at, passes)
        lower, upper = (at.theta, upper) if slope > 0 else (lower, at.theta)
        delta = at.zero()
        following = at.theta + delta
        gap = abs(at.slope(delta)) + at.error(delta)
        if gap <= tolerance and 0 <= following <= 1:
            edge = float(round(following))
            if abs(following - edge) > EDGE or edge in tried:
                return Answer(following, gap, at, passes)
            following = edge
        elif not lower < following < upper or _creeps(slope, last):
            following = _inside(lower, upper, tried)
        last = slope
        if following in (at.theta, *tried) or passes == max_passes:
            break
        at = moments(likelihood, following)
    return Answer(best.theta, abs(best.S[0]), best, passes)


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
