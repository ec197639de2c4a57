"""The paper's synthetic shifts of numerical attributes (section 4.1, Table 1, equation 8)."""

from itertools import product

import numpy as np

from app.core.arrays import Floats

SETTINGS = tuple((phi, gamma) for phi, gamma in product((-1, 0, 1), repeat=2) if phi or gamma)
"""(φ, γ): the eight linear shifts; φ stretches by 2^φ, γ moves the mean by γ deviations."""


def coefficients(mean: float, deviation: float, phi: int, gamma: int) -> tuple[float, float]:
    """α = 2^φ, β = (1 − 2^φ) μ + γ σ."""
    alpha = 2.0**phi
    return alpha, (1.0 - alpha) * mean + gamma * deviation


def linear(column: Floats, mean: float, deviation: float, phi: int, gamma: int) -> Floats:
    alpha, beta = coefficients(mean, deviation, phi, gamma)
    return alpha * column + beta


def cubic(column: Floats, mean: float, deviation: float) -> Floats:
    """σ z³ + μ, z the standard score; it does not keep the deviation, which the text says."""
    if deviation == 0.0:
        return column
    return deviation * ((column - mean) / deviation) ** 3 + mean


def all_linear(batch: Floats, train: Floats, phi: int, gamma: int) -> Floats:
    """Every attribute by the same setting, in units of its training deviation."""
    columns = zip(batch.T, train.mean(axis=0), train.std(axis=0), strict=True)
    return np.column_stack([linear(x, mean, sd, phi, gamma) for x, mean, sd in columns])


def all_cubic(batch: Floats, train: Floats) -> Floats:
    columns = zip(batch.T, train.mean(axis=0), train.std(axis=0), strict=True)
    return np.column_stack([cubic(x, mean, sd) for x, mean, sd in columns])


def mixture(batch: Floats, train: Floats, phi: int, gamma: int, rng: np.random.Generator) -> Floats:
    """A third of the attributes each, drawn from ``rng``: unshifted, linear, cubic."""
    lot = rng.permutation(batch.shape[1]) % 3
    moved = batch.copy()
    moved[:, lot == 1] = all_linear(batch, train, phi, gamma)[:, lot == 1]
    moved[:, lot == 2] = all_cubic(batch, train)[:, lot == 2]
    return moved
