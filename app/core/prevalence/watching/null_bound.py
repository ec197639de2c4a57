"""An upper bound of the log-likelihood of all rows so far over the set of the source, in sums.

With u_i(q) = d_i(q) / d_i(p0) − 1, linear in q − p0, and for every u > −1 and odd m

    ln (1 + u) ≤ u − u²/2 + u³/3 − … + u^m / m,

since the derivative of the difference, −u^m / (1 + u), has the sign of −u. Sums of powers add up
over batches, so that the bound is of the *running* likelihood at every q at once. Two classes
have one direction and keep five powers, exact to u⁶/6. With more, the first two are kept: in
ln (1 + u) ≤ u − (1 − 2ρ/3) u²/2 the row's largest u over the set is ρ ≥ 0.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from app.core.arrays import Floats, row_sums
from app.core.lazy import cached_property
from app.core.prevalence.watching.source_set import SourceSet

ORDER = 5
"""The highest power that is summed: odd, or the series would be no bound."""
FARTHEST = 1e6


class NullBound(Protocol):
    """Sums over rows, and the bound that follows from them."""

    @property
    def length(self) -> int:
        """How many sums there are."""

    def sums(self, u: Floats, weights: Floats) -> Floats:
        """Of n rows with n × q slopes u of their densities along the basis of the set."""

    def largest(self, sums: Floats) -> float:
        """The bound: at least Σ_i ln d_i(q)/d_i(p0) for every q of the set."""


def null_bound(sources: SourceSet) -> NullBound:
    """The bound for the source priors of ``sources``."""
    # Of three classes two may be twins, which leaves one direction but no interval.
    two = int(np.count_nonzero(sources.source)) == 2 and sources.degrees_of_freedom == 1
    return IntervalBound(sources) if two else EllipsoidBound(sources)


@dataclass(frozen=True, eq=False)
class IntervalBound:
    """Two classes: Σ_i u_i^k of k up to ``ORDER``, a polynomial on an interval."""

    sources: SourceSet

    @property
    def length(self) -> int:
        """One for each power."""
        return ORDER

    def sums(self, u: Floats, weights: Floats) -> Floats:
        """Σ_i w_i u_i^k, k from 1 to ``ORDER``."""
        sums = np.empty(ORDER)
        power = weights
        for k in range(ORDER):
            power = power * u[:, 0]
            sums[k] = power.sum()
        return sums

    def largest(self, sums: Floats) -> float:
        """The maximum of the polynomial: at an end, or where its derivative vanishes."""
        low, high = self._reach
        slopes = sums * (-1.0) ** np.arange(ORDER)
        roots = np.roots(slopes[::-1]) if np.any(slopes) else np.zeros(0)
        inner = roots.real[(roots.real > low) & (roots.real < high)]
        # A complex root's real part is one more point, and does no harm.
        at = np.concatenate([[low, high], inner])
        powers = at[:, None] ** np.arange(1, ORDER + 1)
        return float((powers @ (slopes / np.arange(1, ORDER + 1))).max())

    @cached_property
    def _reach(self) -> tuple[float, float]:
        """The interval along the basis, which has the entries ∓1/√2."""
        one = np.flatnonzero(self.sources.source > 0)[1]
        along = float(self.sources.basis[one, 0])
        ends = [(end - float(self.sources.source[one])) / along for end in self.sources.interval]
        return min(ends), max(ends)


@dataclass(frozen=True, eq=False)
class EllipsoidBound:
    """More classes: g = Σ u and W = Σ (1 − 2ρ/3) u uᵀ, on an ellipsoid xᵀA x ≤ c around the set.

    max gᵀx − ½ xᵀW x is at most ½ gᵀ(W + κA)⁻¹g + ½ κ c for every κ ≥ 0; the least of them is it.
    """

    sources: SourceSet

    @property
    def length(self) -> int:
        """One for each entry of g and of W: q + q²."""
        q = self.sources.degrees_of_freedom
        return q + q * q

    def sums(self, u: Floats, weights: Floats) -> Floats:
        """G and W, W flattened."""
        rho = np.sqrt(row_sums((u @ self._white) ** 2))
        bent = weights * np.maximum(1.0 - rho * (2 / 3), 0.0)
        return np.concatenate([weights @ u, ((u * bent[:, None]).T @ u).ravel()])

    def largest(self, sums: Floats) -> float:
        """By a search for ln κ, in the coordinates in which the ellipsoid is the unit ball."""
        q = self.sources.degrees_of_freedom
        if self.sources.exact or q == 0:
            return 0.0
        white = self._white
        values, vectors = np.linalg.eigh(white.T @ sums[q:].reshape(q, q) @ white)
        squares = (vectors.T @ (white.T @ sums[:q])) ** 2
        values = np.maximum(values, 0.0)

        def dual(log_kappa: float) -> float:
            kappa = float(np.exp(log_kappa))
            return float(0.5 * (squares / (values + kappa)).sum() + 0.5 * kappa)

        # With W = 0 the best κ is |g|; it is no larger with any other.
        top = np.log(max(float(np.sqrt(squares.sum())), 1e-12)) + 1.0
        minimum = minimize_scalar(dual, bounds=(top - 40.0, top), method="bounded")
        return min(float(minimum.fun), dual(top - 40.0))

    @cached_property
    def _white(self) -> Floats:
        """√c A^-½, q × q; zero where the set is one point."""
        q = self.sources.degrees_of_freedom
        if self.sources.exact:
            return np.zeros((q, q))
        basis = self.sources.basis
        A = self.sources.rows * basis.T @ self.sources.information @ basis
        values, vectors = np.linalg.eigh(A)
        return np.asarray(vectors * np.sqrt(_reach(self.sources) / values))


def _reach(sources: SourceSet) -> float:
    """C such that n (p − p0)ᵀH(p − p0) ≤ c on the set.

    With t_j = (M p)_j / v_j − 1, 2 KL = Σ_j 2 v_j (t_j − ln(1 + t_j)), no term negative, which
    bounds each t_j; and t − ln(1 + t) ≥ t² / (2 + 4t/3) for t ≥ 0, ≥ t²/2 below.
    """
    v = sources.shares[sources.shares > 0]
    bound = sources.limit / (2 * sources.rows * float(v.min()))
    if bound >= FARTHEST:
        farthest = float(2 * bound)
    else:
        farthest = float(brentq(lambda t: t - np.log1p(t) - bound, 0.0, 2 * bound + 4.0))
    return sources.limit * (1 + 2 * farthest / 3)
