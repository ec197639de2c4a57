"""How well a feature map tells the classes apart, and what the theory promises from it.

Feature matching: definition 1 and theorem 1, with the corrections that Δ_min is the second smallest
eigenvalue of P G P (centred on both sides) and that the bound follows from Σ a_k/√n_k.
"""

import numpy as np

from app.core.arrays import Floats


def delta_min(G: Floats) -> float:
    """Smallest uᵀG u over unit vectors u that sum to zero; what hard matching rests on."""
    classes = len(G)
    if classes == 1:
        return 0.0
    # G may have negative eigenvalues, so that the one of the ones cannot be told by its size.
    across = np.linalg.svd(np.ones((1, classes)))[2][1:]
    return float(np.linalg.eigvalsh(across @ G @ across.T)[0])


def lambda_min(G: Floats) -> float:
    """Smallest eigenvalue of G; what soft matching rests on."""
    return float(np.linalg.eigvalsh(G)[0])


def condition(G: Floats) -> float:
    """Largest over smallest eigenvalue; infinite where G is singular."""
    values = np.linalg.eigvalsh(G)
    return float(values[-1] / values[0]) if values[0] > 1e-15 * values[-1] else float("inf")


def radius(
    shares: Floats, class_sizes: Floats, size: float, delta: float, bound: float, separation: float
) -> float:
    """Theorem 1: ‖â − a‖₂ is at most this with probability 1 − ``delta``. Loose: often above 1.

    ``shares``: a, C; ``class_sizes``: n_k; ``size``: N; ``bound``: the largest ‖Φ(x)‖;
    ``separation``: Δ_min, of soft matching λ_min. 2 C/√Δ (R_{c/δ} Σ a_k/√n_k + R_{1/δ}/√N) with
    R_x = 2 + √(2 ln 2x). Infinite where nothing separates the classes.
    """
    if separation <= 0:
        return float("inf")
    source = float((shares / np.sqrt(class_sizes)).sum()) * _factor(len(shares) / delta)
    batch = _factor(1 / delta) / np.sqrt(size)
    return float(2 * bound / np.sqrt(separation) * (source + batch))


def _factor(x: float) -> float:
    return 2.0 + float(np.sqrt(2.0 * np.log(2.0 * x)))
