"""Platt's sigmoid of a score, alone and one class against the rest."""

from typing import Literal

import numpy as np

from app.core.arrays import Codes, Floats, Mask
from app.core.prevalence.calibration.maps import OneVersusRest, floor_of, log_odds
from app.core.prevalence.calibration.scaling import Family, ScalingFit, ScalingProblem, minimise

Targets = Literal["labels", "smoothed"]


def sigmoid(scores: Floats, positive: Mask, targets: Targets = "labels") -> tuple[float, float]:
    """Slope and intercept of P(positive | score) = σ(slope · score + intercept).

    ``targets`` "labels": plain maximum likelihood, which makes the mean probability equal the
    frequency; "smoothed": (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2) (Platt 2000). In the SLD reassessment's
    eq. 14, α = −slope and β = −intercept.
    """
    scaling = _sigmoid(scores, positive, targets)
    return float(scaling.scale[0]), float(scaling.bias[1] - scaling.bias[0])


def one_versus_rest(posteriors: Floats, labels: Codes, targets: Targets) -> OneVersusRest:
    """A sigmoid of each class's log-odds against the rest, on N × C rows and their N labels."""
    floor = floor_of(posteriors)
    odds = log_odds(posteriors, floor)
    classes = posteriors.shape[1]
    slopes, intercepts = np.ones(classes), np.zeros(classes)
    regularised = False
    for k in range(classes if classes > 1 else 0):
        scaling = _sigmoid(odds[:, k], labels == k, targets)
        slopes[k], intercepts[k] = scaling.scale[0], scaling.bias[1] - scaling.bias[0]
        regularised |= scaling.regularised
    method: Literal["platt", "platt-targets"]
    method = "platt" if targets == "labels" else "platt-targets"
    return OneVersusRest(method, slopes, intercepts, floor, regularised)


def _sigmoid(scores: Floats, positive: Mask, targets: Targets) -> ScalingFit:
    """The fit of two logits, ± half the sigmoid's."""
    hit, miss = 1.0, 0.0
    if targets == "smoothed":
        count = np.count_nonzero(positive)
        hit, miss = (count + 1) / (count + 2), 1 / (len(positive) - count + 2)
    target = np.where(positive, hit, miss)
    halves = np.column_stack([-scores, scores]) / 2
    both = np.column_stack([1 - target, target])
    return minimise(ScalingProblem.soft(halves, both, Family(shared=True, biased=True)))
