"""Strided subsamples of a large batch, on which its answer is prepared."""

import math

from app.core.prevalence.likelihood.likelihood import Likelihood

STRIDES, STRIDES_OF_TWO, STRIDES_OF_MANY_OF_TWO = (64, 8), (16,), (256, 32)
"""Every how manieth row is taken: in general, for two classes, for many rows of two classes."""
MANY = 800_000
"""Rows of two classes of which a smaller part is enough for one pass to suffice, mostly."""
COPIED = 1 << 18
"""Numbers in the subsample of a batch that comes in chunks."""
FEWEST = 2000
FEWEST_ELSEWHERE = 500
"""Fewest rows of the one sample that there is of rows that are not at hand."""
SUBSAMPLE_GAP = 0.02
"""A subsample of n rows is solved to this over √n: multipliers are no surer than about 1/√n."""


def subsamples(likelihood: Likelihood) -> list[Likelihood]:
    """Subsamples from the smallest to the largest, none with too few rows.

    Chunks give one, which is copied and must be small; rows elsewhere what was sent of them.
    """
    if not likelihood.at_hand:
        sample = likelihood.strided(1)
        return [sample] if sample.rows >= max(FEWEST_ELSEWHERE, 10 * len(sample.known)) else []
    rows, classes = likelihood.rows, len(likelihood.known)
    strides: tuple[int, ...] = STRIDES
    if classes == 2:
        strides = STRIDES_OF_TWO if rows < MANY else STRIDES_OF_MANY_OF_TWO
    if likelihood.blocks.length is None:
        strides = (max(strides[-1], math.ceil(rows * len(likelihood.source) / COPIED)),)
    enough = max(FEWEST, 10 * classes)
    return [likelihood.strided(step) for step in strides if rows >= enough * step]


def sufficient(sample: Likelihood) -> float:
    """The optimality gap to which a subsample is solved."""
    return SUBSAMPLE_GAP / math.sqrt(max(sample.size, 1.0))
