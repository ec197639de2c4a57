"""The likelihood of the target priors, as passes over the batch.

With source posteriors g_ik and source priors p0_k, row i has density proportional to
d_i(p) = Σ_k p_k r_ik, r_ik = g_ik / p0_k, under target priors p (Saerens, Latinne and
Decaestecker 2002; thesis ch. 6). Scaled so that d_i(p0) = 1, ℓ(p) = mean_i ln d_i(p) is the gain
of p over p0. It is concave.

The ratios are never formed: inside a pass everything is in x = p / p0, d_i = Σ_k g_ik x_k, and a
row's scale cancels from all derivatives.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from app.core.arrays import AnyFloats, Codes, Floats, multiply_rows
from app.core.lazy import cached_property
from app.core.prevalence.calibration import Calibration
from app.core.prevalence.likelihood.blocks import Block, Blocks
from app.core.prevalence.likelihood.census import Census, Count
from app.core.prevalence.numerics.logs import log_sum

SHARED = ("census", "informative", "known")
"""What does not depend on the source priors themselves."""

CHEAP = 1 << 20
"""N C² up to which a Hessian pass is hardly dearer than a gradient pass."""

T = TypeVar("T")


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
        labels: Codes | None = None,
    ) -> "Likelihood":
        """Likelihood of N × C ``posteriors`` given under priors ``source``.

        ``posteriors``: one array, or an iterable of arrays that can be read again and again;
        ``weights``: N row weights, or arrays along the chunks; ``calibration`` is applied
        within each block; ``labels``: of the rows of an array, -1 where unknown. A row of class k
        has likelihood p_k f_k(x), so that it enters as one with all its mass on k. Raises
        ``TypeError`` for an iterator, which can be read only once.
        """
        known = source > 0
        columns: Codes | None = None if known.all() else np.flatnonzero(known)
        if calibration is not None and calibration.method == "none":
            calibration = None
        return cls(Blocks(posteriors, weights, columns, calibration, labels), source)

    @classmethod
    def of_outputs(
        cls, conditional: Floats, source: Floats, counts: Floats, labelled: Floats | None = None
    ) -> "Likelihood":
        """Likelihood of predicted outputs: output j has density M[j, k] under class k.

        ``conditional``: M, J × C; ``counts``: J row weights; ``labelled``: C counts of further
        rows whose class is known. Outputs that no class produces are unsupported.
        """
        joint = conditional * source
        total = joint.sum(axis=1, keepdims=True)
        posteriors = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
        if labelled is not None:
            posteriors = np.vstack([posteriors, np.eye(len(source))])
            counts = np.concatenate([counts, labelled])
        return cls.of(posteriors, source, counts)

    def under(self, source: Floats) -> "Likelihood":
        """The same rows under other source priors, in proportion to ``source``.

        ℓ is zero at these; what tilts priors need not rescale them.
        """
        source = source / source.sum()
        known = source > 0
        if not np.array_equal(known, self.source > 0):
            columns = None if known.all() else np.flatnonzero(known)
            return Likelihood(replace(self.blocks, columns=columns), source)
        other = Likelihood(self.blocks, source)
        vars(other).update({k: v for k, v in vars(self).items() if k in SHARED})
        return other

    def counted(self, census: Census) -> "Likelihood":
        """The same rows, of which somebody has taken the census."""
        other = Likelihood(self.blocks, self.source)
        vars(other)["census"] = census
        return other

    def strided(self, step: int) -> "Likelihood":
        """The likelihood of every ``step``-th row."""
        return Likelihood(self.blocks.strided(step), self.source)

    @property
    def rows(self) -> int:
        """Number of rows, informative or not."""
        return self.blocks.length if self.blocks.length is not None else self.census.rows

    @property
    def size(self) -> float:
        """Weight of the informative rows; N for an ordinary batch."""
        return self.census.size

    @property
    def unsupported(self) -> float:
        """Weight of the rows that all source classes exclude: they say nothing."""
        return self.census.unsupported

    @property
    def at_hand(self) -> bool:
        """Whether the rows can be read here, as often as it takes."""
        return True

    @property
    def curved(self) -> bool:
        """Whether a Hessian costs next to nothing where multipliers are asked for."""
        return self.blocks.few and self.rows * len(self.source) ** 2 <= CHEAP

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
        factors: Floats = np.exp(calibration.left_out[self.known])
        return factors

    @cached_property
    def ratio(self) -> Floats:
        """What makes r_ik, up to a factor per row, of an entry of a block; K values."""
        ratio: Floats = self.factors / self.source[self.known]
        return ratio

    @cached_property
    def census(self) -> Census:
        """Counts and weights, from one pass over the row sums."""
        count = Count(self.factors)
        for _ in count.watch(self.blocks):
            pass
        return count.finished(self.blocks)

    @cached_property
    def informative(self) -> Blocks:
        """The rows that count, as blocks of the known classes."""
        return self.blocks if self.census.tidy else self.blocks.tidied()

    def total(self, of: "Callable[[Likelihood], Floats]") -> Floats:
        """A sum over the rows, which ``of`` finds; a function that another process knows too."""
        return of(self)

    def summed(self, of: Callable[[Iterable[Block]], T]) -> T:
        """What ``of`` makes of the informative rows, all of which it must read.

        The census, if it is still to be taken, is taken on the way.
        """
        if "census" in vars(self):
            return of(self.informative)
        count = Count(self.factors)
        total = of(count.watch(self.blocks))
        vars(self)["census"] = count.finished(self.blocks)
        return total if self.census.tidy else of(self.informative)

    def multipliers(self, p: Floats) -> Floats:
        """m_k = mean_i r_ik / d_i, the gradient of ℓ at ``p``; C values.

        At the maximum m_k = 1 where p_k > 0 and m_k ≤ 1 elsewhere; elsewhere max_k m_k − 1 is an
        upper bound on what ℓ(p) lacks. Infinite where a row has no density.
        """
        x, total = self._inside(p), np.zeros(len(self.known))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for block, weights in self.informative:
                density = np.dot(block, x)
                share = np.divide(1.0 if weights is None else weights, density, out=density)
                total += np.dot(share, block)
            return self._outside(total)

    def hessian(self, p: Floats) -> tuple[Floats, Floats]:
        """H_kl = mean_i r_ik r_il / d_i² = −∂²ℓ/∂p_k∂p_l, C × C, and m = H p.

        At the source priors H is the Gram matrix of the ratios.
        """
        x, total = self._inside(p), np.zeros((len(self.known), len(self.known)))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for block, weights in self.informative:
                density = np.dot(block, x)
                root = 1.0 if weights is None else np.sqrt(weights)
                scaled = multiply_rows(block, np.divide(root, density, out=density))
                total += np.dot(scaled.T, scaled)
            hessian = self._outside_square(total)
            return hessian, hessian @ p

    def gain(self, p: Floats) -> float:
        """ℓ(p) = mean_i ln d_i(p); minus infinity where a row has no density."""
        x, total = self._inside(p), 0.0
        with np.errstate(divide="ignore"):
            for block, weights in self.informative:
                total += log_sum(np.dot(block, x), weights)
        return (total - self.census.log_mass) / (self.size or 1.0)

    def gains_along(self, p: Floats, target: Floats, steps: Sequence[float]) -> Floats:
        """ℓ(p + t (target − p)) − ℓ(p) for each step length t, from one pass.

        Computed as the mean of ln(1 + t (d_i(target) / d_i(p) − 1)), which keeps its digits
        when the difference is small. Every row must have a density at ``p``.
        """
        x, change = self._inside(p), self._inside(target - p)
        total = np.zeros(len(steps))
        with np.errstate(divide="ignore"):
            for block, weights in self.informative:
                slope = np.dot(block, change)
                slope /= np.dot(block, x)
                for i, t in enumerate(steps):
                    logs = np.log1p(np.maximum(t * slope, -1.0))
                    total[i] += logs.sum() if weights is None else np.dot(weights, logs)
        return total / (self.size or 1.0)

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
        within = total * (self.ratio / (self.size or 1.0))
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
