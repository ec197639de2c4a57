"""min ½ yᵀH y − bᵀy over y ≥ 0, for a positive semidefinite H of a few to a thousand classes.

Block principal pivoting (Portugal, Júdice and Vicente 1994): guess which y are positive, solve
for them, exchange all that contradict the guess; single exchanges when that makes no progress.
Where rounding makes it wander, nonnegative least squares on the Cholesky factor (Lawson and
Hanson 1974) decides.
"""

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dposv, dpotrf
from scipy.optimize import nnls

from app.core.arrays import Floats, Mask

RIDGES = (1e-12, 1e-9, 1e-6)
"""Added to the unit diagonal, the next where the one before is not enough."""
PATIENCE = 3
"""Full exchanges without fewer contradictions before single ones."""
SLACK = 1e-12
FLAT = 1e-200
"""Curvature that counts as none; such a class has a multiplier below 1e-100."""


def nonnegative_qp(H: Floats, b: Floats, centre: Floats, guess: Mask) -> Floats | None:
    """The minimiser y (C values), or None where no factorisation succeeds.

    Variables are scaled to unit curvature; those without curvature are zero, and so are those with
    b_k ≤ 0 where row k of H has no negative number: their slope is never below −b_k. (Of hardly any
    curvature, they would scale b out of all proportion.) The ridge pulls towards ``centre``
    (C, ≥ 0), which picks an answer where H is singular. ``guess``: which y are thought positive.
    """
    alive = (H.diagonal() > FLAT) & ((b > 0) | (H < 0).any(axis=1))
    if not alive.all():
        return _of_some(H, b, centre, guess, alive)
    scale = 1.0 / np.sqrt(H.diagonal())
    Q = H * scale[:, None] * scale
    c, z0 = b * scale, centre / scale
    for ridge in RIDGES:
        np.fill_diagonal(Q, 1.0 + ridge)
        pulled = c + ridge * z0
        z = _pivot(Q, pulled, guess)
        if z is None:
            z = _least_squares(Q, pulled)
        if z is not None:
            return z * scale
    return None


def _of_some(H: Floats, b: Floats, centre: Floats, guess: Mask, alive: Mask) -> Floats | None:
    """The minimiser over the variables in ``alive``, the others zero."""
    y = np.zeros(len(b))
    if alive.any():
        minimiser = nonnegative_qp(H[np.ix_(alive, alive)], b[alive], centre[alive], guess[alive])
        if minimiser is None:
            return None
        y[alive] = minimiser
    return y


def _pivot(Q: Floats, c: Floats, guess: Mask) -> Floats | None:
    """Block pivoting from the guess; None if it does not end or a block is not definite."""
    classes = len(c)
    free = guess.copy()
    fewest, patience = classes + 1, PATIENCE
    slack = SLACK * (1.0 + np.abs(c))
    for _ in range(30 + 2 * classes):
        z = _solve(Q, c, free)
        if z is None:
            return None
        wrong = np.where(free, z < 0, Q @ z - c < -slack)
        count = int(np.count_nonzero(wrong))
        if count == 0:
            return z
        if count < fewest:
            fewest, patience = count, PATIENCE
        elif patience > 0:
            patience -= 1
        else:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        free ^= wrong
    return None


def _solve(Q: Floats, c: Floats, free: Mask) -> Floats | None:
    """Q z = c on the free variables, the others zero."""
    z: Floats
    if free.all():
        _, z, info = dposv(Q, c)
        return z if info == 0 else None
    z = np.zeros(len(c))
    positions = np.flatnonzero(free)
    if len(positions) == 0:
        return z
    _, part, info = dposv(Q[np.ix_(positions, positions)], c[positions])
    if info != 0:
        return None
    z[positions] = part
    return z


def _least_squares(Q: Floats, c: Floats) -> Floats | None:
    """The same problem as min ‖Lᵀz − L⁻¹c‖² over z ≥ 0 with Q = L Lᵀ."""
    factor, info = dpotrf(Q, lower=1)
    if info != 0:
        return None
    lower = np.tril(factor)
    try:
        z: Floats = nnls(lower.T, solve_triangular(lower, c, lower=True))[0]
    except RuntimeError:
        return None
    return z if np.isfinite(z).all() else None
