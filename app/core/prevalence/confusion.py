"""Confusion matrices, and the estimators that invert them.

Orientation: counts have one row per true class, ``M`` has one *column* per true class, so that
v = M p (thesis section 4.4; its section 4.5 uses the transpose, which is wrong).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import quadprog

from app.core.prevalence.arrays import Codes, Floats

RANK_TOLERANCE = 1e-10
"""Singular values below this share of the largest count as zero."""
NOTHING = 1e-9
"""A sum of shares below this is rounding."""
GAP_TOLERANCE = 1e-8
"""A quadratic programme is solved when its Frank-Wolfe gap is below this."""

Status = Literal["converged", "inaccurate", "failed"]


@dataclass(frozen=True)
class ConfusionMatrix:
    """Counts of labelled rows, C true classes × J predicted outputs; no row is empty."""

    counts: Floats

    @property
    def conditional(self) -> Floats:
        """M[j, k] = P(output j | class k), J × C; its columns sum to one."""
        rates: Floats = self.counts / self.counts.sum(axis=1, keepdims=True)
        return rates.T

    @property
    def total(self) -> float:
        """How many rows were counted."""
        return float(self.counts.sum())

    @classmethod
    def of_decisions(cls, labels: Codes, decided: Codes, classes: int) -> "ConfusionMatrix":
        """Counts of (label, decision) pairs of a validation set."""
        cells = np.bincount(labels * classes + decided, minlength=classes * classes)
        return cls(cells.reshape(classes, classes).astype(np.float64))


@dataclass(frozen=True)
class Inversion:
    """A solution of M p = v.

    ``prevalence``: on the simplex. ``raw``: the least-squares solution before clipping, for
    ``acc``. ``unidentified``: positions of the classes whose shares the outputs do not
    determine. ``optimality_gap``: for ``acc-qp``, an upper bound on how far
    ½‖M p − v‖² is above its minimum.
    """

    prevalence: Floats
    status: Status
    unidentified: tuple[int, ...]
    raw: Floats | None = None
    optimality_gap: float | None = None

    @property
    def inadmissible(self) -> bool:
        """Whether clipping and rescaling changed the linear solution."""
        return self.raw is not None and not np.allclose(self.raw, self.prevalence, 0, 1e-12)


def decisions(posteriors: Floats) -> Codes:
    """Position of the largest posterior of each row, the first on ties; N codes."""
    codes: Codes = np.argmax(posteriors, axis=1)
    return codes


def decision_counts(posteriors: Floats) -> Floats:
    """How many decisions fall on each class, C values."""
    if posteriors.shape[1] == 2:
        second = float(np.count_nonzero(posteriors[:, 1] > posteriors[:, 0]))
        return np.array([len(posteriors) - second, second])
    counts = np.bincount(decisions(posteriors), minlength=posteriors.shape[1])
    return counts.astype(np.float64)


def acc(conditional: Floats, shares: Floats, source: Floats) -> Inversion:
    """Adjusted count: least-squares solution of M p = v, clipped at zero and rescaled.

    ``conditional``: M, J × C; ``shares``: v, J. Where M is singular, the solution nearest to
    ``source``. Thesis section 4.4 (orientation corrected); clipping after Forman.
    """
    basis = _Factors.of(conditional)
    raw = source + basis.solve(shares - conditional @ source)
    clipped = np.maximum(raw, 0)
    total = float(clipped.sum())
    if total <= NOTHING:
        return Inversion(source, "failed", basis.unidentified, raw)
    return Inversion(clipped / total, "converged", basis.unidentified, raw)


def acc_qp(conditional: Floats, shares: Floats, source: Floats) -> Inversion:
    """Constrained adjusted count: argmin over the simplex of ½‖M p − v‖².

    Solved in the basis of M's right singular vectors, p = source + V y, where the Hessian is
    diagonal; directions that M does not see get a curvature too small to matter, so that the
    minimiser nearest to ``source`` is chosen. Thesis section 4.3 (orientation corrected).
    """
    basis = _Factors.of(conditional)
    curvature = basis.curvature
    target = basis.left @ (shares - conditional @ source)
    linear = np.zeros(len(source))
    linear[: len(target)] = basis.singular * target
    constraints = np.column_stack([basis.right.sum(axis=0), basis.right.T])
    bounds = np.concatenate([[1.0 - source.sum()], -source])
    inverse_root = np.diag(1 / np.sqrt(curvature))
    try:
        solution = quadprog.solve_qp(inverse_root, linear, constraints, bounds, 1, True)[0]
    except ValueError:
        return Inversion(source, "failed", basis.unidentified)
    p = np.maximum(source + basis.right @ solution, 0)
    if not np.isfinite(p).all() or p.sum() <= 0:
        return Inversion(source, "failed", basis.unidentified)
    p /= p.sum()
    gradient = conditional.T @ (conditional @ p - shares)
    gap = max(float(gradient @ p - gradient.min()), 0.0)
    status: Status = "converged" if gap <= GAP_TOLERANCE else "inaccurate"
    return Inversion(p, status, basis.unidentified, optimality_gap=gap)


@dataclass(frozen=True)
class _Factors:
    """M = left.T · diag(singular) · right.T, with every right singular vector."""

    left: Floats
    singular: Floats
    right: Floats
    rank: int

    @classmethod
    def of(cls, conditional: Floats) -> "_Factors":
        left, singular, right = np.linalg.svd(conditional, full_matrices=True)
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
        unseen = np.full(self.right.shape[0] - self.rank, 1e-9 * seen[-1])
        return np.concatenate([seen, unseen])

    @property
    def unidentified(self) -> tuple[int, ...]:
        """Classes that take part in a direction which M maps to zero."""
        unseen = np.abs(self.right[:, self.rank :]) > 1e-8
        return tuple(int(k) for k in np.flatnonzero(unseen.any(axis=1)))
