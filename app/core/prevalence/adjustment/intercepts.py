"""Adjusting a softmax model by its intercepts (thesis eqs. 3.20 and 6.3)."""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Floats


@dataclass(frozen=True)
class AdjustedIntercepts:
    """The adjusted model: softmax(scale · weights·x + intercepts).

    ``scale``: factor of the weights.
    ``intercepts``: C.
    """

    scale: float
    intercepts: Floats


def adjusted_intercepts(
    intercepts: Floats, scale: float, offsets: Floats, reference: int | None = None
) -> AdjustedIntercepts:
    """Intercepts of a softmax model whose posteriors are then the adjusted ones.

    ``intercepts``: C, always the original ones, never those of an earlier adjustment;
    ``offsets``: C, calibration bias plus ln(p_k / p0_k); ``reference``: the class whose intercept
    is fixed to zero in reference coding, which stays there. Exact only for a softmax link.
    """
    adjusted = scale * intercepts + offsets
    if reference is not None:
        adjusted = adjusted - adjusted[reference]
    return AdjustedIntercepts(scale, np.asarray(adjusted))
