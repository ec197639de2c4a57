"""The profile likelihood of one class's share, and where its deviance reaches a limit.

ℓ_k(u) = max {ℓ(p) : p_k = u}. Maximising under source priors with p0_k multiplied by a, and
undoing that afterwards, gives the maximiser for some u: the other classes share one multiplier s,
class k has m_k = a s. So every point of the profile is an ordinary maximum, with its certificate.
The slope there is dℓ_k/du = m_k − s; u falls and the deviance changes monotonically as ln a moves
away from its value at the top, so that the search is for ln a, in a bracket.
"""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Floats
from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.likelihood.likelihood import Likelihood

ENOUGH = 2e-3
"""Relative error of the deviance at an end point."""
STEPS = 60
FAR = 28.0
"""|ln a| beyond which no row resembles class k, or only such rows are left."""
HALVINGS = 100
NARROW = 1e-9
"""A bracket of ln a this narrow is one tilt with many maximisers."""


@dataclass(frozen=True)
class Place:
    """A point of the profile: p with p_k = u, its deviance 2N(ℓ̂ − ℓ_k(u)), and d deviance/du."""

    p: Floats
    u: float
    deviance: float
    slope: float


@dataclass(frozen=True)
class Profile:
    """The profile of class k of a likelihood whose maximum is ``top``, with gain ``gain``.

    ``direction``: dp/dp_k along the profile at the top, C values with 1 for class k; it only
    guides the search.
    """

    likelihood: Likelihood
    top: Floats
    gain: float
    k: int
    direction: Floats

    def upper(self, limit: float, guess: float) -> float:
        """The largest u with deviance at most ``limit``; ``guess``: a first idea."""
        alone = np.zeros(len(self.top))
        alone[self.k] = 1.0
        if self._deviance(alone) <= limit:
            return 1.0
        return self._search(limit, guess, -1.0)

    def lower(self, limit: float, guess: float) -> float:
        """The smallest u with deviance at most ``limit``."""
        if self.top[self.k] == 0 or self._deviance(self._without()) <= limit:
            return 0.0
        return self._search(limit, guess, 1.0)

    def _search(self, limit: float, guess: float, sign: float) -> float:
        """The end on one side: ln a = sign · x with x between 0 (the top) and ``FAR``."""
        u0 = float(self.top[self.k])
        inside, outside = Place(self.top, u0, 0.0, 0.0), None
        near, far = 0.0, FAR
        u, last = guess, inside
        for _ in range(STEPS):
            x = sign * self._tilt(last, u)
            if not near < x < far:
                x = 0.5 * (near + far) if outside is not None else min(2 * near + 0.1, far)
            last = self._at(sign * x, last)
            if abs(last.deviance - limit) <= ENOUGH * limit:
                return last.u
            if last.deviance > limit:
                outside, far = last, x
            else:
                inside, near = last, x
            if far - near <= NARROW * max(far, 1.0) or near >= FAR:
                break
            u = _newton(last, limit)
        return self._between(inside, outside, limit, sign * near)

    def _tilt(self, near: Place, u: float) -> float:
        """Ln a of the profile at u, guessed at the predicted p."""
        if not 0 < u < 1:
            return np.nan
        p = np.maximum(near.p + (u - near.u) * self.direction, 0.0)
        p[self.k] = 0.0
        rest = float(p.sum())
        if rest <= 0:
            return np.nan
        p *= (1.0 - u) / rest
        p[self.k] = u
        m = self.likelihood.multipliers(p)[self.k]
        s = (1.0 - u * m) / (1.0 - u)
        return float(np.log(m / s)) if 0 < m < np.inf and s > 0 else np.nan

    def _at(self, log_a: float, near: Place) -> Place:
        """The place of the profile with this tilt."""
        known = self.likelihood.known
        tilt = np.ones(len(self.top))
        tilt[self.k] = np.exp(log_a)
        source = self.likelihood.source
        tilted = self.likelihood.under(source * tilt)
        start = near.p * tilt
        # A trace of every class keeps each row possible at the start.
        start[known] += 1e-9 * source[known]
        maximum = mle(tilted, 5e-4 / self.likelihood.size, start=start / start.sum())
        p = maximum.prevalence / tilt
        p /= p.sum()
        u = float(p[self.k])
        m = self.likelihood.multipliers(p)[self.k]
        s = (1.0 - u * m) / (1.0 - u) if u < 1 else 0.0
        slope = -2 * self.likelihood.size * float(m - s)
        return Place(p, u, self._deviance(p), slope)

    def _deviance(self, p: Floats) -> float:
        deviance = 2 * self.likelihood.size * (self.gain - self.likelihood.gain(p))
        return max(deviance, 0.0) if deviance == deviance else np.inf

    def _without(self) -> Floats:
        """The best p with p_k = 0."""
        source = self.likelihood.source.copy()
        source[self.k] = 0.0
        return mle(self.likelihood.under(source)).prevalence

    def _between(self, inside: Place, outside: Place | None, limit: float, log_a: float) -> float:
        """Where one tilt has many maximisers; or past ``FAR``, where mass goes to what no row is.

        The maximisers of one tilt form a segment in the tilted shares.
        """
        if outside is None:
            lack = (limit - inside.deviance) / (2 * self.likelihood.size)
            factor = float(np.exp(-lack))
            return inside.u * factor if log_a > 0 else 1.0 - (1.0 - inside.u) * factor
        tilt = np.ones(len(self.top))
        tilt[self.k] = np.exp(log_a)
        first, second = (place.p * tilt for place in (inside, outside))
        first, second = first / first.sum(), second / second.sum()

        def at(step: float) -> Floats:
            p = ((1 - step) * first + step * second) / tilt
            shares: Floats = p / p.sum()
            return shares

        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            deviance = self._deviance(at(middle))
            if deviance > limit:
                high = middle
            else:
                low = middle
            if abs(deviance - limit) <= ENOUGH * limit:
                return float(at(middle)[self.k])
        return float(at(low)[self.k])


def _newton(place: Place, limit: float) -> float:
    """Where the root of the deviance reaches the root of the limit, on its tangent."""
    root = np.sqrt(place.deviance)
    if place.slope == 0 or not 0 < root < np.inf:
        return np.nan
    return float(place.u + 2 * root * (np.sqrt(limit) - root) / place.slope)
