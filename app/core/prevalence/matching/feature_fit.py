"""Is prior shift a believable explanation of a batch? By its features.

Under prior shift the batch's mean feature is a mixture of the class means. The statistic is
N‖Φ(Q) − Σ_k â_k Φ(P_k)‖², â refitted on the simplex; its null distribution is drawn with the
mixture at â as the truth, the means of both sides redrawn and the shares fitted again. Directions
outside the axes of the embedding, where only noise is expected, enter by their variance.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.core.arrays import Floats
from app.core.prevalence.matching.embedding import Embedded, Embedding
from app.core.prevalence.matching.many import least_squares_many
from app.core.prevalence.matching.match import draw_around, groups, match_means, root

REPLICATES = 199


@dataclass(frozen=True)
class Fit:
    """How well a mixture of the classes explains a batch.

    ``statistic``: ≥ 0; of features N · ``residual``², of posteriors Σ misfit² / variance over the
        bins.
    ``p_value``: how often pure prior shift fits as badly; small: something else has changed.
    ``reference``: what was compared.
    ``residual``: ≥ 0; of features the distance of the means, of posteriors the total variation
        between the binned ones.
    ``seed``: of the null distribution.
    ``replicates``: of the null distribution.
    """

    statistic: float
    p_value: float
    reference: Literal["features", "posteriors"]
    residual: float
    seed: int
    replicates: int


def features_fit(
    embedding: Embedding, batch: Embedded, source: Floats, seed: int = 0, count: int = REPLICATES
) -> Fit | None:
    """The fit of a batch; None for versions of too many classes, which keep no spread."""
    if embedding.axes is None or embedding.spread is None:
        return None
    nearest = match_means(embedding.means, batch.mean, source, soft=False)
    statistic = batch.size * nearest.distance**2
    shares = _off_the_boundary(embedding, batch.size, nearest.prevalence)
    null = _null(embedding, batch.size, shares, source, seed, count)
    p = (1 + int(np.count_nonzero(null >= statistic))) / (1 + count)
    return Fit(statistic, p, "features", nearest.distance, seed, count)


def _off_the_boundary(embedding: Embedding, size: int, shares: Floats) -> Floats:
    """Shares of less than a standard error as zero.

    Fitted again, a share that is truly zero would else be freer to fit than it was for the batch.
    """
    assert embedding.spread is not None
    covariance = _mixed(embedding, shares) / size
    covariance += np.einsum("c,ckl->kl", shares**2 / embedding.counts, embedding.spread)
    inverse = np.linalg.pinv(embedding.columns)
    variances = np.einsum("ck,kl,cl->c", inverse, covariance, inverse)
    errors = np.sqrt(np.maximum(variances, 0.0))
    truncated = np.where(shares < errors, 0.0, shares)
    total = truncated.sum()
    return np.asarray(truncated / total) if total > 0 else shares


def _mixed(embedding: Embedding, shares: Floats) -> Floats:
    """Covariance along the axes of a row of the mixture."""
    assert embedding.spread is not None
    columns = embedding.columns
    mean = columns @ shares
    between = (columns * shares) @ columns.T - np.outer(mean, mean)
    return np.asarray(np.einsum("c,ckl->kl", shares, embedding.spread) + between)


def _null(
    embedding: Embedding, size: int, shares: Floats, source: Floats, seed: int, count: int
) -> Floats:
    """Statistics of batches of ``size`` rows under pure prior shift to ``shares``."""
    assert embedding.spread is not None
    rng = np.random.default_rng(seed)
    columns, spread, counts = embedding.columns, embedding.spread, embedding.counts
    roots = [root(s / n) for s, n in zip(spread, counts, strict=True)]
    roots.append(root(_mixed(embedding, shares) / size))
    middle = np.column_stack([columns, columns @ shares])
    null = np.empty(count)
    for start, end in groups(count, middle.size):
        redrawn = draw_around(rng, middle, roots, end - start)
        M, v = redrawn[:, :, :-1], redrawn[:, :, -1]
        G, q = np.swapaxes(M, 1, 2) @ M, np.einsum("bkc,bk->bc", M, v)
        a = least_squares_many(G, q, source)
        misfit = v - np.einsum("bkc,bc->bk", M, a)
        null[start:end] = (misfit**2).sum(axis=1)
    return np.asarray(size * (null + _outside(rng, embedding, size, shares, count)))


def _outside(
    rng: np.random.Generator, embedding: Embedding, size: int, shares: Floats, count: int
) -> Floats:
    """Squared noise outside the axes: its mean is known, as ‖Φ(x)‖ = 1.

    No direction there varies more than the least of the axes does, so that taking them all to vary
    as much makes the noise no steadier than it is.
    """
    assert embedding.spread is not None
    several = np.maximum(embedding.counts, 2.0)
    total = (1.0 - (embedding.means**2).sum(axis=1)) * several / (several - 1.0)
    inside = np.trace(embedding.spread, axis1=1, axis2=2)
    left = np.maximum(total - inside, 0.0)
    mean = float(shares @ left / size + (shares**2 * left / embedding.counts).sum())
    pooled = np.einsum("c,ckl->kl", shares, embedding.spread)
    least = max(float(np.linalg.eigvalsh(pooled)[0]), 1e-12)
    freedom = max(float(shares @ left) / least, 1.0)
    return np.asarray(mean * rng.chisquare(freedom, count) / freedom)
