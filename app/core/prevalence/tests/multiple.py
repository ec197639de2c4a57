"""Several tests at once."""

import numpy as np

from app.core.arrays import Floats


def holm(p_values: Floats) -> Floats:
    """Adjusted p-values of G tests, for the chance of any false alarm (Holm 1979).

    The j-th smallest is max over i ≤ j of min((G − i + 1) p_(i), 1).
    """
    count = len(p_values)
    order = np.argsort(p_values, kind="stable")
    steps = np.minimum(p_values[order] * np.arange(count, 0, -1), 1.0)
    adjusted = np.empty(count)
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted
