"""Is prior shift a believable explanation of a batch? By its posteriors, in bins.

A row's bin is its decision and how high its highest posterior is. Under prior shift the batch's
shares of the bins are a mixture of the classes' shares, which the validation rows tell with an
error of their own: with v of the batch and M by class, the statistic is
Σ_j (v − M â)_j² / s_j, s_j = m_j/N + Σ_k â_k² M_jk/n_k with m = M â. Its null distribution is drawn
with M and â as the truth, validation and batch redrawn and the shares fitted again.
"""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import AnyFloats, Codes, Floats, row_argmax, row_maxima
from app.core.prevalence.matching.feature_fit import REPLICATES, Fit
from app.core.prevalence.matching.many import least_squares_many

ROWS_PER_BIN = 80
MOST_BINS = 5
"""Most bins of each decision."""
MOST_ROWS = 100_000
"""Rows of a batch that are looked at: more do not sharpen a test that rests on fewer labels."""
MOST_DRAWN_FROM = 1_000_000_000
"""Of so many rows, drawing some is the same with and without replacement."""
MOST_CELLS = 4000
"""Most bins × classes of a version that is tested."""


@dataclass(frozen=True)
class Bins:
    """``edges``: C × (b − 1) heights between the b bins of each decision; ``counts``: C × C·b.

    Counts of validation rows, by true class and bin.
    """

    edges: Floats
    counts: Floats

    @classmethod
    def of(cls, posteriors: Floats, labels: Codes) -> "Bins | None":
        """From n × C raw posteriors and n labels; None where there are too few rows for two bins.

        Edges are quantiles of the rows of each decision, so that bins hold about as many rows.
        """
        n, classes = posteriors.shape
        each = min(n // (ROWS_PER_BIN * classes), MOST_BINS)
        if classes < 2 or each < 2 or classes**2 * each > MOST_CELLS:
            return None
        decided, highest = posteriors.argmax(axis=1), posteriors.max(axis=1)
        levels = np.arange(1, each) / each
        edges = np.ones((classes, each - 1))
        for k in range(classes):
            if (decided == k).any():
                edges[k] = np.quantile(highest[decided == k], levels)
        cells = _cells(decided, highest, edges)
        width = classes * each
        joint = np.bincount(labels * width + cells, minlength=classes * width)
        return cls(edges, joint.reshape(classes, width).astype(np.float64))

    def count(self, posteriors: AnyFloats) -> Floats:
        """Counts of the rows of a batch by bin; of evenly spaced rows beyond ``MOST_ROWS``."""
        return self.count_all(posteriors[:: -(-len(posteriors) // MOST_ROWS) or 1])

    def count_all(self, posteriors: AnyFloats) -> Floats:
        """Counts of all the rows."""
        rows = posteriors.astype(np.float64, copy=False)
        decided, highest = row_argmax(rows), row_maxima(rows)
        above = np.zeros((len(self.edges), self.edges.shape[1] + 2))
        for k, edges in enumerate(self.edges):
            those = decided == k
            higher = (np.count_nonzero(those & (highest > edge)) for edge in edges)
            above[k, :-1] = np.count_nonzero(those), *higher
        return np.asarray(-np.diff(above, axis=1)).ravel()

    def thinned(self, counts: Floats) -> Floats:
        """Of more rows than are looked at, the counts of so many, taken without replacement."""
        size = int(counts.sum())
        if size <= MOST_ROWS:
            return counts
        rng = np.random.default_rng(0)
        if size >= MOST_DRAWN_FROM:
            return rng.multinomial(MOST_ROWS, counts / size).astype(np.float64)
        sample = rng.multivariate_hypergeometric(counts.astype(np.int64), MOST_ROWS)
        return sample.astype(np.float64)

    def fit(
        self, batch: Floats, source: Floats, seed: int = 0, count: int = REPLICATES
    ) -> Fit | None:
        """The fit of a batch of these counts; None for one without rows."""
        size = int(batch.sum())
        if size == 0:
            return None
        rng = np.random.default_rng(seed)
        n = self.counts.sum(axis=1)
        statistic, shares, residual = _fit(self.counts[None], batch[None], source)
        conditional = _conditional(self.counts[None])[0]
        mixed = np.maximum(conditional @ shares[0], 0.0)
        validation = np.stack(
            [rng.multinomial(int(n[k]), conditional[:, k], count) for k in range(len(n))], axis=1
        )
        batches = rng.multinomial(size, mixed / mixed.sum(), count)
        null, _, _ = _fit(validation.astype(np.float64), batches.astype(np.float64), source)
        p = (1 + int(np.count_nonzero(null >= statistic[0]))) / (1 + count)
        return Fit(float(statistic[0]), p, "posteriors", float(residual[0]), seed, count)


def _cells(decided: Codes, highest: Floats, edges: Floats) -> Codes:
    cells = decided * (edges.shape[1] + 1)
    for edge in edges.T:
        cells += highest > edge[decided]
    return np.asarray(cells)


def _conditional(counts: Floats) -> Floats:
    """B × J × C shares of the bins by class, with one row spread over the bins of each."""
    smoothed = counts + 1.0 / counts.shape[2]
    return np.swapaxes(smoothed / smoothed.sum(axis=2, keepdims=True), 1, 2)


def _fit(counts: Floats, batch: Floats, source: Floats) -> tuple[Floats, Floats, Floats]:
    """Statistics, B × C shares and total variations of B problems.

    ``counts``: B × C × J of validation rows, ``batch``: B × J. Fitted twice, the second time with
    the weights that follow from the first.
    """
    M, n = _conditional(counts), counts.sum(axis=2)
    size = batch.sum(axis=1, keepdims=True)
    v = batch / size
    shares = np.tile(source, (len(batch), 1))
    for _ in range(2):
        spread = _variance(M, v, shares, size, n)
        weighted = M / spread[:, :, None]
        G = np.swapaxes(weighted, 1, 2) @ M
        shares = least_squares_many(G, np.einsum("bjc,bj->bc", weighted, v), source)
    misfit = v - np.einsum("bjc,bc->bj", M, shares)
    spread = _variance(M, v, shares, size, n)
    return (misfit**2 / spread).sum(axis=1), shares, 0.5 * np.abs(misfit).sum(axis=1)


def _variance(M: Floats, v: Floats, shares: Floats, size: Floats, n: Floats) -> Floats:
    """B × J variances of v − M a."""
    batch = 0.5 * (v + np.einsum("bjc,bc->bj", M, shares)) / size
    return np.asarray(batch + np.einsum("bjc,bc->bj", M, shares**2 / n))
