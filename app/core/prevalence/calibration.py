"""Bias-corrected temperature scaling of a classifier's posteriors.

softmax(t · ln g + b): one scale t, one bias per class, fitted by plain maximum likelihood on
labelled rows that the classifier did not see (Alexandari et al. 2020). The gradient in b makes
the mean calibrated posterior equal the label frequency, so that the label frequency is the
right source prior for EM and for the shift test.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from app.core.prevalence.arrays import Codes, Floats

Method = Literal["bcts", "none"]

SMALLEST = 1e-300
SAFE_EXPONENT = 200.0
"""The largest of C probabilities is at least 1/C; its power is then above e to minus this."""
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

    def powers(self, posteriors: Floats) -> Floats:
        """max(g, floor)^scale, N × C: calibrated posteriors but for e^bias and a factor per row.

        A likelihood needs no more than that.
        """
        logs = np.maximum(posteriors, self.floor)
        np.log(logs, out=logs)
        logs *= self.scale
        if not 0 <= self.scale * np.log(posteriors.shape[1]) <= SAFE_EXPONENT:
            logs -= logs.max(axis=1, keepdims=True)
        np.exp(logs, out=logs)
        return logs


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


def refit(calibration: Calibration, logs: Floats, labels: Codes, weights: Floats) -> Calibration:
    """The same fit on weighted rows, from where ``calibration`` stands; for resampling.

    ``logs``: ``log_scores`` of the n × C posteriors.
    """
    start = np.concatenate([[calibration.scale], calibration.bias])
    penalty = SLOPE_PENALTY if calibration.regularised else 0.0
    fit = _newton(logs, labels, penalty, weights, start)
    if not fit.determined:
        fit = _newton(logs, labels, SLOPE_PENALTY, weights)
    return replace(calibration, scale=fit.scale, bias=fit.bias - fit.bias.mean())


@dataclass(frozen=True)
class _Fit:
    scale: float
    bias: Floats
    determined: bool
    iterations: int


def _newton(
    logs: Floats,
    labels: Codes,
    penalty: float,
    weights: Floats | None = None,
    start: Floats | None = None,
) -> _Fit:
    """Minimise mean log-loss + penalty (t − 1)² / 2N over θ = (t, b), damped Newton steps.

    The scores are divided by their spread while fitting, which makes θ well scaled whatever
    the classifier's confidence. Without a penalty the search ends as soon as the scale turns out
    not to be determined.
    """
    n, classes = logs.shape
    index = np.arange(n)
    logs = logs - logs.mean(axis=1, keepdims=True)
    spread = float(np.sqrt(np.mean(logs**2))) or 1.0
    scores = logs / spread
    share = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    frequency = np.bincount(labels, share, minlength=classes)
    scored = float(share @ scores[index, labels])
    ridge = penalty / n / spread**2
    if start is None:
        theta = np.concatenate([[0.0], np.log(frequency)])
    else:
        theta = np.concatenate([[start[0] * spread], start[1:]])

    def loss(theta: Floats) -> tuple[float, Floats]:
        logits = theta[0] * scores + theta[1:]
        logits -= logits.max(axis=1, keepdims=True)
        normaliser = np.log(np.exp(logits).sum(axis=1))
        picked = float(share @ (normaliser - logits[index, labels]))
        shrink = 0.5 * ridge * (theta[0] - spread) ** 2
        return picked + shrink, np.exp(logits - normaliser[:, None])

    value, fitted = loss(theta)
    gradient = np.empty(classes + 1)
    determined, iterations = True, 0
    while iterations < MAX_ITERATIONS:
        iterations += 1
        hessian, mean_score = _curvature(fitted, scores, share)
        hessian[0, 0] += ridge
        gradient[0] = mean_score - scored + ridge * (theta[0] - spread)
        gradient[1:] = share @ fitted - frequency
        # Rounding leaves a part along a common shift of the biases, which no step removes.
        gradient[1:] -= gradient[1:].mean()
        if penalty == 0 and not _scale_is_determined(hessian, theta[0], n):
            determined = False
            break
        step = -_solve(hessian, gradient)
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
    return _Fit(float(theta[0] / spread), theta[1:], determined, iterations)


def _curvature(fitted: Floats, scores: Floats, share: Floats) -> tuple[Floats, float]:
    """Hessian of the log-loss in (t, b), and the mean fitted score."""
    classes = fitted.shape[1]
    mean_score = np.einsum("ik,ik->i", fitted, scores)
    weighted = fitted * share[:, None]
    moment = weighted * (scores - mean_score[:, None])
    hessian = np.empty((classes + 1, classes + 1))
    hessian[0, 0] = np.einsum("ik,ik->", moment, scores)
    hessian[0, 1:] = hessian[1:, 0] = moment.sum(axis=0)
    hessian[1:, 1:] = np.diag(weighted.sum(axis=0)) - fitted.T @ weighted
    return hessian, float(share @ mean_score)


def _solve(hessian: Floats, gradient: Floats) -> Floats:
    """H⁻¹ gradient; a constant added to all biases changes nothing, so it is held at zero."""
    held = hessian.copy()
    held[1:, 1:] += 1.0 / (len(held) - 1) ** 2
    try:
        solution: Floats = cho_solve(cho_factor(held), gradient)
        return solution
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(held, gradient, rcond=1e-14)[0], np.float64)


def _scale_is_determined(hessian: Floats, slope: float, n: int) -> bool:
    """Whether the information on t, with the biases profiled out, is worth anything.

    ``slope`` is t in units of one over the scores' spread. On separable rows the optimum is at
    infinity and the information decays to nothing on the way; on constant scores there is none
    from the start.
    """
    column = hessian[1:, 0]
    padded = np.concatenate([[0.0], column])
    biases = hessian.copy()
    biases[0, 0], biases[0, 1:], biases[1:, 0] = 1.0, 0.0, 0.0
    profiled = float(hessian[0, 0] - padded @ _solve(biases, padded))
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
