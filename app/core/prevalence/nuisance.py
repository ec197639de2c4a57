"""What it costs that the source is only estimated.

The likelihood of a batch depends on the source through the scale t and β_k = b_k − ln p0_k of the
ratios r_ik ∝ exp(t ln g_ik + β_k). Both come from n validation rows. Their joint sampling
covariance follows from the rows' influences: for the calibration H⁻¹ times the gradient of the
log-loss, for the label frequencies (1{y = k} − p0_k), for mean posteriors (g_k − p0_k).
"""

import numpy as np

from app.core.prevalence.arrays import Codes, Floats
from app.core.prevalence.calibration import SLOPE_PENALTY, Calibration, log_scores

ROWS_AT_ONCE = 1 << 19
"""Numbers of a block of validation rows."""


def nuisance_covariance(
    posteriors: Floats, labels: Codes, calibration: Calibration, priors: Floats
) -> Floats:
    """Covariance of (t, β_1 … β_C), (C + 1) × (C + 1), from n × C rows and their n labels.

    ``priors``: p0, the label frequencies, or without calibration the mean posteriors. β is known
    up to a constant only, which no likelihood sees. Zero where p0_k is zero.
    """
    n, classes = posteriors.shape
    inverse = np.divide(1.0, priors, out=np.zeros(classes), where=priors > 0)
    if calibration.method == "none":
        centred = (posteriors - priors) * inverse
        covariance = np.zeros((classes + 1, classes + 1))
        covariance[1:, 1:] = centred.T @ centred / n**2
        return covariance
    outer = np.zeros((2 * classes + 1, 2 * classes + 1))
    hessian = np.zeros((classes + 1, classes + 1))
    length = max(ROWS_AT_ONCE // (2 * classes + 1), 1)
    for start in range(0, n, length):
        rows, codes = posteriors[start : start + length], labels[start : start + length]
        gradients, information = _gradients(rows, codes, calibration)
        frequencies = np.zeros((len(rows), classes))
        frequencies[np.arange(len(rows)), codes] = inverse[codes]
        influences = np.hstack([gradients, frequencies - 1.0])
        outer += influences.T @ influences
        hessian += information
    if calibration.regularised:
        hessian[0, 0] += SLOPE_PENALTY
    fit = np.linalg.pinv(hessian, rcond=1e-12, hermitian=True)
    frequency = np.eye(classes + 1, classes, -1) / n
    weights = np.hstack([fit, -frequency])
    estimated: Floats = weights @ outer @ weights.T
    return estimated


def _gradients(rows: Floats, labels: Codes, calibration: Calibration) -> tuple[Floats, Floats]:
    """Row gradients of the log-likelihood in (t, b), m × (C + 1), and its summed information."""
    scores = log_scores(rows, calibration.floor)
    fitted = calibration.apply(rows)
    mean_score = np.einsum("ik,ik->i", fitted, scores)
    moment = fitted * (scores - mean_score[:, None])
    index = np.arange(len(rows))
    gradients = np.empty((len(rows), rows.shape[1] + 1))
    gradients[:, 0] = scores[index, labels] - mean_score
    gradients[:, 1:] = -fitted
    gradients[index, labels + 1] += 1.0
    information = np.empty((rows.shape[1] + 1, rows.shape[1] + 1))
    information[0, 0] = np.einsum("ik,ik->", moment, scores)
    information[0, 1:] = information[1:, 0] = moment.sum(axis=0)
    information[1:, 1:] = np.diag(fitted.sum(axis=0)) - fitted.T @ fitted
    return gradients, information
