"""What a version keeps to match features with, derived once from its labelled rows."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Codes, Floats
from app.core.lazy import cached_property
from app.core.prevalence.matching import bandwidth
from app.core.prevalence.matching.bandwidth import Criterion
from app.core.prevalence.matching.embedding import Embedding
from app.core.prevalence.matching.exact import Reference
from app.core.prevalence.matching.geometry import condition, delta_min, lambda_min
from app.core.prevalence.matching.kernels import Kernel
from app.core.prevalence.matching.kernels import Name as KernelName
from app.core.prevalence.matching.random_features import FourierMap, Standard

FeatureMap = Literal["features", "posteriors"]
MOST_ROWS = 5_000
"""Most rows that are kept for the exact kernels."""
MOST_NUMBERS = 2_000_000
"""Most numbers, rows × features, that are kept for them."""


@dataclass(frozen=True)
class MatchingOptions:
    """As registered. ``bandwidth`` None: chosen by ``criterion``; ``dimension``: D, even.

    ``feature_map``: what is matched, the features of the rows or their posteriors.
    """

    bandwidth: float | None = None
    dimension: int = 1000
    seed: int = 0
    standardise: bool = True
    criterion: Criterion = "delta-min"
    feature_map: FeatureMap = "features"


@dataclass(frozen=True)
class ReferenceRows:
    """n labelled rows of d features, by name; as registered."""

    labels: Codes
    rows: Floats
    names: tuple[str, ...]


@dataclass(frozen=True)
class Exact:
    """n standardised rows with n labels, and their kernels with each class, n × C for either."""

    rows: NDArray[np.float32]
    labels: Codes
    gaussian: Floats
    energy: Floats

    def reference(self, kernel: KernelName) -> Reference:
        """For one of the kernels."""
        within = self.gaussian if kernel == "gaussian" else self.energy
        return Reference(self.rows.astype(np.float64), self.labels, within)


@dataclass(frozen=True)
class Matching:
    """``bandwidth``: in use; ``exact``: whether the rows are kept for the exact kernels.

    ``exact_rows``: these, where they are at hand.
    """

    options: MatchingOptions
    names: tuple[str, ...]
    bandwidth: float
    embedding: Embedding
    exact: bool
    exact_rows: Exact | None = None

    @classmethod
    def of(cls, reference: ReferenceRows, classes: int, options: MatchingOptions) -> "Matching":
        """From labelled rows, every class among them."""
        rows, labels = reference.rows, reference.labels
        standard = Standard.of(rows, options.standardise)
        sigma = options.bandwidth
        if sigma is None:
            few = bandwidth.sample(labels, classes, bandwidth.MOST_ROWS, options.seed)
            some = standard.apply(rows[few])
            sigma = bandwidth.choose(some, labels[few], classes, options.criterion, options.seed)
        fourier = FourierMap.of(rows.shape[1], options.dimension, sigma, options.seed)
        embedding = Embedding.of(rows, labels, classes, standard, fourier)
        exact = len(rows) <= MOST_ROWS and rows.size <= MOST_NUMBERS
        exact_rows = _exact(standard.apply(rows), labels, classes, sigma) if exact else None
        return cls(options, reference.names, sigma, embedding, exact, exact_rows)

    @cached_property
    def delta_min(self) -> float:
        """The separation of the classes by the random features; see ``geometry.delta_min``."""
        return delta_min(self.embedding.gram)

    @cached_property
    def lambda_min(self) -> float:
        """The smallest eigenvalue of the random features' Gram matrix."""
        return lambda_min(self.embedding.gram)

    @cached_property
    def condition(self) -> float:
        """The condition number of the random features' Gram matrix."""
        return condition(self.embedding.gram)

    @property
    def shares(self) -> Floats:
        """Of the labelled rows, C."""
        counts = self.embedding.counts
        return np.asarray(counts / counts.sum())

    def kernel(self, name: KernelName) -> Kernel:
        """A kernel at this version's bandwidth."""
        return Kernel(name, self.bandwidth)


def _exact(rows: Floats, labels: Codes, classes: int, sigma: float) -> Exact:
    single = rows.astype(np.float32)
    rounded = single.astype(np.float64)
    gaussian = Reference.of(rounded, labels, classes, Kernel("gaussian", sigma))
    energy = Reference.of(rounded, labels, classes, Kernel("energy"))
    return Exact(single, labels, gaussian.within, energy.within)
