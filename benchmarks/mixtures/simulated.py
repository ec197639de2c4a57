"""The populations of the simulations, and how predictions of them are scored."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from app.core.arrays import Floats
from app.core.errors import InvalidInput
from app.core.mixtures.adapt import adapt
from app.core.mixtures.fit import fit
from app.core.mixtures.gibbs import predict_posterior, sample
from app.core.mixtures.links import LINKS
from app.core.mixtures.mixture import RegressionMixture, check_mixture, log_density
from app.core.mixtures.priors import priors

SOURCE = check_mixture([0.5, 0.5], [[3.0, 0.0, -2.0], [-3.0, 0.0, 0.5]], [1.0, 0.75], degree=2)
VALIDATION = 5000
MODELS = [name for name in LINKS if name[:2] in ("M2", "M3", "M4")]

SCENARIOS: dict[str, tuple[list[list[float]], list[float]]] = {
    "M2a": ([[1, 2, 2], [1, 2, 2]], [2, 2]),
    "M2b": ([[2, 1, 1], [2, 1, 1]], [1, 1]),
    "M2c": ([[2, 2, 2], [2, 2, 2]], [2, 2]),
    "M2d": ([[4, 2, 2], [4, 2, 2]], [2, 2]),
    "M3a": ([[1, 2, 2], [1, 4, 4]], [2, 4]),
    "M3b": ([[2, 1, 1], [4, 1, 1]], [1, 1]),
    "M3c": ([[2, 2, 2], [4, 4, 4]], [2, 4]),
    "M3d": ([[3, 2, 2], [5, 0.25, 0.25]], [2, 0.25]),
    "M4a": ([[1, 4, 2], [1, 4, 2]], [1, 1]),
    "M4b": ([[3, 2, 1.5], [3, 2, 1.5]], [1, 1]),
}
"""By what each link multiplies the source's coefficients (K × q) and deviations (K)."""


def linked(scenario: str) -> RegressionMixture:
    """The target population of a scenario."""
    coefficients, sigmas = SCENARIOS[scenario]
    return RegressionMixture(
        SOURCE.proportions, SOURCE.coefficients * coefficients, SOURCE.sigmas * sigmas, 2
    )


TRIPLED = RegressionMixture(SOURCE.proportions, 3 * SOURCE.coefficients, 3 * SOURCE.sigmas, 2)
"""The target of the introductory example and of figure 5."""


def rows_of(
    mixture: RegressionMixture, size: int, low: float, random: Generator
) -> tuple[Floats, Floats]:
    """``size`` rows with x uniform on [low, 3]."""
    x = random.uniform(low, 3, size)
    z = random.choice(mixture.components, size=size, p=mixture.proportions)
    return x, mixture.means(x)[np.arange(size), z] + mixture.sigmas[z] * random.normal(size=size)


@dataclass(frozen=True)
class Score:
    """Mean squares, ``honest`` by the mixture mean, ``oracle`` by the best component of each row.

    ``log_density`` is the mean of ln p(y | x).
    """

    honest: float
    oracle: float
    log_density: float


NOTHING = Score(np.nan, np.nan, np.nan)


def score(mixture: RegressionMixture, x: Floats, y: Floats) -> Score:
    """Of a mixture with known numbers."""
    means = mixture.means(x)
    return Score(
        float(np.mean((y - means @ mixture.proportions) ** 2)),
        float(np.mean(((y[:, None] - means) ** 2).min(axis=1))),
        float(log_density(mixture.log_joint(mixture.design(x), y)).mean()),
    )


def compared(
    source: RegressionMixture, x: Floats, y: Floats, held: tuple[Floats, Floats], seed: int
) -> dict[str, Score]:
    """MR, AMRp with pM3c and with the link that BIC chooses, AMRb with A = I and wider."""
    try:
        alone = score(fit(x, y, 2, degree=2, seed=seed).mixture, *held)
    except InvalidInput:
        alone = NOTHING
    scores = {"MR": alone}
    for name, link in (("AMRp, pM3c", "pM3c"), ("AMRp, BIC", "auto")):
        scores[name] = score(adapt(source, x, y, link, seed=seed).chosen.mixture, *held)
    for name, spread in (("AMRb, A = I", 1.0), ("AMRb, A = 10 I", 10.0)):
        drawn = sample(source, x, y, priors(source, spread=spread), seed=seed)
        predicted = predict_posterior(drawn, held[0][:500], held[1][:500], levels=(0.5,))
        assert predicted.log_density is not None
        plain = score(drawn.mixture, *held)
        honest = held[1][:500] - predicted.mean
        density = float(predicted.log_density.mean())
        scores[name] = Score(float(np.mean(honest**2)), plain.oracle, density)
    return scores
