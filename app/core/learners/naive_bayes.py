"""Naive Bayes: a density per class and column, multiplied."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from app.core.arrays import Floats


@dataclass(frozen=True)
class GaussianBayes:
    """ln P(k, x) = log_priors_k + Σ_j ln N(x_j; mean_kj, variance_kj) + Σ_levels log_levels_k·x.

    The first M columns are numeric (``means``, ``variances``: C × M), the others one-hot levels
    (``log_levels``: C × (P − M), ln P(level | class)); an unknown level says nothing.
    """

    log_priors: Floats
    means: Floats
    variances: Floats
    log_levels: Floats

    def posteriors(self, encoded: Floats) -> Floats:
        """N × C for an encoded N × P table."""
        M = self.means.shape[1]
        joint = self.log_priors + np.dot(encoded[:, M:], self.log_levels.T)
        for k, (mean, variance) in enumerate(zip(self.means, self.variances, strict=True)):
            squares = ((encoded[:, :M] - mean) ** 2 / variance).sum(axis=1)
            joint[:, k] -= 0.5 * (np.log(2 * np.pi * variance).sum() + squares)
        return np.asarray(softmax(joint, axis=1), dtype=np.float64)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Its parameters by name."""
        return {
            "log_priors": self.log_priors,
            "means": self.means,
            "variances": self.variances,
            "log_levels": self.log_levels,
        }


@dataclass(frozen=True)
class MultinomialBayes:
    """ln P(k, x) = log_priors_k + log_chances_k · x.

    ``log_chances``: C × P, of the numeric columns ln P(an occurrence is of column j | k), of the
    one-hot ones ln P(level | k).
    """

    log_priors: Floats
    log_chances: Floats

    def posteriors(self, encoded: Floats) -> Floats:
        """N × C for an encoded N × P table of counts."""
        joint = np.dot(encoded, self.log_chances.T) + self.log_priors
        return np.asarray(softmax(joint, axis=1), dtype=np.float64)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Its parameters by name."""
        return {"log_priors": self.log_priors, "log_chances": self.log_chances}
