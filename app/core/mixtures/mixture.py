"""A mixture of regressions: p(y | x) = Σ_k π_k φ(y | xᵀβ_k, σ_k²)."""

from dataclasses import dataclass
from math import log, pi

import numpy as np
from numpy.typing import ArrayLike

from app.core.arrays import Floats
from app.core.errors import Faults, InvalidInput
from app.core.mixtures.design import LARGEST, design, numbers

HALF_LOG_TWO_PI = 0.5 * log(2 * pi)


@dataclass(frozen=True)
class RegressionMixture:
    """K regressions on the same design.

    ``proportions`` K, sum 1; ``coefficients`` K × q, intercept first, in the units of y by those
    of x; ``sigmas`` K, residual standard deviations in the units of y; ``degree`` of the one
    covariate, 1 for several covariates or a straight line.
    """

    proportions: Floats
    coefficients: Floats
    sigmas: Floats
    degree: int = 1

    @property
    def components(self) -> int:
        """K, the number of components."""
        return len(self.proportions)

    @property
    def covariates(self) -> int:
        """How many numbers a row of x has."""
        return 1 if self.degree > 1 else self.coefficients.shape[1] - 1

    def design(self, x: ArrayLike) -> Floats:
        """The rows' design, n × q; ``InvalidInput`` where they do not fit this mixture."""
        rows = design(x, self.degree)
        if rows.shape[1] != self.coefficients.shape[1]:
            raise InvalidInput.at("/x", f"send rows of {self.covariates} numbers, as the source")
        return rows

    def means(self, x: ArrayLike) -> Floats:
        """Each component's mean of y, n × K."""
        return np.asarray(self.design(x) @ self.coefficients.T)

    def log_joint(self, rows: Floats, y: Floats) -> Floats:
        """Ln π_k φ(y_i | x_iᵀβ_k, σ_k²), n × K, for rows of the design."""
        return log_joint(y, rows @ self.coefficients.T, self.sigmas, self.proportions)


def check_mixture(
    proportions: ArrayLike, coefficients: ArrayLike, sigmas: ArrayLike, degree: int = 1
) -> RegressionMixture:
    """A mixture from parameters that somebody sent; ``InvalidInput`` names each wrong one."""
    shares = numbers("/proportions", proportions)
    betas = numbers("/coefficients", coefficients)
    deviations = numbers("/sigmas", sigmas)
    faults = Faults()
    if shares.ndim != 1 or not len(shares):
        raise InvalidInput.at("/proportions", "send a list of numbers, one for each component")
    if not (np.isfinite(shares).all() and (shares > 0).all() and abs(shares.sum() - 1) < 1e-6):
        faults.add("/proportions", "send positive numbers whose sum is 1")
    if betas.ndim != 2 or len(betas) != len(shares) or not (np.abs(betas) <= LARGEST).all():
        faults.add("/coefficients", f"send {len(shares)} lists of finite numbers of one length")
    elif degree < 1 or (degree > 1 and betas.shape[1] != degree + 1):
        faults.add("/degree", "send 1, or the number of terms after the intercept")
    if deviations.shape != shares.shape or not (((deviations > 0) & (deviations <= LARGEST)).all()):
        faults.add("/sigmas", f"send {len(shares)} positive numbers")
    faults.raise_if_any()
    return RegressionMixture(shares / shares.sum(), betas, deviations, degree)


def log_joint(y: Floats, means: Floats, sigmas: Floats, proportions: Floats) -> Floats:
    """Ln π_k φ(y_i | μ_ik, σ_k²), … × n × K; ``sigmas`` and ``proportions`` are … × K."""
    scale = sigmas[..., None, :]
    with np.errstate(divide="ignore"):  # a proportion of 0: −∞, which log-sum-exp understands
        shares = np.log(proportions)[..., None, :]
    z = (y[:, None] - means) / scale
    return np.asarray(shares - np.log(scale) - HALF_LOG_TWO_PI - 0.5 * z * z)


def log_density(joint: Floats) -> Floats:
    """Ln Σ_k exp(joint), over the last axis."""
    top = joint.max(axis=-1, keepdims=True)
    return np.asarray(top[..., 0] + np.log(np.exp(joint - top).sum(axis=-1)))


def responsibilities(joint: Floats, density: Floats) -> Floats:
    """P(component | x, y), … × n × K."""
    return np.asarray(np.exp(joint - density[..., None]))
