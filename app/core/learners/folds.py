"""Stratified folds: every class in every part."""

import numpy as np

from app.core.arrays import Codes


def fold_count(labels: Codes, folds: int) -> int:
    """``folds``, or the rows of the rarest class where those are fewer."""
    counts = np.bincount(labels)
    return int(min(folds, counts[counts > 0].min()))


def stratified_folds(labels: Codes, folds: int, seed: int) -> Codes:
    """The fold of each of N rows, drawn from ``seed``.

    The shuffled rows of a class are dealt one by one, the next class going on where the last one
    ended: folds differ by at most one row in all, and by at most one of each class. With at least
    ``folds`` >= 2 rows of each class, each fold and the rest of it hold every class.
    """
    rng = np.random.default_rng(seed)
    fold = np.empty(len(labels), dtype=np.intp)
    dealt = 0
    for k in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == k))
        fold[rows] = (dealt + np.arange(len(rows))) % folds
        dealt += len(rows)
    return fold
