"""The likelihood of the target priors, as passes over the batch.

With source posteriors g_ik and source priors p0_k, row i has density proportional to
d_i(p) = Σ_k p_k g_ik / p0_k under target priors p (Saerens, Latinne and Decaestecker 2002;
thesis ch. 6). Everything here works on the ratios r_ik = g_ik / p0_k, scaled so that
d_i(p0) = 1; then mean_i log d_i(p) is the gain of p over p0.
"""

from dataclasses import dataclass

import numpy as np

from app.core.prevalence.arrays import Floats


@dataclass(frozen=True)
class Likelihood:
    """Likelihood ratios of a batch.

    ``ratios``: N × C, one column per class, a zero column where the source prior is zero;
    ``weights``: N row weights that sum to ``size``; ``source``: the C source priors;
    ``unsupported``: weight of the rows that were left out, because all their mass is on
    classes of zero source prior: they say nothing about the others.
    """

    ratios: Floats
    weights: Floats
    source: Floats
    size: float
    unsupported: float

    @classmethod
    def of(cls, posteriors: Floats, source: Floats, weights: Floats | None = None) -> "Likelihood":
        """Likelihood of N × C ``posteriors`` given under priors ``source``."""
        if weights is None:
            weights = np.ones(len(posteriors))
        known = source > 0
        mass = posteriors[:, known].sum(axis=1)
        informative = (mass > 0) & (weights > 0)
        if not informative.all():
            posteriors, mass = posteriors[informative], mass[informative]
        ratios = np.zeros(posteriors.shape)
        np.divide(posteriors, mass[:, None] * source, out=ratios, where=known)
        kept = weights[informative]
        size = float(kept.sum())
        return cls(ratios, kept, source, size, float(weights.sum()) - size)

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

    def densities(self, p: Floats) -> Floats:
        """d_i(p), N values."""
        return self.ratios @ p

    def multipliers(self, densities: Floats) -> Floats:
        """m_k = mean_i r_ik / d_i, the gradient of the mean log-likelihood; C values.

        At the maximum m_k = 1 where p_k > 0 and m_k ≤ 1 elsewhere.
        """
        return (self.weights / densities) @ self.ratios / self.size

    def gain(self, densities: Floats) -> float:
        """mean_i log d_i(p) ≥ 0 at the maximum; minus infinity where some d_i is zero."""
        with np.errstate(divide="ignore"):
            return float(self.weights @ np.log(densities)) / self.size
