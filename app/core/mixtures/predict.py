"""What a mixture of regressions says about further rows: means, shares, quantiles, density."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from app.core import deadline
from app.core.arrays import Floats
from app.core.errors import InvalidInput
from app.core.mixtures.design import response
from app.core.mixtures.mixture import RegressionMixture, log_density, responsibilities

LEVELS = (0.05, 0.5, 0.95)
HALVINGS = 64
"""The bracket is then below the rounding of its ends."""
BLOCK = 1 << 18
"""Numbers (rows × levels × components) that are worked on at a time."""


@dataclass(frozen=True)
class Prediction:
    """What is said of n rows, in y's units.

    ``mean``: of the mixture, n.
    ``component_means``: n × K.
    ``probabilities``: of the components given x and y, n × K; without y the proportions.
    ``levels``: of the quantiles, in (0, 1).
    ``quantiles``: of the mixture, n × levels.
    ``log_density``: ln p(y | x), n; None without y.
    """

    mean: Floats
    component_means: Floats
    probabilities: Floats
    levels: tuple[float, ...]
    quantiles: Floats
    log_density: Floats | None


def predict(
    mixture: RegressionMixture,
    x: ArrayLike,
    y: ArrayLike | None = None,
    levels: tuple[float, ...] = LEVELS,
) -> Prediction:
    """Predict rows ``x``; ``InvalidInput`` for rows that do not fit, or levels outside (0, 1)."""
    check_levels(levels)
    rows = mixture.design(x)
    means = rows @ mixture.coefficients.T
    probabilities, density = np.tile(mixture.proportions, (len(rows), 1)), None
    if y is not None:
        joint = mixture.log_joint(rows, response(y, len(rows)))
        density = log_density(joint)
        probabilities = responsibilities(joint, density)
    return Prediction(
        mean=means @ mixture.proportions,
        component_means=means,
        probabilities=probabilities,
        levels=levels,
        quantiles=quantiles(means, mixture.sigmas, mixture.proportions, levels),
        log_density=density,
    )


def check_levels(levels: tuple[float, ...]) -> None:
    """``InvalidInput`` unless every level lies between 0 and 1."""
    for place, level in enumerate(levels):
        if not 0 < level < 1:
            raise InvalidInput.at(f"/levels/{place}", "send levels between 0 and 1, as 0.95")


def quantiles(
    means: Floats, sigmas: Floats, proportions: Floats, levels: tuple[float, ...]
) -> Floats:
    """Where Σ_k π_k Φ((q − μ_k)/σ_k) reaches each level, n × levels.

    ``means`` n × K. The components' own quantiles bracket the mixture's; the distribution
    function rises, so halving the bracket finds the one root however flat it is between modes.
    """
    probabilities = np.asarray(levels, dtype=np.float64)
    answer = np.empty((len(means), len(probabilities)))
    step = max(1, BLOCK // max(1, means.shape[1] * len(probabilities)))
    present = proportions > 0
    sigmas, proportions = sigmas[present], proportions[present]
    for start in range(0, len(means), step):
        deadline.check()
        block = means[start : start + step, None, present]
        own = block + sigmas * ndtri(probabilities)[:, None]
        lower, upper = own.min(axis=-1), own.max(axis=-1)
        for _ in range(HALVINGS):
            middle = lower + 0.5 * (upper - lower)
            below = ndtr((middle[..., None] - block) / sigmas) @ proportions < probabilities
            lower, upper = np.where(below, middle, lower), np.where(below, upper, middle)
        answer[start : start + step] = lower + 0.5 * (upper - lower)
    return answer
