"""Bias-corrected temperature scaling of a classifier's posteriors.

softmax(t · ln g + b): one scale t, one bias per class, fitted by plain maximum likelihood on
labelled rows that the classifier did not see (Alexandari et al. 2020). The gradient in b makes
the mean calibrated posterior equal the label frequency, so that the label frequency is the
right source prior for EM and for the shift test.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.core.prevalence.arrays import Codes, Floats

Method = Literal["bcts", "none"]

SMALLEST = 1e-300
MAX_ITERATIONS = 100
SLOPE_INFORMATION = 0.1
"""Below this information on the relative size of the scaled scores, t is not determined."""
SLOPE_PENALTY = 1.0
"""Weight of ½(t − 1)² against the summed log-loss, where it is needed."""


@dataclass(frozen=True)
class Calibration:
    """The map g → softmax(scale · ln max(g, floor) + bias).

    ``floor`` replaces exact zeros: half the smallest positive posterior of the validation set
    if that holds a zero, else a number that only guards the logarithm. ``regularised``: the
    validation set did not determine the scale (separable or constant scores), which was drawn
    towards one.
    """

    method: Method
    scale: float
    bias: Floats
    floor: float = 0.0
    regularised: bool = False

    @classmethod
    def identity(cls, classes: int) -> "Calibration":
        """Posteriors as they are."""
        return cls("none", 1.0, np.zeros(classes))

    def apply(self, posteriors: Floats) -> Floats:
        """Calibrated posteriors, N × C; the argument itself when there is nothing to do."""
        if self.method == "none":
            return posteriors
        return _softmax(self.scale * log_scores(posteriors, self.floor) + self.bias)


def bcts(posteriors: Floats, labels: Codes) -> Calibration:
    """Fit bias-corrected temperature scaling on N × C ``posteriors`` and N ``labels``.

    Every class must occur among the labels. Newton's method on the convex log-loss, from the
    model without scores (t = 0). Biases are centred to sum to zero.
    """
    floor = _floor(posteriors)
    logs = log_scores(posteriors, floor)
    fit = _newton(logs, labels, penalty=0.0)
    regularised = not fit.determined
    if regularised:
        fit = _newton(logs, labels, penalty=SLOPE_PENALTY)
    return Calibration("bcts", fit.scale, fit.bias - fit.bias.mean(), floor, regularised)


@dataclass(frozen=True)
class _Fit:
    scale: float
    bias: Floats
    determined: bool


def _newton(logs: Floats, labels: Codes, penalty: float) -> _Fit:
    """Minimise mean log-loss + penalty (t − 1)² / 2N over θ = (t, b), damped Newton steps.

    The scores are divided by their spread while fitting, which makes θ well scaled whatever
    the classifier's confidence.
    """
    n, classes = logs.shape
    logs = logs - logs.mean(axis=1, keepdims=True)
    spread = float(np.sqrt(np.mean(logs**2)))
    if spread == 0:
        spread = 1.0
    scores = logs / spread
    frequency = np.bincount(labels, minlength=classes) / n
    scored = np.bincount(labels, scores[np.arange(n), labels], minlength=classes).sum() / n
    ridge = penalty / n / spread**2
    theta = np.concatenate([[0.0], np.log(frequency)])

    def loss(theta: Floats) -> tuple[float, Floats]:
        logits = theta[0] * scores + theta[1:]
        logits -= logits.max(axis=1, keepdims=True)
        normaliser = np.log(np.exp(logits).sum(axis=1))
        picked = float(np.mean(normaliser - logits[np.arange(n), labels]))
        shrink = 0.5 * ridge * (theta[0] - spread) ** 2
        return picked + shrink, np.exp(logits - normaliser[:, None])

    value, fitted = loss(theta)
    hessian = np.zeros((classes + 1, classes + 1))
    for _ in range(MAX_ITERATIONS):
        mean_score = np.einsum("ik,ik->i", fitted, scores)
        moment = fitted * (scores - mean_score[:, None])
        gradient = np.empty(classes + 1)
        gradient[0] = mean_score.mean() - scored + ridge * (theta[0] - spread)
        gradient[1:] = fitted.mean(axis=0) - frequency
        hessian[0, 0] = np.einsum("ik,ik->", moment, scores) / n + ridge
        hessian[0, 1:] = hessian[1:, 0] = moment.mean(axis=0)
        hessian[1:, 1:] = np.diag(fitted.mean(axis=0)) - fitted.T @ fitted / n
        step = -np.linalg.pinv(hessian, rcond=1e-14, hermitian=True) @ gradient
        decrement = -float(gradient @ step)
        if decrement * n < 1e-20:
            break
        length = 1.0
        while length > 1e-8:
            new_value, new_fitted = loss(theta + length * step)
            if new_value <= value - 1e-4 * length * decrement + 1e-15:
                break
            length /= 2
        else:
            break
        theta, value, fitted = theta + length * step, new_value, new_fitted
    return _Fit(float(theta[0] / spread), theta[1:], _scale_is_determined(hessian, theta[0], n))


def _scale_is_determined(hessian: Floats, slope: float, n: int) -> bool:
    """Whether the information on t, with the biases profiled out, is worth anything.

    ``slope`` is t in units of one over the scores' spread.
    On separable rows the optimum is at infinity and the information decays to nothing on the
    way; on constant scores there is none from the start.
    """
    inner = np.linalg.pinv(hessian[1:, 1:], rcond=1e-14, hermitian=True)
    profiled = float(hessian[0, 0] - hessian[0, 1:] @ inner @ hessian[1:, 0])
    return n * profiled * max(slope**2, 1.0) > SLOPE_INFORMATION


def _floor(posteriors: Floats) -> float:
    smallest = float(posteriors.min())
    if smallest > 0:
        return SMALLEST
    return max(float(posteriors[posteriors > 0].min()) / 2, SMALLEST)


def log_scores(posteriors: Floats, floor: float) -> Floats:
    """Ln max(g, floor), N × C."""
    logs: Floats = np.log(np.maximum(posteriors, floor))
    return logs


def _softmax(logits: Floats) -> Floats:
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits
