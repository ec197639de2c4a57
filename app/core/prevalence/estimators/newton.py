"""Newton steps with an exact quadratic programme for the maximum of the likelihood.

On the simplex ℓ(p) and ℓ(p) − Σ_k p_k + 1 are the same, and the maximum of the latter over p ≥ 0
lies on the simplex, because scaling p by s adds ln s to ℓ. So a step is the minimiser of
½ yᵀH y − bᵀy over y ≥ 0 with b = H p + m − 1 (2m − 1 where H is that of p), scaled to sum to one
(mixsqp: Kim, Carbonetto, Stephens and Anitescu 2020). H only steers. One of a subsample or of an
earlier point does as well, and learns from each step by the formula of Broyden, Fletcher,
Goldfarb and Shanno; whether a point is good is up to its multipliers.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from app.core.arrays import Floats
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.numerics.nonnegative_qp import nonnegative_qp

HOPELESS = 100.0
"""A start with more than this gap is mixed with the source priors, a later point mended by EM."""
EM_STEPS = 5
"""Steps of EM at the start, at most, while the gap is above one."""
LENGTHS = (1.0, 0.97, 0.85, 0.6, 0.35, 0.15, 0.05, 1e-2, 1e-3, 1e-5)
"""Step lengths that a line search compares."""
REUSED = 0.1
"""The Hessian is kept while the gap falls to this share."""
PRICE, PRICE_OF_CLASS = 4.0, 1 / 12
"""How many gradient passes, and how many more per class, are cheaper than a Hessian pass."""
BENT = 1e-3
"""A step teaches nothing if it met less than this share of the curvature that was expected."""
ROUNDING = 1e-9
"""Below this gap a step that halves neither it nor the slack says that rounding allows no more."""
NOISE = 1e-12
"""Nothing is learnt from smaller steps."""


@dataclass
class Passes:
    """How often the batch was gone through; a line search counts as a gradient pass."""

    gradient: int = 0
    hessian: int = 0


@dataclass(frozen=True)
class Iterate:
    """A point of the climb.

    ``p``: priors, C, on the simplex.
    ``m``: their multipliers m_k = ∂ℓ/∂p_k, C.
    ``gap``: max_k m_k − 1 ≥ 0; zero at the maximum (Karush, Kuhn and Tucker).
    """

    p: Floats
    m: Floats
    gap: float

    @property
    def slack(self) -> float:
        """Σ_k p_k |m_k − 1|, what complementarity lacks.

        It falls where the gap cannot: a share far too large counts little in the gap until it is
        a little too small.
        """
        return float(self.p @ np.abs(self.m - 1.0))


@dataclass
class Climb:
    """A climb on one batch.

    ``hessian`` is that of ``at``, or handed down from a subsample (``at`` None); ``stale``: it
    has served its time; ``model``: what has been made of it since. ``frugal``: a slow step need
    not mean a new Hessian, if some more of them are cheaper; nothing to be handed down.
    """

    likelihood: Likelihood
    hessian: Floats | None = None
    frugal: bool = False
    at: Floats | None = field(default=None, init=False)
    stale: bool = field(default=False, init=False)
    passes: Passes = field(default_factory=Passes, init=False)

    def __post_init__(self) -> None:
        self.model = self.hessian

    def to_the_top(self, p: Floats, tolerance: float, max_iterations: int) -> tuple[Iterate, int]:
        """Iterate from ``p`` until the gap is at most ``tolerance``, or nothing helps any more.

        Gives the last point and the number of steps.
        """
        point = self._start(p)
        steps = 0
        while point.gap > tolerance and steps < max_iterations:
            steps += 1
            if self.hessian is None or self.stale:
                point = self.with_hessian(point.p)
            following = self._step(point)
            if following is None:
                break
            if point.gap < ROUNDING and not _nearer(point, following):
                return min(point, following, key=lambda at: at.gap), steps
            if HOPELESS < following.gap < np.inf:
                # A class was left with far too little, which Newton only doubles; EM restores it.
                following = self.evaluate(_expectation_maximisation(following))
            if self.at is not following.p:
                self.stale = self._needs_hessian(point.gap, following.gap, tolerance)
                self._learn(point, following)
            point = following
        return point, steps

    def polish(self, point: Iterate) -> Iterate:
        """One more step, where it is an improvement."""
        if self.hessian is None:
            point = self.with_hessian(point.p)
        further = self._step(point)
        return point if further is None or further.gap > point.gap else further

    def evaluate(self, p: Floats) -> Iterate:
        """The point at ``p``, with a new Hessian where that costs next to nothing."""
        if self.likelihood.curved:
            return self.with_hessian(p)
        self.passes.gradient += 1
        return _point(p, self.likelihood.multipliers(p))

    def with_hessian(self, p: Floats) -> Iterate:
        """The point at ``p``, from a Hessian pass."""
        self.passes.hessian += 1
        hessian, m = self.likelihood.hessian(p)
        point = _point(p, m)
        if point.gap < np.inf:
            self.hessian, self.at, self.stale = hessian, p, False
            self.model = hessian
        return point

    def _start(self, p: Floats) -> Iterate:
        """EM steps while the gap is above one, after a retreat from where a row has no density."""
        point = self.evaluate(p)
        if point.gap > HOPELESS:
            point = self.evaluate(0.5 * (p + self.likelihood.source))
        for _ in range(EM_STEPS):
            if point.gap <= 1.0:
                break
            point = self.evaluate(_expectation_maximisation(point))
        return point

    def _step(self, point: Iterate) -> Iterate | None:
        """One accepted step, or None where even EM does not move."""
        y = self._proposal(point)
        if y is not None:
            before = self.hessian, self.at, self.model
            there = self.evaluate(y)
            if _better(point, there):
                return there
            self.hessian, self.at, self.model = before
            self.passes.gradient += 1
            gains = self.likelihood.gains_along(point.p, y, LENGTHS)
            best = int(np.argmax(gains))
            if gains[best] > 0:
                return self.evaluate(point.p + LENGTHS[best] * (y - point.p)) if best else there
        following = _expectation_maximisation(point)
        return None if np.array_equal(following, point.p) else self.evaluate(following)

    def _proposal(self, point: Iterate) -> Floats | None:
        """Where Newton's step leads; None without a model, as where some row has no density."""
        model, p, m = self.model, point.p, point.m
        if model is None:
            return None
        y = nonnegative_qp(model, model @ p + m - 1.0, p, (p > 0) | (m > 1))
        total = 0.0 if y is None else float(y.sum())
        return None if y is None or not 0 < total < np.inf else y / total

    def _needs_hessian(self, before: float, after: float, tolerance: float) -> bool:
        """Whether the gap falls too slowly for going on with the Hessian in hand."""
        if after <= REUSED * before:
            return False
        if not self.frugal or after >= before:
            return True
        steps = math.log(after / max(tolerance, NOISE)) / math.log(before / after)
        return steps > PRICE + PRICE_OF_CLASS * len(self.likelihood.source)

    def _learn(self, here: Iterate, there: Iterate) -> None:
        """Make the model right about the change of the multipliers along the last step."""
        if not self.frugal or self.model is None or not there.gap < np.inf:
            return
        step, change = there.p - here.p, here.m - there.m
        expected = self.model @ step
        predicted, actual = float(step @ expected), float(step @ change)
        if predicted > NOISE**2 and actual > BENT * predicted:
            self.model = (
                self.model
                + np.outer(change, change) / actual
                - np.outer(expected, expected) / predicted
            )


def _nearer(here: Iterate, there: Iterate) -> bool:
    """Whether a step still brought something."""
    if there.gap <= 0.5 * here.gap:
        return True
    return there.gap < np.inf and there.slack <= 0.5 * here.slack


def _better(here: Iterate, there: Iterate) -> bool:
    """Whether a step is good without asking for a logarithm."""
    if there.gap <= 0.5 * here.gap:
        return True
    # Concavity: ℓ(y) − ℓ(p) ≥ m(y)·(y − p).
    return there.gap < np.inf and float(there.m @ (there.p - here.p)) >= 0


def _expectation_maximisation(point: Iterate) -> Floats:
    p = point.p * point.m
    following: Floats = p / p.sum()
    return following


def _point(p: Floats, m: Floats) -> Iterate:
    gap = float(m.max()) - 1.0
    return Iterate(p, m, max(gap, 0.0) if gap == gap else np.inf)
