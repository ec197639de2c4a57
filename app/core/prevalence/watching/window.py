"""Does any source prior that the validation set leaves possible explain a window?

The null is composite: p ∈ S, the confidence set of the source (``source_set``). The statistic is
min over S of 2N (ℓ(p̂) − ℓ(p)). Where S holds p*, it is at most that at p*, so that, given the
source, a window without a shift is rejected with probability at most the chi-square tail: windows
are independent once the source is fixed, and their false alarms add up as the budget says. S fails
for a share ``source_level`` of all sources, once for the whole monitor and not once per window; no
part of the windows' level is spent on it.

With 2n KL(v ‖ M p) ≤ c for S, the minimiser is the maximum of N ℓ(p) + κ n Σ_j v_j ln (M p)_j for
some κ ≥ 0: an ordinary maximum with J further rows. For every κ the Lagrangian is a lower bound of
the statistic, which is what is reported. For two classes S is an interval and ℓ concave: the
minimiser is p̂, or the end that is nearer.
"""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Floats, row_sums
from app.core.prevalence.estimators.mle import MleResult, mle
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.numerics.chi_square import upper_tail
from app.core.prevalence.watching.source_set import SourceSet

ENOUGH = 2e-3
"""Absolute error of the statistic."""
STEPS = 40


@dataclass(frozen=True)
class WindowTest:
    """Result of the test of one window.

    ``statistic``: the minimum over the set of the source, ≥ 0.
    ``point_statistic``: at the source priors themselves, ≥ ``statistic``.
    ``degrees_of_freedom``: of the chi-square reference.
    ``p_value``: the smallest ``window_level`` at which the window would be rejected.
    ``window_level``: false alarms that this window may spend.
    ``source_level``: of the set, spent once for all windows.
    ``minimum_effect``: as asked for.
    ``effect_size``: total variation between source priors and estimate, in [0, 1].
    ``detected``: p_value < level and effect_size ≥ minimum_effect.
    ``nearest``: the source priors of the set that explain the window best, C.
    """

    statistic: float
    point_statistic: float
    degrees_of_freedom: int
    p_value: float
    window_level: float
    source_level: float
    minimum_effect: float
    effect_size: float
    detected: bool
    nearest: Floats

    @property
    def level(self) -> float:
        """The level of this window."""
        return self.window_level


def window_test(
    likelihood: Likelihood,
    maximum: MleResult,
    sources: SourceSet,
    level: float,
    minimum_effect: float = 0.0,
) -> WindowTest:
    """Test a window, of rows or of a sketch, whose maximum is known, at ``level``.

    ``likelihood`` and ``sources`` are of the same version and the same kind of batch.
    """
    nearest, statistic = _explain(likelihood, maximum, sources)
    effect = 0.5 * float(np.abs(maximum.prevalence - sources.source).sum())
    p_value = upper_tail(statistic, sources.degrees_of_freedom)
    return WindowTest(
        statistic=statistic,
        point_statistic=2 * likelihood.size * maximum.gain,
        degrees_of_freedom=sources.degrees_of_freedom,
        p_value=p_value,
        window_level=level,
        source_level=0.0 if sources.exact else sources.source_level,
        minimum_effect=minimum_effect,
        effect_size=effect,
        detected=p_value < level and effect >= minimum_effect,
        nearest=nearest,
    )


def _explain(
    likelihood: Likelihood, maximum: MleResult, sources: SourceSet
) -> tuple[Floats, float]:
    """The nearest source priors of the set, and the statistic there."""
    p, N = maximum.prevalence, likelihood.size
    if N == 0 or sources.exact:
        return sources.source, 2 * N * maximum.gain
    if len(likelihood.known) == 2:
        zero, one = likelihood.known
        theta = float(np.clip(p[one], *sources.interval))
        nearest = np.zeros(len(p))
        nearest[zero], nearest[one] = 1.0 - theta, theta
        if theta == p[one]:
            return p, 0.0
        return nearest, max(2 * N * (maximum.gain - likelihood.gain(nearest)), 0.0)
    if sources.distance(p) <= sources.limit:
        return p, 0.0
    return _search(likelihood, maximum, sources)


def _search(likelihood: Likelihood, maximum: MleResult, sources: SourceSet) -> tuple[Floats, float]:
    """By the search for κ: 1/√distance is nearly linear in it, by the quadratic approximation."""
    N, limit, aim = likelihood.size, sources.limit, sources.limit**-0.5
    pool = _Pool.of(likelihood, sources)
    low, low_root, high = 0.0, _root(sources.distance(maximum.prevalence)), np.inf
    change = maximum.prevalence - sources.source
    quadratic = sources.rows * float(change @ sources.information @ change)
    kappa = N / sources.rows * max(np.sqrt(quadratic / limit) - 1.0, 0.1)
    p, best, at = sources.source, -np.inf, sources.source
    for _ in range(STEPS):
        p = pool.maximum(kappa, p)
        distance = sources.distance(p)
        slack = kappa * (distance - limit)
        bound = 2 * N * (maximum.gain - likelihood.gain(p)) + slack
        if bound >= best:
            best, at = bound, p
        if abs(slack) <= ENOUGH:
            break
        root = _root(distance)
        if root > aim:
            high = kappa
        else:
            low = kappa
        slope = (root - low_root) / kappa if root > low_root else np.nan
        proposal = kappa + (aim - root) / slope
        if not low < proposal < high:
            proposal = 0.5 * (low + high) if np.isfinite(high) else 4 * kappa
        kappa = proposal
    return sources.inside(at), max(float(best), 0.0)


def _root(distance: float) -> float:
    return float(distance**-0.5) if distance > 0 else np.inf


@dataclass(frozen=True, eq=False)
class _Pool:
    """The rows of a window, and those that stand for the validation set, n v of them."""

    rows: Floats
    weights: Floats
    added: Floats
    source: Floats

    @classmethod
    def of(cls, likelihood: Likelihood, sources: SourceSet) -> "_Pool":
        known, source = likelihood.known, likelihood.source
        parts, weights = [], []
        for block, block_weights in likelihood.informative:
            part = block * (likelihood.factors / likelihood.factors.max())
            parts.append(part / row_sums(part)[:, None])
            weights.append(np.ones(len(block)) if block_weights is None else block_weights)
        joint = (sources.conditional * sources.source)[sources.shares > 0][:, known]
        added = sources.rows * sources.shares[sources.shares > 0]
        posteriors = joint / joint.sum(axis=1, keepdims=True)
        rows = np.zeros((sum(map(len, parts)) + len(joint), len(source)))
        rows[:, known] = np.concatenate([*parts, posteriors])
        return cls(rows, np.concatenate(weights), added, source)

    def maximum(self, kappa: float, start: Floats) -> Floats:
        """The maximiser with the added rows weighted by κ."""
        weights = np.concatenate([self.weights, kappa * self.added])
        return mle(Likelihood.of(self.rows, self.source, weights), start=start).prevalence
