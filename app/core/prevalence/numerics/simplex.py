"""argmin ½‖M p − v‖² over shares: p ≥ 0 with sum one, or (soft) sum at most one.

Solved in the basis of M's right singular vectors, p = centre + V y, where the Hessian is
diagonal; directions that M does not see get a curvature too small to matter, so that the
minimiser nearest to the centre is chosen. Adjusted counts and feature matching are both this
problem, M holding a column per class; where only G = MᵀM and q = Mᵀv are known, ``square_root``
gives an M and a v that have them.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import quadprog

from app.core.arrays import Floats

RANK_TOLERANCE = 1e-10
"""Singular values below this share of the largest count as zero."""
GAP_TOLERANCE = 1e-8
"""A quadratic programme is solved when its Frank-Wolfe gap is below this."""
LOST = 1e-13
"""Eigenvalues of a Gram matrix below this share of the largest are rounding."""

Status = Literal["converged", "inaccurate", "failed"]


@dataclass(frozen=True)
class Shares:
    """The minimiser of ½‖M p − v‖² over the simplex.

    ``values``: C.
    ``status``: ``converged``, ``inaccurate`` (the gap exceeds the tolerance), or ``failed``.
    ``unidentified``: positions of the classes whose shares M does not determine.
    ``gap``: ≥ 0; an upper bound on how far the objective is above its minimum; None if it failed.
    """

    values: Floats
    status: Status
    unidentified: tuple[int, ...]
    gap: float | None = None


def least_squares(M: Floats, v: Floats, centre: Floats, soft: bool = False) -> Shares:
    """The minimiser for M (J × C) and v (J); ``centre``: C shares that sum to one.

    Status ``failed`` comes with the centre, ``inaccurate`` with what was found.
    """
    basis = Factors.of(M)
    target = basis.left @ (v - M @ centre)
    linear = np.zeros(len(centre))
    linear[: len(target)] = basis.singular * target
    sums = basis.right.sum(axis=0)
    constraints = np.column_stack([-sums if soft else sums, basis.right.T])
    slack = 1.0 - centre.sum()
    bounds = np.concatenate([[-slack if soft else slack], -centre])
    inverse_root = np.diag(1 / np.sqrt(basis.curvature))
    try:
        y = quadprog.solve_qp(inverse_root, linear, constraints, bounds, 0 if soft else 1, True)[0]
    except ValueError:
        return Shares(centre, "failed", basis.unidentified)
    p = np.maximum(centre + basis.right @ y, 0)
    total = p.sum()
    if not np.isfinite(p).all() or (total <= 0 and not soft):
        return Shares(centre, "failed", basis.unidentified)
    if not soft or total > 1:
        p /= total
    gradient = M.T @ (M @ p - v)
    lowest = min(float(gradient.min()), 0.0) if soft else float(gradient.min())
    gap = max(float(gradient @ p) - lowest, 0.0)
    status: Status = "converged" if gap <= GAP_TOLERANCE * max(1.0, _size(M)) else "inaccurate"
    return Shares(p, status, basis.unidentified, gap)


def square_root(G: Floats, q: Floats) -> tuple[Floats, Floats]:
    """M (at most C × C) and v with MᵀM = G and Mᵀv = q, for a positive semidefinite G."""
    values, vectors = np.linalg.eigh(G)
    if values[-1] <= 0:
        return np.zeros((1, len(q))), np.zeros(1)
    seen = values > LOST * values[-1]
    root = np.sqrt(values[seen])
    directions = vectors[:, seen].T
    return root[:, None] * directions, directions @ q / root


def _size(M: Floats) -> float:
    return float((M**2).sum(axis=0).max(initial=0.0))


@dataclass(frozen=True)
class Factors:
    """M = left.T · diag(singular) · right.T, with every right singular vector."""

    left: Floats
    singular: Floats
    right: Floats
    rank: int

    @classmethod
    def of(cls, matrix: Floats) -> "Factors":
        """Of a J × C matrix."""
        left, singular, right = np.linalg.svd(matrix, full_matrices=True)
        rank = int(np.count_nonzero(singular > RANK_TOLERANCE * singular[0]))
        return cls(left.T[: len(singular)], singular, right.T, rank)

    def solve(self, residual: Floats) -> Floats:
        """Least-squares solution of smallest norm."""
        inner = (self.left[: self.rank] @ residual) / self.singular[: self.rank]
        return self.right[:, : self.rank] @ inner

    @property
    def curvature(self) -> Floats:
        """Squared singular values, C; unseen directions at 1e-9 of the smallest seen one."""
        seen = self.singular[: self.rank] ** 2
        smallest = seen[-1] if self.rank else 1.0
        unseen = np.full(self.right.shape[0] - self.rank, 1e-9 * smallest)
        return np.concatenate([seen, unseen])

    @property
    def unidentified(self) -> tuple[int, ...]:
        """Classes that take part in a direction which M maps to zero."""
        unseen = np.abs(self.right[:, self.rank :]) > 1e-8
        return tuple(int(k) for k in np.flatnonzero(unseen.any(axis=1)))
