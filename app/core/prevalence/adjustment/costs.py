"""Decisions of least expected cost (SLD reassessment, eq. 2, with its index corrected)."""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from app.core.arrays import Codes, Floats
from app.core.prevalence.calibration import Calibration

REACH = 700.0
"""Largest log-odds that are looked at."""


def least_cost(posteriors: Floats, costs: Floats) -> Codes:
    """argmin_d Σ_k g_ik costs[k, d] of each row, the first on ties; N codes.

    ``posteriors``: N × C, for the population decided upon; ``costs``: C × C, rows true classes,
    columns decided ones.
    """
    codes: Codes = np.argmin(np.dot(posteriors, _within_one(costs)), axis=1)
    return codes


def _within_one(costs: Floats) -> Floats:
    """The costs over a power of two that leaves none above one: no sum of them overflows."""
    return np.ldexp(costs, -int(np.frexp(np.abs(costs).max())[1]))


def score_threshold(costs: Floats, calibration: Calibration, log_weights: Floats) -> float | None:
    """The raw posterior of the second of two classes above which it is decided.

    Adjusted posteriors are ∝ c_k exp(log_weights_k), c the calibrated ones. 1.0 where the second
    class is never decided, 0.0 where always; None where the raw score says nothing, or the
    calibration runs against it.
    """
    costs = _within_one(costs)
    false_alarm = float(costs[0, 1] - costs[0, 0])
    miss = float(costs[1, 0] - costs[1, 1])
    if calibrated_log_odds(calibration, REACH) <= calibrated_log_odds(calibration, -REACH):
        return None
    if log_weights[1] == -np.inf or (miss <= 0 <= false_alarm):
        return 1.0
    if log_weights[0] == -np.inf or (false_alarm <= 0 <= miss):
        return 0.0
    if miss <= 0:
        return None
    target = math.log(false_alarm) - math.log(miss) - float(log_weights[1] - log_weights[0])
    if calibrated_log_odds(calibration, REACH) <= target:
        return 1.0
    if calibrated_log_odds(calibration, -REACH) > target:
        return 0.0

    def excess(log_odds: float) -> float:
        return calibrated_log_odds(calibration, log_odds) - target

    root = brentq(excess, -REACH, REACH, xtol=1e-13)
    return float(expit(root))


def calibrated_log_odds(calibration: Calibration, log_odds: float) -> float:
    """Log-odds of the second of two classes after calibration."""
    raw = np.array([[expit(-log_odds), expit(log_odds)]])
    first, second = calibration.powers(raw)[0]
    tiny = 5e-324
    odds = math.log(max(second, tiny)) - math.log(max(first, tiny))
    return odds + float(calibration.left_out[1] - calibration.left_out[0])
