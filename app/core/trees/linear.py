"""The linear map that explains a batch, from means and deviations (paper, algorithm 2)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Floats
from app.core.trees.column import TrainingColumn


@dataclass(frozen=True)
class LinearMap:
    """x' = ``alpha`` x + ``beta``; alpha, a ratio of deviations, is positive."""

    alpha: float
    beta: float

    def threshold(self, source: float) -> float:
        """Where the map takes a threshold: x' <= α t + β exactly if x <= t."""
        return self.alpha * source + self.beta

    def corrected(self, batch: NDArray[np.floating]) -> Floats:
        """(x' − β) / α of the sorted batch, sorted."""
        return (batch.astype(np.float64, copy=False) - self.beta) / self.alpha


def moments(values: NDArray[np.floating], weights: Floats | None = None) -> tuple[float, float]:
    """Mean and deviation, the latter divided by n and exactly zero if sorted values are equal."""
    if values[0] == values[-1]:
        return float(values[0]), 0.0
    if weights is None:
        return float(values.mean(dtype=np.float64)), float(values.std(dtype=np.float64))
    share = weights / weights.sum()
    mean = float(share @ values)
    return mean, float(np.sqrt(share @ (values - mean) ** 2))


def linear_map(
    column: TrainingColumn, batch: NDArray[np.floating], weights: Floats | None = None
) -> LinearMap | None:
    """α = σ_dep / σ_tr, β = μ_dep − α μ_tr; None if either deviation is zero.

    ``weights``: n, of the training values. Without them a shift of the priors would be taken for
    part of the map.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = moments(column.doubles, weights)
        target_mean, target_deviation = moments(batch)
        if deviation == 0.0 or target_deviation == 0.0:
            return None
        alpha = target_deviation / deviation
        beta = target_mean - alpha * mean
    usable = np.isfinite(alpha) and np.isfinite(beta) and alpha > 0
    return LinearMap(alpha, beta) if usable else None


def snap(corrected: Floats, support: Floats, step: float) -> Floats:
    """Corrected values, those within half a ``step`` of a training value moved onto it.

    With estimated α and β two lattices never meet: all of the heaviest value's mass would lie
    just beside its place, and an exact linear shift would be rejected. Order is kept.
    """
    if step == 0.0:
        return corrected
    right = np.searchsorted(support, corrected).clip(1, len(support) - 1)
    below, above = support[right - 1], support[right]
    nearest = np.where(corrected - below <= above - corrected, below, above)
    return np.where(np.abs(corrected - nearest) <= step / 2, nearest, corrected)
