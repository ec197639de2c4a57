"""What a version keeps of its reference rows: class means of random features, and their spread.

The spread is kept in K coordinates: an orthonormal basis of the span of the class means, and the
principal directions within classes. Shares depend on the span only, a misfit shows first along the
others; so replicates and tests need neither rows nor D × D matrices.
"""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Codes, Floats
from app.core.lazy import cached_property
from app.core.prevalence.matching.bandwidth import sample
from app.core.prevalence.matching.random_features import Floats32, FourierMap, Standard

DIRECTIONS = 64
"""Principal directions beside the span of the means."""
MOST_SPREAD = 1 << 21
"""Most numbers, C · K², of the covariances; a version of more classes has none."""
FEWEST_TO_PART = 20
MOST_ROWS = 8192
"""Most rows that covariances are computed from: about evenly from the classes."""
MOST_FEATURES = 4_000_000
"""Most numbers, rows × D, that they are computed from."""
BLOCK_ROWS = 256


@dataclass(frozen=True)
class Embedding:
    """``means``: Φ of each class, C × D; ``counts``: rows of each, C.

    ``axes``: D × K, orthonormal; ``spread``: covariances of the features of a row along them,
    C × K × K. Both None where there are too many classes.
    """

    standard: Standard
    map: FourierMap
    counts: Floats
    means: Floats
    axes: Floats | None
    spread: Floats | None

    @classmethod
    def of(
        cls, rows: Floats, labels: Codes, classes: int, standard: Standard, map: FourierMap
    ) -> "Embedding":
        """From n × d raw rows and n labels; every class must occur."""
        counts = np.bincount(labels, minlength=classes).astype(np.float64)
        means = map.class_means(rows, labels, classes, standard)
        axes, spread = None, None
        width = min(classes + DIRECTIONS, map.dimension)
        if classes * width**2 <= MOST_SPREAD:
            picked = sample(labels, classes, _most_rows(map), 0)
            few, some = labels[picked], standard.apply(rows[picked])
            first, second = _apart(few)
            within = map.apply(some[first]) - means[few[first]].astype(np.float32)
            axes = _axes(within, means, width - classes)
            inside = _along(axes, map, some[second])
            spread = _spread([inside[few[second] == k] for k in range(classes)])
        return cls(standard, map, counts, means, axes, spread)

    @cached_property
    def gram(self) -> Floats:
        """⟨Φ(P_k), Φ(P_l)⟩, C × C."""
        return np.asarray(self.means @ self.means.T)

    @cached_property
    def columns(self) -> Floats:
        """The class means along the axes, K × C."""
        assert self.axes is not None
        return np.asarray((self.means @ self.axes).T)

    @property
    def numbers(self) -> int:
        """How many numbers are held."""
        arrays = (self.map.frequencies, self.means, self.axes, self.spread)
        return sum(0 if a is None else a.size for a in arrays)


@dataclass(frozen=True)
class Embedded:
    """A batch: the mean of its features, D, and their covariance along the axes, K × K."""

    mean: Floats
    size: int
    spread: Floats | None

    @classmethod
    def of(cls, rows: Floats, embedding: Embedding) -> "Embedded":
        """Of N × d raw rows; the covariance from evenly spaced ones of very many."""
        mean = embedding.map.mean(rows, embedding.standard)
        spread = None
        if embedding.axes is not None:
            some = rows[:: -(-len(rows) // _most_rows(embedding.map))]
            inside = _along(embedding.axes, embedding.map, embedding.standard.apply(some))
            inside -= inside.mean(axis=0)
            spread = np.dot(inside.T, inside) / max(len(some) - 1, 1)
        return cls(mean, len(rows), spread)


def _most_rows(map: FourierMap) -> int:
    return min(MOST_ROWS, max(MOST_FEATURES // map.dimension, 2))


def _along(axes: Floats, map: FourierMap, rows: Floats) -> Floats:
    """Features of n × d standardised rows along the axes, n × K, a block at a time."""
    single = axes.astype(np.float32)
    parts = [
        np.dot(map.apply(rows[start : start + BLOCK_ROWS]), single)
        for start in range(0, len(rows), BLOCK_ROWS)
    ]
    return np.concatenate(parts).astype(np.float64)


def _axes(within: Floats32, means: Floats, directions: int) -> Floats:
    """D × K: the span of the means, then the main directions of the rows ``within`` classes.

    These by two rounds of subspace iteration from a fixed start; any basis would do.
    """
    span = np.linalg.qr(means.T)[0]
    if directions <= 0:
        return span
    single = span.astype(np.float32)
    rest = within - (within @ single) @ single.T
    start = np.random.default_rng(0).standard_normal((len(rest), directions), np.float32)
    turned = rest.T @ start
    for _ in range(2):
        basis = np.linalg.qr(turned)[0].astype(np.float32)
        turned = rest.T @ (rest @ basis)
    block = np.linalg.qr(turned.astype(np.float64))[0]
    return np.linalg.qr(np.hstack([span, block - span @ (span.T @ block)]))[0]


def _apart(labels: Codes) -> tuple[Codes, Codes]:
    """Positions from which to take directions, and others from which to take the spread in them.

    Rows spread more along directions that were chosen by them than others do. Rows of classes too
    small for that are in both.
    """
    first, second = [], []
    for k in np.unique(labels):
        own = np.flatnonzero(labels == k)
        apart = len(own) >= FEWEST_TO_PART
        chosen = np.arange(len(own)) % 4 == 0
        first.append(own[chosen] if apart else own)
        second.append(own[~chosen] if apart else own)
    return np.concatenate(first), np.concatenate(second)


def _spread(groups: list[Floats]) -> Floats:
    """Covariance of each group; each leans on the pooled one with the weight of one row."""
    squares = [(g - g.mean(axis=0)).T @ (g - g.mean(axis=0)) for g in groups]
    freedom = max(sum(len(g) for g in groups) - len(groups), 1)
    pooled = np.sum(squares, axis=0) / freedom
    return np.stack([(s + pooled) / len(g) for s, g in zip(squares, groups, strict=True)])
