"""Confusion matrices, and the estimators that invert them.

Orientation: counts have one row per true class, ``M`` has one *column* per true class, so that
v = M p (thesis section 4.4; its section 4.5 uses the transpose, which is wrong).
"""

from dataclasses import dataclass

import numpy as np

from app.core import deadline
from app.core.arrays import AnyFloats, Codes, Floats, row_argmax
from app.core.prevalence.numerics import simplex
from app.core.prevalence.numerics.simplex import Factors, Status

NOTHING = 1e-9
"""A sum of shares below this is rounding."""


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

    ``prevalence``: C shares on the simplex.
    ``status``: ``converged``, ``inaccurate`` (the gap exceeds the tolerance), or ``failed``.
    ``unidentified``: positions of the classes whose shares the outputs do not determine.
    ``raw``: of ``acc``, C, the least-squares solution before clipping; None for others.
    ``optimality_gap``: of ``acc-qp``, ≥ 0, an upper bound on how far ½‖M p − v‖² is above its
        minimum; None for ``acc``.
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


def decisions(posteriors: AnyFloats) -> Codes:
    """Position of the largest posterior of each row, the first on ties; N codes."""
    return row_argmax(posteriors)


def decision_counts(posteriors: AnyFloats) -> Floats:
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
    basis = Factors.of(conditional)
    raw = source + basis.solve(shares - conditional @ source)
    clipped = np.maximum(raw, 0)
    total = float(clipped.sum())
    if total <= NOTHING:
        return Inversion(source, "failed", basis.unidentified, raw)
    return Inversion(clipped / total, "converged", basis.unidentified, raw)


def acc_qp(conditional: Floats, shares: Floats, source: Floats, soft: bool = False) -> Inversion:
    """Constrained adjusted count: argmin over the simplex of ½‖M p − v‖² (see ``simplex``).

    ``soft``: sums below one are allowed. Where M is singular, the minimiser nearest to ``source``.
    Thesis section 4.3 (orientation corrected); BBSE+ of feature matching.
    """
    minimum = simplex.least_squares(conditional, shares, source, soft)
    gap = minimum.gap
    return Inversion(minimum.values, minimum.status, minimum.unidentified, optimality_gap=gap)


def acc_many(conditional: Floats, shares: Floats, source: Floats) -> Floats:
    """``acc`` of B problems at once, B × C; M is B × J × C, v is B × J."""
    residual = shares - conditional @ source
    inverse = np.linalg.pinv(conditional, rcond=1e-10)
    raw = source + np.einsum("bkj,bj->bk", inverse, residual)
    clipped = np.maximum(raw, 0)
    totals = clipped.sum(axis=1, keepdims=True)
    return np.where(totals > NOTHING, clipped / np.maximum(totals, NOTHING), source)


def acc_qp_many(conditional: Floats, shares: Floats, source: Floats, soft: bool = False) -> Floats:
    """``acc_qp`` of B problems, B × C; M is B × J × C, v is B × J."""
    estimates = np.empty((len(shares), len(source)))
    for b, (M, v) in enumerate(zip(conditional, shares, strict=True)):
        deadline.check()
        estimates[b] = acc_qp(M, v, source, soft).prevalence
    return estimates
