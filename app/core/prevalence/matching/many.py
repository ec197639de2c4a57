"""The simplex quadratic programme for many replicates at once."""

import numpy as np

from app.core import deadline
from app.core.arrays import Floats, Mask
from app.core.prevalence.numerics import simplex

ROUNDS = 12


def least_squares_many(G: Floats, q: Floats, centre: Floats, soft: bool = False) -> Floats:
    """Argmin ½aᵀG a − qᵀa of B problems, B × C; G is B × C × C, q is B × C.

    As ``simplex.least_squares``, of which soft is the same with one more class without features.
    All at once by exchanging which shares are held at zero; what that does not settle, one by one.
    """
    if soft:
        G, q = np.pad(G, ((0, 0), (0, 1), (0, 1))), np.pad(q, ((0, 0), (0, 1)))
        centre = np.append(centre, 0.0)
    scale = np.maximum(np.abs(G).max(axis=(1, 2)), 1e-300)
    G, q = G / scale[:, None, None], q / scale[:, None]
    classes = q.shape[1]
    free = np.ones(q.shape, dtype=bool)
    if soft:
        free[:, -1] = False
    a = np.tile(centre, (len(q), 1))
    open_ = np.arange(len(q))
    for _ in range(ROUNDS):
        minimisers, level = _solve_free(G[open_], q[open_], free[open_])
        slope = np.einsum("bkl,bl->bk", G[open_], minimisers) - q[open_] + level[:, None]
        wrong = np.where(free[open_], minimisers < 0, slope < -1e-12)
        wrong |= ~np.isfinite(minimisers).all(axis=1, keepdims=True)
        a[open_] = minimisers
        unsettled = wrong.any(axis=1)
        free[open_] ^= wrong
        stuck = ~free[open_].any(axis=1)
        free[open_[stuck], np.argmax(q[open_[stuck]], axis=1)] = True
        open_ = open_[unsettled]
        if not len(open_):
            break
    for b in open_:
        deadline.check()
        inner = slice(0, classes - 1) if soft else slice(None)
        M, v = simplex.square_root(G[b, inner, inner], q[b, inner])
        values = simplex.least_squares(M, v, centre[inner], soft).values
        a[b] = np.append(values, 1 - values.sum()) if soft else values
    a = np.maximum(a, 0.0)
    a /= a.sum(axis=1, keepdims=True)
    return a[:, :-1] if soft else a


def _solve_free(G: Floats, q: Floats, free: Mask) -> tuple[Floats, Floats]:
    """Minimisers over the free shares, which sum to one, and the multipliers of that sum."""
    problems, classes = q.shape
    bordered = np.zeros((problems, classes + 1, classes + 1))
    inside = free[:, :, None] & free[:, None, :]
    bordered[:, :classes, :classes] = np.where(inside, G, np.eye(classes) * ~free[:, None, :])
    bordered[:, :classes, classes] = bordered[:, classes, :classes] = free
    right = np.ones((problems, classes + 1))
    right[:, :classes] = np.where(free, q, 0.0)
    try:
        solutions = np.linalg.solve(bordered, right[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        solutions = np.full(right.shape, np.nan)
    return solutions[:, :classes], solutions[:, classes]
