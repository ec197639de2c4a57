"""How wrong an estimate of the shares is, and how good posteriors are.

Shares: ``true`` and ``estimated``, C values each. The measures of the SLD reassessment (Esuli,
Molinari and Sebastiani), its slips corrected: the minimum in NAE is over the true shares;
calibration and refinement error are means over classes, without a further division by the number
of bins.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.core.arrays import Codes, Floats

Bins = Literal["equal-length", "equal-count"]


def absolute_error(true: Floats, estimated: Floats) -> float:
    """AE: mean over classes of |estimated − true|."""
    return float(np.abs(estimated - true).mean())


def normalised_absolute_error(true: Floats, estimated: Floats) -> float:
    """NAE: Σ|estimated − true| / 2(1 − min true), between 0 and 1 (eq. 7). Not symmetric."""
    largest = 2.0 * (1.0 - float(true.min()))
    return float(np.abs(estimated - true).sum()) / largest if largest > 0 else 0.0


def relative_absolute_error(true: Floats, estimated: Floats, size: float) -> float:
    """RAE: mean of |estimated − true| / true, both smoothed by 1/(2 · size) first."""
    p, q = _smoothed(true, size), _smoothed(estimated, size)
    return float((np.abs(q - p) / p).mean())


def squared_error_sum(true: Floats, estimated: Floats) -> float:
    """Σ (estimated − true)²; the thesis calls it mse, but it is a sum (section 7.1.4)."""
    return float(((estimated - true) ** 2).sum())


def kullback_leibler(true: Floats, estimated: Floats, size: float) -> float:
    """KL: Σ true ln(true / estimated), both smoothed by 1/(2 · size) first."""
    p, q = _smoothed(true, size), _smoothed(estimated, size)
    return float((p * np.log(p / q)).sum())


def hellinger(true: Floats, estimated: Floats) -> float:
    """Hellinger distance: √(1 − Σ √(true · estimated)), between 0 and 1."""
    return float(np.sqrt(max(1.0 - np.sqrt(true * estimated).sum(), 0.0)))


def total_variation(true: Floats, estimated: Floats) -> float:
    """½ Σ|estimated − true|."""
    return 0.5 * float(np.abs(estimated - true).sum())


def entropy(shares: Floats) -> float:
    """−Σ p log p to the base of the number of classes, between 0 and 1; 0 for one class."""
    present = shares[shares > 0]
    if len(shares) < 2:
        return 0.0
    return abs(float((present * np.log(present)).sum() / np.log(len(shares))))


def _smoothed(shares: Floats, size: float) -> Floats:
    epsilon = 0.5 / size
    smoothed: Floats = (shares + epsilon) / (1.0 + epsilon * len(shares))
    return smoothed


@dataclass(frozen=True)
class Brier:
    """brier = calibration_error + refinement_error + remainder.

    The remainder is what varies within the bins (Stephenson, Coelho and Jolliffe 2008).

    ``brier``: mean over rows and classes of (1{true} − g)² (eq. 8), at most 2/C.
    ``calibration_error``: ≥ 0, of binned posteriors (eq. 10); 0 for calibrated ones.
    ``refinement_error``: ≥ 0, of binned posteriors (eq. 11); 0 where every bin is of one class.
    """

    brier: float
    calibration_error: float
    refinement_error: float

    @property
    def remainder(self) -> float:
        """Within-bin variance minus twice the within-bin covariance."""
        return self.brier - self.calibration_error - self.refinement_error


def brier(posteriors: Floats, labels: Codes, bins: Bins = "equal-length", count: int = 10) -> Brier:
    """Brier score of N × C posteriors, decomposed with ``count`` bins per class.

    Equal-length bins are half-open, the last one closed. Equal-count bins keep ties together.
    """
    N, classes = posteriors.shape
    truth = np.zeros((N, classes))
    truth[np.arange(N), labels] = 1.0
    score = float(((truth - posteriors) ** 2).mean())
    calibration, refinement = 0.0, 0.0
    for k in range(classes):
        place = _bin(posteriors[:, k], bins, count)
        weight = np.bincount(place, minlength=count)
        used = weight > 0
        forecast = np.bincount(place, posteriors[:, k], count)[used] / weight[used]
        observed = np.bincount(place, truth[:, k], count)[used] / weight[used]
        share = weight[used] / N
        calibration += float(share @ (forecast - observed) ** 2)
        refinement += float(share @ (observed * (1 - observed)))
    return Brier(score, calibration / classes, refinement / classes)


def _bin(values: Floats, bins: Bins, count: int) -> Codes:
    if bins == "equal-length":
        edges = np.arange(1, count) / count
        place: Codes = np.searchsorted(edges, values, side="right")
        return place
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    before = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.asarray(count * before // len(values))[group]


def log_loss(posteriors: Floats, labels: Codes) -> float:
    """−mean ln g of the true class; infinite where it was excluded."""
    with np.errstate(divide="ignore"):
        return -float(np.log(posteriors[np.arange(len(labels)), labels]).mean())


@dataclass(frozen=True)
class Decisions:
    """Quality of hard decisions, from a confusion matrix.

    ``precision``: C; 0 for a class that was never decided.
    ``recall``: C; 0 for a class without rows.
    ``f1``: C; 2 · right / (actual + predicted), 0 where that is 0/0.
    ``accuracy``: the share of right decisions.
    """

    precision: Floats
    recall: Floats
    f1: Floats
    accuracy: float

    @property
    def macro_f1(self) -> float:
        """Mean of F1 over the classes."""
        return float(self.f1.mean())


def decision_quality(counts: Floats) -> Decisions:
    """From a C × C confusion matrix, one row per true class."""
    right = counts.diagonal()
    actual, predicted = counts.sum(axis=1), counts.sum(axis=0)
    both = actual + predicted
    return Decisions(
        precision=np.divide(right, predicted, out=np.zeros(len(right)), where=predicted > 0),
        recall=np.divide(right, actual, out=np.zeros(len(right)), where=actual > 0),
        f1=np.divide(2 * right, both, out=np.zeros(len(right)), where=both > 0),
        accuracy=float(right.sum() / counts.sum()),
    )
