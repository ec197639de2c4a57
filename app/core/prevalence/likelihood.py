"""The likelihood of the target priors, as passes over the batch.

With source posteriors g_ik and source priors p0_k, row i has density proportional to
d_i(p) = Σ_k p_k r_ik, r_ik = g_ik / p0_k, under target priors p (Saerens, Latinne and
Decaestecker 2002; thesis ch. 6). Scaled so that d_i(p0) = 1, ℓ(p) = mean_i ln d_i(p) is the gain
of p over p0. It is concave.

The ratios are never formed: inside a pass everything is in x = p / p0, d_i = Σ_k g_ik x_k, and a
row's scale cancels from all derivatives.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from app.core.prevalence.arrays import Codes, Floats
from app.core.prevalence.blocks import AnyFloats, Blocks
from app.core.prevalence.calibration import Calibration

SAFE_MASS = 1e-100
"""Rows with less mass than this on the known classes are rescaled before 1/d is taken."""
SHARED = ("census", "informative", "known")
"""What does not depend on the source priors themselves."""
FIRST_ORDER = 1e-8
"""ln(1 + δ) is δ to double precision up to this |δ|."""


@dataclass(frozen=True)
class Census:
    """What one look at the row sums tells.

    ``rows``: their number; ``size``: weight of the informative rows; ``unsupported``: weight
    of the others; ``log_mass``: weighted sum of ln Σ_k g_ik, which makes ℓ(p0) zero; ``tidy``:
    no row has to be left out or rescaled.
    """

    rows: int
    size: float
    unsupported: float
    log_mass: float
    tidy: bool


@dataclass(frozen=True, eq=False)
class Likelihood:
    """A batch under source priors ``source`` (C values), ready to be passed over.

    Classes of zero source prior are excluded: their multipliers and Hessian entries are zero.
    Rows without mass on the other classes, and rows of weight zero, are left out.
    """

    blocks: Blocks
    source: Floats

    @classmethod
    def of(
        cls,
        posteriors: AnyFloats | Iterable[AnyFloats],
        source: Floats,
        weights: AnyFloats | Iterable[AnyFloats] | None = None,
        calibration: Calibration | None = None,
    ) -> "Likelihood":
        """Likelihood of N × C ``posteriors`` given under priors ``source``.

        ``posteriors``: one array, or an iterable of arrays that can be read again and again;
        ``weights``: N row weights, or arrays along the chunks; ``calibration`` is applied
        within each block. Raises ``TypeError`` for an iterator, which can be read only once.
        """
        known = source > 0
        columns: Codes | None = None if known.all() else np.flatnonzero(known)
        if calibration is not None and calibration.method == "none":
            calibration = None
        return cls(Blocks(posteriors, weights, columns, calibration), source)

    @classmethod
    def of_outputs(cls, conditional: Floats, source: Floats, counts: Floats) -> "Likelihood":
        """Likelihood of predicted outputs: output j has density M[j, k] under class k.

        ``conditional``: M, J × C; ``counts``: J row weights. Outputs that no class produces
        are unsupported.
        """
        joint = conditional * source
        total = joint.sum(axis=1, keepdims=True)
        posteriors = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
        return cls.of(posteriors, source, counts)

    def under(self, source: Floats) -> "Likelihood":
        """The same rows under other source priors; for positive ones ℓ keeps its zero."""
        known = source > 0
        if not np.array_equal(known, self.source > 0):
            columns = None if known.all() else np.flatnonzero(known)
            return Likelihood(replace(self.blocks, columns=columns), source)
        other = Likelihood(self.blocks, source)
        vars(other).update({k: v for k, v in vars(self).items() if k in SHARED})
        return other

    def strided(self, step: int) -> "Likelihood":
        """The likelihood of every ``step``-th row."""
        return Likelihood(self.blocks.strided(step), self.source)

    @property
    def size(self) -> float:
        """Weight of the informative rows; N for an ordinary batch."""
        return self.census.size

    @property
    def unsupported(self) -> float:
        """Weight of the rows that all source classes exclude: they say nothing."""
        return self.census.unsupported

    @cached_property
    def known(self) -> Codes:
        """Positions of the classes of positive source prior."""
        return np.flatnonzero(self.source > 0)

    @cached_property
    def factors(self) -> Floats:
        """e^bias of the calibration, which the blocks lack; K values."""
        calibration = self.blocks.calibration
        if calibration is None:
            return np.ones(len(self.known))
        factors: Floats = np.exp(calibration.bias[self.known])
        return factors

    @cached_property
    def ratio(self) -> Floats:
        """What makes r_ik, up to a factor per row, of an entry of a block; K values."""
        ratio: Floats = self.factors / self.source[self.known]
        return ratio

    @cached_property
    def census(self) -> Census:
        """Counts and weights, from one pass over the row sums."""
        rows, total, size, log_mass, tidy = 0, 0.0, 0.0, 0.0, True
        for block, weights in self.blocks:
            mass = block @ self.factors
            rows += len(mass)
            total += _weight(mass, weights)
            if mass.min(initial=1.0) < SAFE_MASS or (weights is not None and not weights.all()):
                tidy = False
                useful = mass > 0 if weights is None else (mass > 0) & (weights > 0)
                mass = mass[useful]
                weights = None if weights is None else weights[useful]
            size += _weight(mass, weights)
            log_mass += _log_sum(mass, weights)
        if not tidy:
            tidied = self.blocks.tidied()
            log_mass = sum(_log_sum(block @ self.factors, weights) for block, weights in tidied)
        return Census(rows, size, total - size, log_mass, tidy)

    @cached_property
    def informative(self) -> Blocks:
        """The rows that count, as blocks of the known classes."""
        return self.blocks if self.census.tidy else self.blocks.tidied()

    def multipliers(self, p: Floats) -> Floats:
        """m_k = mean_i r_ik / d_i, the gradient of ℓ at ``p``; C values.

        At the maximum m_k = 1 where p_k > 0 and m_k ≤ 1 elsewhere; elsewhere max_k m_k − 1 is an
        upper bound on what ℓ(p) lacks. Infinite where a row has no density.
        """
        x, total = self._inside(p), np.zeros(len(self.known))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for block, weights in self.informative:
                density = block @ x
                share = np.divide(1.0 if weights is None else weights, density, out=density)
                total += share @ block
        return self._outside(total)

    def hessian(self, p: Floats) -> tuple[Floats, Floats]:
        """H_kl = mean_i r_ik r_il / d_i² = −∂²ℓ/∂p_k∂p_l, C × C, and m = H p.

        At the source priors H is the Gram matrix of the ratios.
        """
        x, total = self._inside(p), np.zeros((len(self.known), len(self.known)))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for block, weights in self.informative:
                density = block @ x
                root = 1.0 if weights is None else np.sqrt(weights)
                scaled = block * np.divide(root, density, out=density)[:, None]
                total += scaled.T @ scaled
            hessian = self._outside_square(total)
            return hessian, hessian @ p

    def gain(self, p: Floats) -> float:
        """ℓ(p) = mean_i ln d_i(p); minus infinity where a row has no density."""
        x, total = self._inside(p), 0.0
        with np.errstate(divide="ignore"):
            for block, weights in self.informative:
                density = block @ x
                logs = np.log(density, out=density)
                total += float(logs.sum() if weights is None else weights @ logs)
        return (total - self.census.log_mass) / self.size

    def gains_along(self, p: Floats, target: Floats, steps: Sequence[float]) -> Floats:
        """ℓ(p + t (target − p)) − ℓ(p) for each step length t, from one pass.

        Computed as the mean of ln(1 + t (d_i(target) / d_i(p) − 1)), which keeps its digits
        when the difference is small. Every row must have a density at ``p``.
        """
        x, change = self._inside(p), self._inside(target - p)
        total = np.zeros(len(steps))
        with np.errstate(divide="ignore"):
            for block, weights in self.informative:
                slope = block @ change
                slope /= block @ x
                for i, t in enumerate(steps):
                    logs = np.log1p(np.maximum(t * slope, -1.0))
                    total[i] += logs.sum() if weights is None else weights @ logs
        return total / self.size

    @cached_property
    def _products(self) -> Floats:
        """K × K factors that make the mean of r_ik r_il of a sum over block entries."""
        products: Floats = np.outer(self.ratio, self.ratio) / (self.size or 1.0)
        return products

    def _inside(self, p: Floats) -> Floats:
        """From priors of all classes to x = p / p0 of the known ones."""
        ratio = self.ratio
        return ratio * (p if len(ratio) == len(p) else p[self.known])

    def _outside(self, total: Floats) -> Floats:
        """From a sum over rows in x, known classes, to a mean in p, all classes."""
        within = total * (self.ratio / self.size)
        if len(within) == len(self.source):
            return within
        m = np.zeros(len(self.source))
        m[self.known] = within
        return m

    def _outside_square(self, total: Floats) -> Floats:
        """The same for a sum of K × K products."""
        within: Floats = total * self._products
        if len(within) == len(self.source):
            return within
        hessian = np.zeros((len(self.source), len(self.source)))
        hessian[np.ix_(self.known, self.known)] = within
        return hessian


def _weight(mass: Floats, weights: Floats | None) -> float:
    return float(len(mass)) if weights is None else float(weights.sum())


def _log_sum(mass: Floats, weights: Floats | None) -> float:
    """Weighted sum of ln mass; normalised rows do not need the logarithm."""
    if len(mass) == 0:
        return 0.0
    if max(float(mass.max()) - 1.0, 1.0 - float(mass.min())) > FIRST_ORDER:
        logs = np.log(mass)
        return float(logs.sum() if weights is None else weights @ logs)
    return float(mass.sum() - len(mass) if weights is None else weights @ (mass - 1.0))
