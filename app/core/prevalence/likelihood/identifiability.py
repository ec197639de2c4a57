"""Which changes of the priors the likelihood cannot see, and which answer to give then.

Moving the priors along u (with Σ u = 0) leaves every density Σ_k p_k r_ik as it is when
R u = 0. Twin classes, constant rows and outputs that two classes share produce such directions.
R u = 0 holds exactly if H u = 0, for the Hessian H of the likelihood at any p with positive
densities, so one matrix answers for the whole batch.
"""

import numpy as np
from scipy.linalg.lapack import dpotrf

from app.core.arrays import Floats, Mask
from app.core.prevalence.likelihood.likelihood import Likelihood

DEPENDENT = 1e-12
"""Squared sine of the angle between columns below which they are one."""
CLEARLY = 1e-4
"""Sine of the angle between a column and those before it that is beyond doubt."""
TAKES_PART = 1e-6
FOOTHOLD = 1e-6
"""A share at zero counts as this part of its source prior, so that it can start to grow."""
SPECK = 1e-30
"""Smaller changes of a share, and columns shorter than this, are nothing."""
STEPS = 100


def unseen_directions(likelihood: Likelihood, classes: Mask | None = None) -> Floats:
    """Orthonormal basis (C × q) of the directions u with R u = 0 and Σ u = 0.

    ``classes``: mask of the classes that may change, all of positive source prior by default.
    One pass over the batch.
    """
    free = likelihood.source > 0
    if classes is not None:
        free = free & classes
    return null_directions(likelihood.hessian(likelihood.source)[0], free)


def null_directions(hessian: Floats, free: Mask) -> Floats:
    """The same for a Hessian (C × C) that is at hand; only classes in ``free`` may change.

    The rank is judged on columns scaled to length one, so that rare classes count in full.
    """
    positions = np.flatnonzero(free)
    if len(positions) < 2:
        return np.zeros((len(free), 0))
    gram = hessian[np.ix_(positions, positions)]
    length = np.sqrt(np.diag(gram))
    scale = np.where(length > SPECK, length, 1.0)
    values, vectors = np.linalg.eigh(gram / scale[:, None] / scale)
    null = vectors[:, values <= DEPENDENT * len(positions)] / scale[:, None]
    tangent = _sum_zero(null)
    basis = np.zeros((len(free), tangent.shape[1]))
    basis[positions] = tangent
    return basis


def definite(hessian: Floats, free: Mask) -> bool:
    """Whether there is clearly no such direction, from the pivots of one Cholesky factor."""
    positions = np.flatnonzero(free)
    block = hessian if len(positions) == len(free) else hessian[np.ix_(positions, positions)]
    length = np.sqrt(block.diagonal())
    if not (length > SPECK).all():
        return False
    factor, info = dpotrf(block / length[:, None] / length, clean=0)
    return bool(info == 0 and factor.diagonal().min() > CLEARLY)


def degrees_of_freedom(likelihood: Likelihood, information: Floats | None = None) -> int:
    """Dimensions of the simplex around the source priors that the likelihood can tell apart.

    ``information``: the Hessian at the source priors (C × C), where it is at hand.
    """
    known = likelihood.source > 0
    if information is None:
        information = likelihood.hessian(likelihood.source)[0]
    unseen: int = null_directions(information, known).shape[1]
    return max(int(np.count_nonzero(known)) - 1 - unseen, 0)


def taking_part(basis: Floats) -> tuple[int, ...]:
    """Positions of the classes that some direction of ``basis`` (C × q) changes."""
    if basis.shape[1] == 0:
        return ()
    return tuple(int(k) for k in np.flatnonzero(np.abs(basis).max(axis=1) > TAKES_PART))


def nearest(prevalence: Floats, basis: Floats, source: Floats) -> Floats:
    """The point prevalence + basis t of the simplex with the least Σ_k p_k ln(p_k / p0_k).

    Twins end up in proportion to their source priors, as EM leaves them. Newton's method in
    the q values of t; a step stops short of the simplex's boundary.
    """
    p = prevalence
    moving = np.abs(basis).max(axis=1) > TAKES_PART
    U, p0 = basis[moving], source[moving]
    for _ in range(STEPS):
        floored = np.where(p[moving] > SPECK, p[moving], FOOTHOLD * p0)
        gradient = U.T @ np.log(floored / p0)
        curvature = U.T @ (U / floored[:, None])
        step = np.linalg.lstsq(curvature, -gradient, rcond=None)[0]
        change = basis @ step
        falls = change < -SPECK
        reach = float((-p[falls] / change[falls]).min(initial=np.inf))
        p = np.maximum(p + min(1.0, 0.9 * reach) * change, 0.0)
        if float(np.abs(change).max(initial=0.0)) < 1e-15:
            break
    return p


def _sum_zero(null: Floats) -> Floats:
    """Orthonormal basis of the part of the span of ``null`` whose entries sum to zero."""
    if null.shape[1] == 0:
        return null
    basis, _ = np.linalg.qr(null)
    sums = basis.sum(axis=0)
    norm = float(np.linalg.norm(sums))
    if norm <= TAKES_PART:
        return basis
    _, _, right = np.linalg.svd(sums[None, :] / norm)
    rest: Floats = basis @ right[1:].T
    return rest
