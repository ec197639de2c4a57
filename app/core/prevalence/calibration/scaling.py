"""Scaling a classifier's log-posteriors: one convex fit, with different parameters free.

softmax(s_k ln g_k + b_k) by plain maximum likelihood on labelled rows that the classifier did not
see. Free are one scale (temperature scaling; with biases: bias-corrected temperature scaling,
Alexandari et al. 2020) or one scale per class (no-bias vector scaling; with biases: vector scaling,
Guo et al. 2017). The gradient in b makes the mean calibrated posterior equal the label frequency.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from app.core import deadline
from app.core.arrays import Codes, Floats, divide_rows, row_maxima, row_sums, subtract_rows
from app.core.prevalence.calibration.maps import Method, Scaling, floor_of, log_scores

MAX_ITERATIONS = 100
SLOPE_INFORMATION = 0.1
"""Below this information on the relative size of the scaled scores, no scale is determined."""
LEAST_INFORMATION = 1e-4
"""The same of scales by class: they share what there is, so that each may have less."""
NO_INFORMATION = 1e-30
SLOPE_PENALTY = 1.0
"""Weight of ½ Σ(s − 1)² against the summed log-loss, where it is needed."""


@dataclass(frozen=True)
class Family:
    """Which parameters are free: a scale for all classes or one for each; biases or none."""

    shared: bool
    biased: bool


FAMILIES: dict[Method, Family] = {
    "temperature": Family(shared=True, biased=False),
    "bcts": Family(shared=True, biased=True),
    "no-bias-vector-scaling": Family(shared=False, biased=False),
    "vector-scaling": Family(shared=False, biased=True),
}


def scaling(method: Method, posteriors: Floats, labels: Codes) -> Scaling:
    """Fit one of ``FAMILIES`` on N × C ``posteriors`` and N ``labels``.

    Every class must occur among the labels. Biases are centred to sum to zero.
    """
    floor = floor_of(posteriors)
    problem = ScalingProblem.of(log_scores(posteriors, floor), labels, FAMILIES[method])
    optimum = minimise(problem)
    return _scaling(Scaling(method, optimum.scale, optimum.bias, floor), optimum)


def refit(calibration: Scaling, logs: Floats, labels: Codes, weights: Floats) -> Scaling:
    """The same fit on weighted rows, from where ``calibration`` stands; for resampling.

    ``logs``: ``log_scores`` of the n × C posteriors.
    """
    problem = ScalingProblem.of(logs, labels, FAMILIES[calibration.method], weights)
    optimum = minimise(problem, calibration)
    return _scaling(calibration, optimum)


def _scaling(calibration: Scaling, optimum: "ScalingFit") -> Scaling:
    centred = optimum.bias - optimum.bias.mean()
    return replace(calibration, scale=optimum.scale, bias=centred, regularised=optimum.regularised)


@dataclass(frozen=True)
class ScalingProblem:
    """Mean log-loss Σ w_i (ln Σ_k e^{a_ik} − Σ_k T_ik a_ik), a = s z + b, and what it needs.

    ``scores``: z, N × C, over ``spread``, which makes the parameters well scaled whatever the
    classifier's confidence; ``share``: w, summing to one; ``scored``: Σ w T z and ``frequency``:
    Σ w T, C values each, for targets T.
    """

    scores: Floats
    spread: float
    share: Floats
    scored: Floats
    frequency: Floats
    family: Family

    @classmethod
    def of(
        cls, logs: Floats, labels: Codes, family: Family, weights: Floats | None = None
    ) -> "ScalingProblem":
        """With hard labels, N codes."""
        n, classes = logs.shape
        share = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
        scores, spread = _spread(logs, family)
        weighted = share * scores[np.arange(n), labels]
        scored: Floats = np.bincount(labels, weighted, classes).astype(np.float64)
        frequency: Floats = np.bincount(labels, share, classes).astype(np.float64)
        return cls(scores, spread, share, scored, frequency, family)

    @classmethod
    def soft(cls, logs: Floats, targets: Floats, family: Family) -> "ScalingProblem":
        """With target probabilities, N × C."""
        share = np.full(len(logs), 1.0 / len(logs))
        scores, spread = _spread(logs, family)
        return cls(scores, spread, share, share @ (targets * scores), share @ targets, family)

    @property
    def classes(self) -> int:
        """C, the number of classes."""
        classes: int = self.scores.shape[1]
        return classes

    @property
    def scales(self) -> int:
        """How many scales are free."""
        return 1 if self.family.shared else self.classes

    def split(self, theta: Floats) -> tuple[Floats, Floats]:
        """Scales (1 or C) and biases (C) of θ."""
        bias = theta[self.scales :] if self.family.biased else np.zeros(self.classes)
        return theta[: self.scales], bias

    def loss(self, theta: Floats) -> tuple[float, Floats]:
        """The mean log-loss, and the fitted posteriors, N × C."""
        scale, bias = self.split(theta)
        logits = self.scores * scale
        logits += bias
        top = row_maxima(logits)
        subtract_rows(logits, top)
        fitted = np.exp(logits)
        total = row_sums(fitted)
        divide_rows(fitted, total, fitted)
        normaliser = float(self.share @ (top + np.log(total)))
        targets = float((scale * self.scored).sum() + bias @ self.frequency)
        return normaliser - targets, fitted

    def derivatives(self, fitted: Floats) -> tuple[Floats, Floats]:
        """Gradient and Hessian of the loss in θ."""
        weighted = fitted * self.share[:, None]
        if self.family.shared:
            gradient, hessian = self._shared(fitted, weighted)
        else:
            gradient, hessian = self._by_class(fitted, weighted)
        size = len(gradient) if self.family.biased else self.scales
        return gradient[:size], hessian[:size, :size]

    def _shared(self, fitted: Floats, weighted: Floats) -> tuple[Floats, Floats]:
        mean_score = np.einsum("ik,ik->i", fitted, self.scores)
        moment = weighted * (self.scores - mean_score[:, None])
        hessian = np.empty((self.classes + 1, self.classes + 1))
        hessian[0, 0] = np.einsum("ik,ik->", moment, self.scores)
        hessian[0, 1:] = hessian[1:, 0] = moment.sum(axis=0)
        hessian[1:, 1:] = np.diag(weighted.sum(axis=0)) - fitted.T @ weighted
        mean = float(self.share @ mean_score) - float(self.scored.sum())
        return np.concatenate([[mean], self._excess(weighted)]), hessian

    def _by_class(self, fitted: Floats, weighted: Floats) -> tuple[Floats, Floats]:
        moment = weighted * self.scores
        mean = moment.sum(axis=0)
        square = np.einsum("ik,ik->k", moment, self.scores)
        both = np.hstack([fitted * self.scores, fitted])
        hessian = -both.T @ np.hstack([moment, weighted])
        size = self.classes
        first, second = np.arange(size), np.arange(size, 2 * size)
        hessian[first, first] += square
        hessian[second, second] += weighted.sum(axis=0)
        hessian[first, second] += mean
        hessian[second, first] += mean
        return np.concatenate([mean - self.scored, self._excess(weighted)]), hessian

    def _excess(self, weighted: Floats) -> Floats:
        """Gradient in the biases; rounding leaves a common shift, which no step removes."""
        excess: Floats = weighted.sum(axis=0) - self.frequency
        excess -= excess.mean()
        return excess


@dataclass(frozen=True)
class ScalingFit:
    """The minimiser, in the units of the log-scores.

    ``scale``: C, equal where the family shares one.
    ``bias``: C, zero where the family has none.
    ``regularised``: whether a scale had to be drawn towards one.
    ``iterations``: Newton steps.
    """

    scale: Floats
    bias: Floats
    regularised: bool
    iterations: int


def minimise(problem: ScalingProblem, near: Scaling | None = None) -> ScalingFit:
    """The minimiser of the log-loss; with the penalty only if a scale is not determined.

    ``near``: where to start from, penalised from the outset if that was.
    """
    optimum = None
    if near is None or not near.regularised:
        optimum = _newton(problem, 0.0, None if near is None else _theta(problem, near))
    if optimum is None:
        optimum = _newton(problem, SLOPE_PENALTY, None)
    assert optimum is not None
    return optimum


def _theta(problem: ScalingProblem, near: Scaling) -> Floats:
    scale = near.scale[: problem.scales] * problem.spread
    return np.concatenate([scale, near.bias]) if problem.family.biased else scale


def _newton(problem: ScalingProblem, penalty: float, start: Floats | None) -> ScalingFit | None:
    """Damped Newton steps on loss + penalty Σ(s − 1)² / 2N, from the model without scores.

    None as soon as a scale turns out not to be determined without a penalty.
    """
    n, scales = len(problem.share), problem.scales
    ridge = penalty / n / problem.spread**2
    theta = _without_scores(problem) if start is None else start

    def penalised(theta: Floats) -> tuple[float, Floats]:
        value, fitted = problem.loss(theta)
        return value + 0.5 * ridge * float(((theta[:scales] - problem.spread) ** 2).sum()), fitted

    value, fitted = penalised(theta)
    iterations = 0
    while iterations < MAX_ITERATIONS:
        deadline.check()
        iterations += 1
        gradient, hessian = problem.derivatives(fitted)
        gradient[:scales] += ridge * (theta[:scales] - problem.spread)
        hessian[np.arange(scales), np.arange(scales)] += ridge
        if penalty == 0 and not _determined(hessian, theta[:scales], n):
            return None
        step = -_solve(_pinned(hessian, scales), gradient)
        decrement = -float(gradient @ step)
        if decrement * n < 1e-20:
            break
        length = 1.0
        while length > 1e-8:
            new_value, new_fitted = penalised(theta + length * step)
            if new_value <= value - 1e-4 * length * decrement + 1e-15 * (1 + abs(value)):
                break
            length /= 2
        else:
            break
        theta, value, fitted = theta + length * step, new_value, new_fitted
    scale, bias = problem.split(theta)
    scale = np.broadcast_to(scale / problem.spread, problem.classes).copy()
    return ScalingFit(scale, bias, penalty > 0, iterations)


def _without_scores(problem: ScalingProblem) -> Floats:
    scale = np.zeros(problem.scales)
    return np.concatenate([scale, np.log(problem.frequency)]) if problem.family.biased else scale


def _spread(logs: Floats, family: Family) -> tuple[Floats, float]:
    """Scores of unit spread; a common scale sees no constant of a row, so that it is removed."""
    scores = logs - logs.mean(axis=1, keepdims=True) if family.shared else logs
    spread = float(np.sqrt(np.mean(scores**2))) or 1.0
    return scores / spread, spread


def _solve(matrix: Floats, right: Floats) -> Floats:
    try:
        solution: Floats = cho_solve(cho_factor(matrix), right)
        return solution
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=1e-14)[0], np.float64)


def _pinned(hessian: Floats, scales: int) -> Floats:
    """H where a constant added to all biases, which changes nothing, is held at zero."""
    pinned = hessian.copy()
    biases = len(hessian) - scales
    if biases:
        pinned[scales:, scales:] += 1.0 / biases**2
    return pinned


def _determined(hessian: Floats, slopes: Floats, n: int) -> bool:
    """Whether the information on each scale, the rest profiled out, is worth anything.

    ``slopes``: in units of one over the scores' spread. On separable rows the optimum is at
    infinity and the information decays to nothing on the way; on constant scores there is none
    from the start.
    """
    scales = len(slopes)
    pinned = _pinned(hessian, scales)
    profiled = pinned[:scales, :scales]
    if len(pinned) > scales:
        across = pinned[scales:, :scales]
        profiled = profiled - across.T @ _solve(pinned[scales:, scales:], across)
    values, vectors = np.linalg.eigh(profiled)
    variance = vectors**2 @ (1.0 / np.maximum(values, NO_INFORMATION))
    least = SLOPE_INFORMATION if scales == 1 else LEAST_INFORMATION
    return bool((n / variance * np.maximum(slopes**2, 1.0) > least).all())
