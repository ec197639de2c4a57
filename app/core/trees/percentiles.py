"""Thresholds that keep the share of values at or below them (paper, equations 5 to 7).

The share R(t) is that of *all* training values of the attribute, whatever the node, and its
inverse is over all values of the batch: under a monotone map both are the same. The paper's other
reading, counts within the node, is consistent only with the node's own total. A class-weighted
share is the mixture Σ_c P_dep(c) F_c(t), which needs no rescaling.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Codes, Floats
from app.core.trees.column import TrainingColumn

ROUNDING = 1e-9
"""Part of a share that rounding may have added to it."""


@dataclass(frozen=True)
class Share:
    """R(t): ``value``, and where it is a ratio of integers also ``count`` of ``size``."""

    value: float
    count: int | None = None
    size: int = 0

    def rows(self, of: int) -> int:
        """The smallest number of ``of`` rows whose share reaches this one.

        ⌈0.56 · 100⌉ is 57 in floating point: counts stay integers.
        """
        if self.count is not None:
            return -(-self.count * of // self.size)
        exact = self.value * of
        return int(min(np.ceil(exact - ROUNDING * max(exact, 1.0)), of))


def shares_below(
    column: TrainingColumn, thresholds: Floats, class_weights: Floats | None = None
) -> list[Share]:
    """R(t) of each threshold among the values of the column, of which there must be some.

    ``class_weights``: C, P_dep(c) / P_tr(c); then n_left = Σ_c n_left,c · weight_c (equation 7)
    is divided by the corrected total.
    """
    left = np.searchsorted(column.singles, thresholds, "right")
    if class_weights is None:
        return [Share(count / column.size, count, column.size) for count in left.tolist()]
    below = _class_counts(column, left)
    return [Share(corrected_share(b, column.class_counts - b, class_weights)) for b in below]


def _class_counts(column: TrainingColumn, left: Codes) -> Floats:
    """Class counts of the first ``left`` values, C for each of them; one pass over the column."""
    order = np.argsort(left)
    counts = np.empty((len(left), column.classes))
    total, start = np.zeros(column.classes), 0
    for i in order:
        total = total + np.bincount(column.labels[start : left[i]], minlength=column.classes)
        counts[i], start = total, left[i]
    return counts


def corrected_share(left: Floats, right: Floats, class_weights: Floats) -> float:
    """Equation 7 from C counts on either side: the left's part of the *corrected* total."""
    below, above = float(left @ class_weights), float(right @ class_weights)
    return below / (below + above)


def percentile(batch: NDArray[np.float32], share: Share) -> tuple[float, float]:
    """The smallest value of the sorted batch whose share reaches R, and the share it attains.

    R = 0 gives −∞, R = 1 the largest value. Ties can make the attained share larger than R.
    """
    rows = share.rows(len(batch))
    if rows == 0:
        return float("-inf"), 0.0
    threshold = batch[rows - 1]
    attained = int(np.searchsorted(batch, threshold, "right"))
    return float(threshold), attained / len(batch)
