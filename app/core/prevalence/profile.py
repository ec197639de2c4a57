"""The profile likelihood of one class's share, and where its deviance reaches a limit.

ℓ_k(u) = max {ℓ(p) : p_k = u}. Maximising under source priors with p0_k multiplied by a, and
undoing that afterwards, gives the maximiser for some u: the other classes share one multiplier s,
class k has m_k = a s. So every point of the profile is an ordinary maximum, with its certificate,
and the slope there is dℓ_k/du = m_k − s.
"""

from dataclasses import dataclass

import numpy as np

from app.core.prevalence.arrays import Floats
from app.core.prevalence.likelihood import Likelihood
from app.core.prevalence.mle import mle

ENOUGH = 2e-3
"""Relative error of the deviance at an end point."""
STEPS = 40
UNLIKE = 1e-9
"""A multiplier this small, relative to the others, is that of a class which no row may be."""


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

    ``direction``: dp/dp_k along the profile at the top, C values with 1 for class k.
    """

    likelihood: Likelihood
    top: Floats
    gain: float
    k: int
    direction: Floats

    def upper(self, limit: float, guess: float) -> float:
        """The largest u with deviance at most ``limit``; ``guess``: a first idea."""
        u0 = float(self.top[self.k])
        if self._end(1.0).deviance <= limit:
            return 1.0
        return self._solve(limit, guess, u0, 1.0)

    def lower(self, limit: float, guess: float) -> float:
        """The smallest u with deviance at most ``limit``."""
        u0 = float(self.top[self.k])
        if u0 == 0 or self._end(0.0).deviance <= limit:
            return 0.0
        return self._solve(limit, guess, 0.0, u0)

    def _solve(self, limit: float, guess: float, low: float, high: float) -> float:
        """Newton's method on the root of the deviance, inside a shrinking bracket."""
        u0 = float(self.top[self.k])
        rising = high > u0
        u, p, origin = guess, self.top, u0
        for _ in range(STEPS):
            if not low < u < high:
                u = 0.5 * (low + high)
            place = self.at(u, np.maximum(p + (u - origin) * self.direction, 0.0))
            u, p, origin = place.u, place.p, place.u
            if abs(place.deviance - limit) <= ENOUGH * limit or high - low <= 1e-12:
                break
            if (place.deviance > limit) == rising:
                high = min(high, u)
            else:
                low = max(low, u)
            root = np.sqrt(max(place.deviance, 0.0))
            if root == 0 or place.slope == 0:
                u = 0.5 * (low + high)
            else:
                u += 2 * root * (np.sqrt(limit) - root) / place.slope
        return min(max(u, 0.0), 1.0)

    def at(self, u: float, near: Floats) -> Place:
        """A place at or close to u, starting from ``near``; exactly at u for two classes."""
        p = near.copy()
        p[self.k] = 0.0
        rest = p.sum()
        if rest <= 0:
            p = np.where(np.arange(len(p)) == self.k, 0.0, self.likelihood.source)
            rest = p.sum()
        p *= (1.0 - u) / rest
        p[self.k] = u
        m = self.likelihood.multipliers(p)
        if len(self.likelihood.known) > 2:
            p = self._maximised(p, m, u)
            m = self.likelihood.multipliers(p)
        return self._place(p, m)

    def _maximised(self, p: Floats, m: Floats, u: float) -> Floats:
        s = (1.0 - u * m[self.k]) / (1.0 - u)
        if s <= UNLIKE * m[self.k]:
            return p
        a = m[self.k] / s
        if a < UNLIKE:
            return self._without(u)
        tilt = np.ones(len(p))
        tilt[self.k] = min(max(a, 1e-12), 1e12)
        tilted = self.likelihood.under(self.likelihood.source * tilt)
        start = p * tilt
        found = mle(tilted, self._tolerance, start=start / start.sum()).prevalence / tilt
        moved: Floats = found / found.sum()
        return moved

    @property
    def _tolerance(self) -> float:
        """A gap that leaves the deviance right to 1e-3, far less than ``ENOUGH`` asks."""
        return 5e-4 / self.likelihood.size

    def _without(self, u: float) -> Floats:
        """No row resembles class k: the others as without it, scaled."""
        source = self.likelihood.source.copy()
        source[self.k] = 0.0
        p = mle(self.likelihood.under(source)).prevalence * (1.0 - u)
        p[self.k] = u
        return p

    def _place(self, p: Floats, m: Floats) -> Place:
        u = float(p[self.k])
        s = (1.0 - u * m[self.k]) / (1.0 - u) if u < 1 else 0.0
        N = self.likelihood.size
        deviance = 2 * N * (self.gain - self.likelihood.gain(p))
        return Place(p, u, max(deviance, 0.0), -2 * N * float(m[self.k] - s))

    def _end(self, u: float) -> Place:
        """The end of the profile: class k alone, or without class k."""
        if u == 1:
            p = np.zeros(len(self.top))
            p[self.k] = 1.0
        elif len(self.likelihood.known) == 2:
            p = np.zeros(len(self.top))
            p[self.likelihood.known] = 1.0
            p[self.k] = 0.0
        else:
            p = self._without(0.0)
        deviance = 2 * self.likelihood.size * (self.gain - self.likelihood.gain(p))
        return Place(p, u, max(deviance, 0.0), 0.0)
