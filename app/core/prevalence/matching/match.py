"""The estimate: hard and soft shares of a batch, and its replicates."""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Floats
from app.core.prevalence.matching.embedding import Embedded, Embedding
from app.core.prevalence.matching.many import least_squares_many
from app.core.prevalence.numerics import simplex
from app.core.prevalence.numerics.simplex import Status
from app.core.prevalence.replicates import REPLICATES, Replicates

GROUP = 1 << 22
"""Numbers of replicated means that are held at once."""


@dataclass(frozen=True)
class Match:
    """The mixture of the classes that is nearest to a batch.

    ``prevalence``: C shares a, of sum one, or at most one if soft.
    ``status``: ``converged``, ``inaccurate`` (the gap exceeds the tolerance), or ``failed``.
    ``unidentified``: positions of classes that the features do not tell apart.
    ``optimality_gap``: ≥ 0; an upper bound on how far ½‖Σ_k a_k Φ(P_k) − Φ(Q)‖² is above its
        minimum; None where the solver failed.
    ``distance``: ‖Σ_k a_k Φ(P_k) − Φ(Q)‖.
    """

    prevalence: Floats
    status: Status
    unidentified: tuple[int, ...]
    optimality_gap: float | None
    distance: float


def match_means(means: Floats, batch: Floats, source: Floats, soft: bool) -> Match:
    """From the class means (C × D) and the batch's (D) of any feature map.

    Problem (P), or (P2) if soft; −q in the quadratic programme, whose printed sign is wrong.
    """
    basis, triangle = np.linalg.qr(means.T)
    minimum = simplex.least_squares(triangle, basis.T @ batch, source, soft)
    misfit = float(np.linalg.norm(minimum.values @ means - batch))
    return Match(minimum.values, minimum.status, minimum.unidentified, minimum.gap, misfit)


def match_kernel(G: Floats, q: Floats, own: float, source: Floats, soft: bool) -> Match:
    """From the C × C Gram matrix of the classes, C products with the batch, and its own."""
    M, v = simplex.square_root(G, q)
    minimum = simplex.least_squares(M, v, source, soft)
    a = minimum.values
    square = max(float(a @ G @ a - 2 * q @ a) + own, 0.0)
    return Match(a, minimum.status, minimum.unidentified, minimum.gap, float(np.sqrt(square)))


def replicates(
    embedding: Embedding,
    batch: Embedded,
    source: Floats,
    soft: bool,
    seed: int,
    count: int = REPLICATES,
) -> Replicates:
    """Replicates of the shares: the means of both sides redrawn from normal distributions.

    Along the axes each mean gets the covariance of its rows over their number; no row is needed.
    """
    assert embedding.spread is not None
    assert embedding.axes is not None
    assert batch.spread is not None
    rng = np.random.default_rng(seed)
    covariances = np.concatenate(
        [embedding.spread / embedding.counts[:, None, None], batch.spread[None] / batch.size]
    )
    roots = [root(c) for c in covariances]
    columns = embedding.columns
    middle = np.column_stack([columns, batch.mean @ embedding.axes])
    shares = np.empty((count, len(source)))
    for start, end in groups(count, middle.size):
        draws = draw_around(rng, middle, roots, end - start)
        M, v = draws[:, :, :-1], draws[:, :, -1]
        G, q = np.swapaxes(M, 1, 2) @ M, np.einsum("bkc,bk->bc", M, v)
        shares[start:end] = least_squares_many(G, q, source, soft)
    return Replicates(shares, seed)


def draw_around(
    rng: np.random.Generator, middle: Floats, roots: list[Floats], count: int
) -> Floats:
    """B × K × J normal draws around ``middle`` (K × J), column j with covariance root_j root_jᵀ."""
    draws = np.empty((count, *middle.shape))
    for j, L in enumerate(roots):
        draws[:, :, j] = middle[:, j] + rng.standard_normal((count, L.shape[1])) @ L.T
    return draws


def root(covariance: Floats) -> Floats:
    """An L with L Lᵀ = the covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def groups(count: int, size: int) -> list[tuple[int, int]]:
    """Starts and ends of groups of replicates of ``size`` numbers each."""
    step = max(GROUP // size, 1)
    return [(start, min(start + step, count)) for start in range(0, count, step)]
