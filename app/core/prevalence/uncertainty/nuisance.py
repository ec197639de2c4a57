"""What it costs that the source is only estimated.

The likelihood of a batch depends on the source through the scales s and β_k = b_k − ln p0_k of the
ratios r_ik ∝ exp(s_k ln g_ik + β_k). Both come from n validation rows. Their joint sampling
covariance follows from the rows' influences: for the calibration θ = (s, b), H⁻¹ times the gradient
of the log-loss; for p0, the mean calibrated posterior (with free biases it equals the label
frequency), (c_k − p0_k) / n + (∂p0/∂θ) times that.
"""

import numpy as np

from app.core import deadline
from app.core.arrays import Codes, Floats
from app.core.prevalence.calibration import FAMILIES, Calibration, Scaling, log_scores
from app.core.prevalence.calibration.scaling import SLOPE_PENALTY, Family, ScalingProblem

ROWS_AT_ONCE = 1 << 19
"""Numbers of a block of validation rows."""


def nuisance_covariance(
    posteriors: Floats, labels: Codes, calibration: Calibration, priors: Floats
) -> Floats:
    """Covariance of (s, β_1 … β_C), from n × C rows and their n labels.

    ``priors``: p0. s is one number where the classes share a scale, C otherwise. β is known up to a
    constant only, which no likelihood sees. Zero where p0_k is zero. A one-versus-rest or isotonic
    map is taken as exact: only p0 varies.
    """
    if calibration.method in FAMILIES:
        assert isinstance(calibration, Scaling)
        return _fitted(posteriors, labels, calibration, priors)
    classes = len(priors)
    centred = (calibration.apply(posteriors) - priors) * _inverse(priors)
    covariance = np.zeros((classes + 1, classes + 1))
    covariance[1:, 1:] = centred.T @ centred / len(posteriors) ** 2
    return covariance


def _inverse(priors: Floats) -> Floats:
    inverse: Floats = np.divide(1.0, priors, out=np.zeros(len(priors)), where=priors > 0)
    return inverse


def _fitted(posteriors: Floats, labels: Codes, calibration: Scaling, priors: Floats) -> Floats:
    n, classes = posteriors.shape
    family = FAMILIES[calibration.method]
    scales = 1 if family.shared else classes
    free = scales + (classes if family.biased else 0)
    inverse = _inverse(priors)
    outer = np.zeros((scales + 2 * classes, scales + 2 * classes))
    hessian = np.zeros((scales + classes, scales + classes))
    length = max(ROWS_AT_ONCE // (scales + 2 * classes), 1)
    for start in range(0, n, length):
        deadline.check()
        rows, codes = posteriors[start : start + length], labels[start : start + length]
        scores, fitted = log_scores(rows, calibration.floor), calibration.apply(rows)
        miss = -fitted
        miss[np.arange(len(rows)), codes] += 1.0
        slopes = miss * scores
        if family.shared:
            slopes = slopes.sum(axis=1, keepdims=True)
        influences = np.hstack([slopes, miss, fitted * inverse - (priors > 0)])
        outer += influences.T @ influences
        hessian += _information(scores, fitted, family.shared)
    # ∂(mean fitted posterior) / ∂θ, before any penalty.
    moved = hessian[scales:, :free] / n
    if calibration.regularised:
        hessian[np.arange(scales), np.arange(scales)] += SLOPE_PENALTY
    fit = np.zeros((free, scales + classes))
    fit[:, :free] = np.linalg.pinv(hessian[:free, :free], rcond=1e-12, hermitian=True)
    weights = np.zeros((scales + classes, scales + 2 * classes))
    weights[:free, : scales + classes] = fit
    weights[scales:, : scales + classes] -= inverse[:, None] * (moved @ fit)
    weights[scales:, scales + classes :] = -np.eye(classes) / n
    estimated: Floats = weights @ outer @ weights.T
    return estimated


def _information(scores: Floats, fitted: Floats, shared: bool) -> Floats:
    """The summed Hessian of the log-loss in (s, b)."""
    classes = scores.shape[1]
    nothing = np.zeros(classes)
    family = Family(shared, biased=True)
    problem = ScalingProblem(scores, 1.0, np.ones(len(scores)), nothing, nothing, family)
    return problem.derivatives(fitted)[1]
