"""Sampling covariance of the maximum-likelihood priors.

With H the Hessian of ℓ at p (in p, on the classes that are free) the batch contributes
(H⁻¹ − p pᵀ) / N for the population's shares, and (H⁻¹ − diag p) / N for the realised shares of
these very rows. The source contributes G Σ Gᵀ, where Σ is the covariance of its parameters and
G their effect on p: with Q = mean_i q_i q_iᵀ, q the adjusted posteriors and D = diag p,
D Q⁻¹ = H⁻¹ D⁻¹, so that dp = (H⁻¹ − D) dβ + H⁻¹ D⁻¹ mean_i q_i (z_i − q_iᵀz_i) dt.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from app.core.prevalence.arrays import Floats, Mask
from app.core.prevalence.calibration import Calibration
from app.core.prevalence.confusion import ConfusionMatrix
from app.core.prevalence.likelihood import Likelihood

Of = Literal["population", "batch"]
TINY = 1e-300


@dataclass(frozen=True)
class SourceError:
    """Uncertainty of posteriors: ``covariance`` of (t, β), and the calibration they come from."""

    covariance: Floats
    calibration: Calibration

    def of_shares(self, likelihood: Likelihood, p: Floats, inverse: Floats) -> Floats:
        """What it adds to the covariance of p, C × C; ``inverse``: H⁻¹ on the free classes."""
        effect = self.effect(likelihood, p, inverse)
        return effect @ self.covariance @ effect.T

    def effect(self, likelihood: Likelihood, p: Floats, inverse: Floats) -> Floats:
        """G = ∂p/∂(t, β), C × (C + 1)."""
        effect = np.zeros((len(p), len(p) + 1))
        free = inverse.diagonal() > 0
        effect[:, 1:] = inverse - np.diag(p)
        effect[~free] = 0.0
        if self.covariance[0, 0] > 0 and self.calibration.scale != 0:
            moved = _scale_effect(likelihood, p, self.calibration)
            ratio = np.divide(moved, p, out=np.zeros(len(p)), where=p > 0)
            effect[:, 0] = inverse @ ratio
        return effect


@dataclass(frozen=True)
class OutputError:
    """Uncertainty of a confusion matrix, whose rows are multinomial; ``counts``: of the batch."""

    confusion: ConfusionMatrix
    counts: Floats

    def of_shares(self, likelihood: Likelihood, p: Floats, inverse: Floats) -> Floats:
        """What it adds to the covariance of p, C × C; ``inverse``: H⁻¹ on the free classes."""
        M = self.confusion.conditional
        density = M @ p
        seen = (self.counts > 0) & (density > 0)
        M, density = M[seen], density[seen]
        shares = self.counts[seen] / self.counts[seen].sum()
        rows = self.confusion.counts.sum(axis=1)
        added = np.zeros((len(p), len(p)))
        for k in np.flatnonzero(p > 0):
            # Effect of M[j, k] on the multipliers, C × J.
            effect = -p[k] * (M / density[:, None]).T * (shares / density)
            effect[k] += shares / density
            effect = inverse @ effect
            mean = effect @ M[:, k]
            added += ((effect * M[:, k]) @ effect.T - np.outer(mean, mean)) / rows[k]
        return added


Uncertainty = SourceError | OutputError


@dataclass(frozen=True)
class Covariance:
    """C × C covariances of the estimated shares; zero rows for classes that are not free.

    ``target``: from the batch alone, for the population. ``total``: with the source, for what
    was asked (population or batch).
    """

    target: Floats
    total: Floats

    @property
    def standard_errors(self) -> Floats:
        """Square roots of the total variances, C."""
        errors: Floats = np.sqrt(np.maximum(self.total.diagonal(), 0.0))
        return errors


def covariance(
    likelihood: Likelihood,
    p: Floats,
    hessian: Floats,
    free: Mask,
    source: Uncertainty | None = None,
    of: Of = "population",
) -> Covariance:
    """Covariance of p at the maximum, the classes in ``free`` being free to vary."""
    inverse = inverse_hessian(hessian, free)
    N = likelihood.size
    target = (inverse - np.outer(p, p)) / N
    target[~free] = target[:, ~free] = 0.0
    total = target if of == "population" else (inverse - np.diag(p)) / N
    if source is not None:
        total = total + source.of_shares(likelihood, p, inverse)
    return Covariance(target, total)


def inverse_hessian(hessian: Floats, free: Mask) -> Floats:
    """H⁻¹ on the free classes, zero elsewhere; the pseudo-inverse where H is singular."""
    positions = np.flatnonzero(free)
    block = hessian[np.ix_(positions, positions)]
    length = np.sqrt(block.diagonal())
    scale = np.where(length > 0, length, 1.0)
    scaled = block / scale[:, None] / scale
    inverse = np.zeros_like(hessian)
    try:
        within = cho_solve(cho_factor(scaled), np.eye(len(positions)))
    except np.linalg.LinAlgError:
        within = np.linalg.pinv(scaled, rcond=1e-12, hermitian=True)
    inverse[np.ix_(positions, positions)] = within / scale[:, None] / scale
    return inverse


def _scale_effect(likelihood: Likelihood, p: Floats, calibration: Calibration) -> Floats:
    """mean_i q_ik (z_ik − Σ_l q_il z_il), C values, from one pass.

    t z_k = ln c_k − b_k up to a constant per row, c the calibrated posteriors; entries of a block
    times the factors are c, up to a constant per row.
    """
    known = likelihood.known
    x = p[known] * likelihood.ratio
    shift = np.log(likelihood.factors) - calibration.bias[known]
    total = np.zeros(len(known))
    for block, weights in likelihood.informative:
        adjusted = block * x
        adjusted /= adjusted.sum(axis=1, keepdims=True)
        scores = np.log(np.maximum(block, TINY)) + shift
        scores -= np.einsum("ik,ik->i", adjusted, scores)[:, None]
        scores *= adjusted
        total += scores.sum(axis=0) if weights is None else weights @ scores
    effect = np.zeros(len(p))
    effect[known] = total / (likelihood.size * calibration.scale)
    return effect
