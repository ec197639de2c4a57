"""Decisions of least expected cost (SLD reassessment, eq. 2, with its index corrected)."""

import math

import numpy as np

from app.core.prevalence.arrays import Codes, Floats


def least_cost(posteriors: Floats, costs: Floats) -> Codes:
    """argmin_d Σ_k g_ik costs[k, d] of each row, the first on ties; N codes.

    ``posteriors``: N × C, for the population decided upon; ``costs``: C × C, rows true classes,
    columns decided ones.
    """
    codes: Codes = np.argmin(posteriors @ costs, axis=1)
    return codes


def score_threshold(costs: Floats, scale: float, offsets: Floats) -> float | None:
    """The raw posterior of the second of two classes above which it is decided.

    Adjusted posteriors are ∝ exp(scale · ln g_k + offsets_k), scale > 0. 1.0 where the second
    class is never decided, 0.0 where always; None where the raw score says nothing (scale ≤ 0).
    """
    false_alarm = float(costs[0, 1] - costs[0, 0])
    miss = float(costs[1, 0] - costs[1, 1])
    if scale <= 0:
        return None
    if offsets[1] == -np.inf or (miss <= 0 <= false_alarm):
        return 1.0
    if offsets[0] == -np.inf or (false_alarm <= 0 <= miss):
        return 0.0
    if miss <= 0:
        return None
    log_odds = (math.log(false_alarm / miss) - float(offsets[1] - offsets[0])) / scale
    if log_odds > 0:
        return 1.0 / (1.0 + math.exp(-min(log_odds, 700.0)))
    odds = math.exp(max(log_odds, -700.0))
    return odds / (1.0 + odds)
