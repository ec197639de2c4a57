"""Isotonic calibration: the best non-decreasing curve for each class (Zadrozny and Elkan 2002)."""

import numpy as np
from scipy.optimize import isotonic_regression

from app.core.arrays import Codes, Floats, Mask
from app.core.prevalence.calibration.maps import Isotonic


def isotonic(posteriors: Floats, labels: Codes) -> Isotonic:
    """Least-squares monotone fit of 1{label = k} on g_k, within [1/(n + 2), 1 − 1/(n + 2)].

    The bounds keep a row from being impossible; the bounded optimum is the clipped one. One class
    against the rest, on N × C rows.
    """
    curves = [_curve(g, labels == k) for k, g in enumerate(posteriors.T)]
    return Isotonic(tuple(x for x, _ in curves), tuple(y for _, y in curves))


def _curve(scores: Floats, positive: Mask) -> tuple[Floats, Floats]:
    """Ends of the level stretches, and their levels; ties are one point."""
    points, group, count = np.unique(scores, return_inverse=True, return_counts=True)
    share = np.bincount(group, positive) / count
    levels = isotonic_regression(share, weights=count).x
    change = np.flatnonzero(np.diff(levels) > 0)
    ends = np.unique(np.concatenate([[0], change, change + 1, [len(points) - 1]]))
    least = 1.0 / (len(scores) + 2)
    return points[ends], np.clip(levels[ends], least, 1.0 - least)
