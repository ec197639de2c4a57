"""Sums of logarithms, several factors at a time."""

import numpy as np

from app.core.arrays import Floats

FACTORS = 8
"""So many numbers are multiplied before a logarithm is taken, which costs as much as they do."""
FEW = 1000
"""Fewer numbers than this are not worth it."""
SMALLEST_FACTOR = 1e-37
"""The product of ``FACTORS`` such numbers is still a normal number."""


def log_sum(values: Floats, weights: Floats | None = None) -> float:
    """Weighted sum of the logarithms of nonnegative ``values``; minus infinity if one is zero."""
    if weights is not None:
        return float(np.dot(weights, np.log(values)))
    if len(values) < FEW or values.min() < SMALLEST_FACTOR:
        return float(np.log(values).sum())
    length = len(values) // FACTORS
    folded = values[: FACTORS * length].reshape(FACTORS, length)
    with np.errstate(over="ignore"):
        products = np.multiply.reduce(folded, axis=0)
    total = float(np.log(products).sum() + np.log(values[FACTORS * length :]).sum())
    return total if total < np.inf else float(np.log(values).sum())
