"""Random Fourier features of the Gaussian kernel, in float32 blocks of bounded memory.

Φ(x) = √(2/D) [cos ω_i·x, sin ω_i·x], i = 1 … D/2, with ω_i ~ N(0, I/σ²): the mean of Φ(x)·Φ(y) over
ω is exp(−‖x − y‖²/2σ²) (feature matching, eq. 10; of lower variance than its eq. 11).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core import deadline
from app.core.arrays import Codes, Floats

Floats32 = NDArray[np.float32]

BLOCK = 1 << 18
"""Numbers of a block: a megabyte, which stays in the cache."""
FARTHEST = 1e6
"""Standardised features beyond this are all equally far away."""


@dataclass(frozen=True)
class Standard:
    """(x − centre) / scale, d values each; the centre is taken off also where scale is one."""

    centre: Floats
    scale: Floats

    @classmethod
    def of(cls, rows: Floats, scaling: bool) -> "Standard":
        """By the mean and, with ``scaling``, the standard deviation of n × d rows.

        A feature that does not vary keeps its scale.
        """
        centre, scale = rows.mean(axis=0), np.ones(rows.shape[1])
        if scaling:
            spread = rows.std(axis=0)
            varies = spread > 1e-12 * np.maximum(np.abs(centre), 1e-300)
            scale = np.where(varies, spread, 1.0)
        return cls(centre, scale)

    def apply(self, rows: Floats) -> Floats:
        """N × d standardised features."""
        moved = rows - self.centre
        moved /= self.scale
        return np.clip(moved, -FARTHEST, FARTHEST, out=moved)


@dataclass(frozen=True)
class FourierMap:
    """``frequencies``: D/2 × d, already divided by the bandwidth."""

    frequencies: Floats32

    @classmethod
    def of(cls, width: int, dimension: int, bandwidth: float, seed: int) -> "FourierMap":
        """Draw D/2 frequencies for ``width`` features; ``dimension``: D, ``ValueError`` if odd."""
        if dimension < 2 or dimension % 2:
            raise ValueError("the dimension must be even and positive")
        frequencies = np.random.default_rng(seed).standard_normal((dimension // 2, width))
        return cls((frequencies / bandwidth).astype(np.float32))

    @property
    def dimension(self) -> int:
        """D, two features for each frequency."""
        return 2 * len(self.frequencies)

    def apply(self, rows: Floats) -> Floats32:
        """All features of N × d standardised rows at once, N × D; for few rows."""
        features = np.empty((len(rows), self.dimension), np.float32)
        half = len(self.frequencies)
        angles = np.dot(rows.astype(np.float32), self.frequencies.T)
        np.cos(angles, out=features[:, :half])
        np.sin(angles, out=features[:, half:])
        features *= np.float32(np.sqrt(2.0 / self.dimension))
        return features

    def mean(self, rows: Floats, standard: Standard) -> Floats:
        """Φ of the distribution of N × d raw rows, D float64."""
        total = np.zeros(self.dimension)
        half = len(self.frequencies)
        for block in self._blocks(rows):
            angles = np.dot(standard.apply(block).astype(np.float32), self.frequencies.T)
            # In double precision: the mean must not depend on how the rows are cut into blocks.
            total[:half] += np.cos(angles).sum(axis=0, dtype=np.float64)
            total[half:] += np.sin(angles, out=angles).sum(axis=0, dtype=np.float64)
        return np.asarray(total * (np.sqrt(2.0 / self.dimension) / len(rows)))

    def class_means(self, rows: Floats, labels: Codes, classes: int, standard: Standard) -> Floats:
        """Φ of each class, C × D; every class must occur."""
        return np.stack([self.mean(rows[labels == k], standard) for k in range(classes)])

    def _blocks(self, rows: Floats) -> Iterator[Floats]:
        step = max(BLOCK // len(self.frequencies), 1)
        for start in range(0, len(rows), step):
            deadline.check()
            yield rows[start : start + step]
