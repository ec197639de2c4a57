"""Which changes of the priors the likelihood cannot see.

Moving the priors along u (with Σ u = 0) leaves every density Σ_k p_k r_ik as it is when
R u = 0. Twin classes, constant rows and outputs that two classes share produce such directions.
"""

import numpy as np

from app.core.prevalence.arrays import Floats, Mask
from app.core.prevalence.likelihood import Likelihood

DEPENDENT = 1e-12
"""Squared sine of the angle between columns below which they are one."""
TAKES_PART = 1e-6


def unseen_directions(likelihood: Likelihood, classes: Mask | None = None) -> Floats:
    """Orthonormal basis (C × q) of the directions u with R u = 0 and Σ u = 0.

    ``classes``: mask of the classes that may change, all of positive source prior by default.
    The rank is judged on columns scaled to length one, so that rare classes count in full.
    """
    free = likelihood.source > 0
    if classes is not None:
        free = free & classes
    positions = np.flatnonzero(free)
    basis = np.zeros((len(free), 0))
    if len(positions) < 2:
        return basis
    columns = likelihood.ratios[:, positions]
    gram = columns.T @ (likelihood.weights[:, None] * columns) / max(likelihood.size, 1.0)
    length = np.sqrt(np.diag(gram))
    seen = length > 0
    scale = np.where(seen, length, 1.0)
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    null = vectors[:, values <= DEPENDENT * len(positions)] / scale[:, None]
    tangent = _sum_zero(null)
    basis = np.zeros((len(free), tangent.shape[1]))
    basis[positions] = tangent
    return basis


def degrees_of_freedom(likelihood: Likelihood) -> int:
    """Dimensions of the simplex around the source priors that the likelihood can tell apart."""
    classes = int(np.count_nonzero(likelihood.source > 0))
    unseen: int = unseen_directions(likelihood).shape[1]
    return max(classes - 1 - unseen, 0)


def undetermined(likelihood: Likelihood, prevalence: Floats) -> tuple[int, ...]:
    """Positions of the classes whose shares could be exchanged without changing the maximum."""
    basis = unseen_directions(likelihood, prevalence > 1e-9)
    if basis.shape[1] == 0:
        return ()
    return tuple(int(k) for k in np.flatnonzero(np.abs(basis).max(axis=1) > TAKES_PART))


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
