"""Power sums of one number per row: for two classes they are the likelihood around a θ.

With θ the share of the second class, d_i = r_i0 + θ (r_i1 − r_i0) and w_i = (r_i1 − r_i0) / d_i,
the derivative of ℓ is mean w. Moving by Δ turns w into w / (1 + Δ w), so that with S_k = mean w^k

    ℓ'(θ + Δ) = S_1 − Δ S_2 + Δ² S_3 − … − Δ⁵ S_6 + Δ⁶ mean w⁷ / (1 + Δ w),

and as w / (1 + Δ w) is the w at θ' = θ + Δ, which is between −1 / (1 − θ') and 1 / θ', the last
term is at most Δ⁶ S_6 max(1 / θ', 1 / (1 − θ')). One pass gives the next θ together with a proof
of how good it is.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from app.core.arrays import Floats
from app.core.prevalence.likelihood.blocks import Block
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.numerics.logs import log_sum

ORDER = 6
"""How many power sums a pass takes."""
TRIFLE = 1e-3
"""A share may be off by this part where that makes its gap small enough."""
POLISH = 20


@dataclass(frozen=True)
class Moments:
    """One pass at θ, the share of the second of two classes.

    ``theta``: θ.
    ``gain``: ℓ(θ), mean log-likelihood over that of the source priors.
    ``S``: the means S_1 … S_6 of the powers of w.
    """

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

    def proposal(self, tolerance: float) -> tuple[float, float]:
        """The Δ of the maximum, and a bound on the optimality gap there."""
        delta = self.zero()
        slope, error, curvature = self.slope(delta), self.error(delta), self.curvature(delta)
        theta, gap = self.theta + delta, abs(slope) + error
        end = min(theta, 1.0 - theta)
        if gap <= tolerance or not abs(slope) <= error <= TRIFLE * end * curvature:
            return delta, gap
        # A trifle further inside the slope points to the end for sure, and that counts little.
        delta += math.copysign(error / curvature, 0.5 - theta)
        theta, slope, error = self.theta + delta, self.slope(delta), self.error(delta)
        return delta, max((1.0 - theta) * (slope + error), theta * (error - slope))

    def hessian_at(self, delta: float) -> Floats:
        """H of the two classes at θ + Δ: r_1/d = 1 + (1 − θ) w and r_0/d = 1 − θ w."""
        theta, S1, S2 = self.theta + delta, self.slope(delta), self.curvature(delta)
        first = 1 - 2 * theta * S1 + theta**2 * S2
        both = 1 + (1 - 2 * theta) * S1 - theta * (1 - theta) * S2
        second = 1 + 2 * (1 - theta) * S1 + (1 - theta) ** 2 * S2
        # Means of products of densities: below zero is rounding.
        return np.maximum([[first, both], [both, second]], 0.0)


def moments(likelihood: Likelihood, theta: float) -> Moments:
    """One pass over a batch with two known classes; all zero where no row says anything."""
    totals = likelihood.total(powers_at(likelihood, theta))
    weight, size = (1.0 - theta if theta <= 0.5 else -theta), likelihood.size
    S = tuple(
        float(total) / (size or 1.0) / weight ** (k + 1) for k, total in enumerate(totals[1:])
    )
    whole = log_density(likelihood, theta, float(totals[0]), size)
    return Moments(theta, (whole - likelihood.census.log_mass) / (size or 1.0), S)


def log_density(likelihood: Likelihood, theta: float, total: float, size: float) -> float:
    """Σ ln d_i of the ``size`` rows, of the ``total`` that ``power_sums`` finds at θ."""
    return total + size * math.log(float(likelihood.ratio[_column(theta)]))


def powers_at(likelihood: Likelihood, theta: float) -> "partial[Floats]":
    """The pass at θ: what a function of the likelihood must sum over its rows."""
    column = _column(theta)
    x = likelihood.ratio * (1.0 - theta, theta) / float(likelihood.ratio[column])
    return partial(power_sums, x=x, column=column)


def _column(theta: float) -> int:
    """The ratio of this class and d gives w without cancellation away from its corner."""
    return 1 if theta <= 0.5 else 0


def power_sums(likelihood: Likelihood, x: Floats, column: int) -> Floats:
    """Weighted sums over the rows of ln d, v, v², …, v⁶, where v = g / d − 1."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return likelihood.summed(lambda blocks: np.array(_totals(blocks, x, column)))


def _totals(blocks: Iterable[Block], x: Floats, column: int) -> list[float]:
    totals, work = [0.0] * (1 + ORDER), np.empty((4, 0))
    for block, weights in blocks:
        if len(block) > work.shape[1]:
            work = np.empty((4, len(block)))
        density, v, square, cube = powers = work[:, : len(block)]
        np.dot(block, x, out=density)
        np.divide(block[:, column], density, out=v)
        v -= 1.0
        np.multiply(v, v, out=square)
        np.multiply(square, v, out=cube)
        weighted = powers[1:] if weights is None else powers[1:] * weights
        up_to_four, others = np.dot(weighted, v), np.dot(weighted[1:], cube)
        sums = log_sum(density, weights), weighted[0].sum(), *up_to_four, *others
        totals = [total + float(more) for total, more in zip(totals, sums, strict=True)]
    return totals
