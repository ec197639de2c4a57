"""Posteriors under other priors (thesis eq. 3.15) and the weights that do it (eq. 3.20)."""

import numpy as np

from app.core import deadline
from app.core.arrays import PIECE, Floats, divide_rows

LOWEST = -700.0
"""Log weights are held above this, relative to the largest: below it exp underflows."""

SMALLEST_SUM = 1e-290
"""Rows whose weighted mass is smaller are scaled by their largest entry first."""


def gains_from_nothing(source: Floats, target: Floats) -> bool:
    """Whether a class of zero source prior has a positive target prior: no weight does that."""
    return bool(((source == 0) & (target > 0)).any())


def log_weights(source: Floats, target: Floats) -> Floats:
    """ln(p_k / p0_k), C values; minus infinity where the target prior is zero.

    No class may gain from a zero source prior (``gains_from_nothing``).
    """
    ratio = np.full(len(source), -np.inf)
    present = target > 0
    ratio[present] = np.log(target[present]) - np.log(source[present])
    return ratio


def adjust(posteriors: Floats, source: Floats, target: Floats) -> tuple[Floats, int]:
    """Posteriors under priors ``target`` of rows given under priors ``source``.

    g'_ik = g_ik w_k / Σ_l g_il w_l with w_k = p_k / p0_k, N × C. A row whose mass is all on
    classes of zero target prior has no posterior; it gets the target priors, and the second
    value counts such rows.
    """
    offsets = log_weights(source, target)
    weights = np.exp(np.maximum(offsets - offsets.max(), LOWEST)) * (target > 0)
    adjusted, impossible = np.empty(posteriors.shape), 0
    length = max(PIECE // len(source), 1)
    for start in range(0, len(posteriors), length):
        deadline.check()
        part = slice(start, start + length)
        impossible += _adjust(posteriors[part], weights, target, adjusted[part])
    return adjusted, impossible


def _adjust(rows: Floats, weights: Floats, target: Floats, out: Floats) -> int:
    """Some of the rows into ``out``; how many of them are impossible."""
    sums = np.dot(rows, weights)
    np.multiply(rows, weights, out=out)
    if sums.min() > SMALLEST_SUM:
        divide_rows(out, sums, out)
        return 0
    largest = out.max(axis=1, keepdims=True)
    impossible = largest[:, 0] <= 0
    np.divide(out, largest, out=out, where=largest > 0)
    out[impossible] = target
    out /= out.sum(axis=1, keepdims=True)
    return int(np.count_nonzero(impossible))
