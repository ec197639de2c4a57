"""Posteriors under other priors (thesis eq. 3.15) and the weights that do it (eq. 3.20)."""

import numpy as np

from app.core.prevalence.arrays import Floats

LOWEST = -700.0
"""Log weights are held above this, relative to the largest: below it exp underflows."""


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
    weighted = posteriors * weights
    largest = weighted.max(axis=1, keepdims=True)
    impossible = largest[:, 0] <= 0
    np.divide(weighted, largest, out=weighted, where=largest > 0)
    weighted[impossible] = target
    weighted /= weighted.sum(axis=1, keepdims=True)
    return weighted, int(np.count_nonzero(impossible))
