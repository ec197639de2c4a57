"""How often the raw likelihood-ratio test would alarm without a shift.

If the mean posterior misses the source priors by δ, the statistic is noncentral chi-square with
noncentrality N δᵀ V⁻ δ, V = E (g − p0)(g − p0)ᵀ on the source.
"""

import numpy as np
from scipy.special import chdtri, chndtr

from app.core.arrays import Floats


def second_moment(posteriors: Floats, priors: Floats) -> Floats:
    """V of n × C posteriors about C ``priors``, C × C."""
    mean = posteriors.mean(axis=0)
    cross = np.outer(mean, priors)
    moment: Floats = np.dot(posteriors.T, posteriors) / len(posteriors) - cross - cross.T
    moment += np.outer(priors, priors)
    return moment


def raw_false_alarm_rate(
    gap: Floats, second_moment: Floats, size: float, significance: float
) -> float:
    """Probability that the raw test on ``size`` rows rejects at ``significance``.

    ``gap``: δ, C; ``second_moment``: V, C × C, of rank at most C − 1.
    """
    values, vectors = np.linalg.eigh(second_moment)
    seen = values > 1e-12 * max(float(values.max()), 1e-300)
    degrees = min(int(np.count_nonzero(seen)), len(gap) - 1)
    if degrees == 0:
        return significance
    inner = (vectors.T @ gap)[seen]
    # δδᵀ ≤ V, so that δᵀV⁻δ is at most one but for rounding.
    noncentrality = size * min(float((inner**2 / values[seen]).sum()), 1.0)
    limit = float(chdtri(degrees, significance))
    return float(1.0 - chndtr(limit, degrees, noncentrality))
