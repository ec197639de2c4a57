"""Adjusted soft counts: the mean posterior instead of the share of decisions.

With M[j, k] the mean calibrated posterior of class j over labelled rows of class k, the mean
posterior of a batch is v = M p (probabilistic adjusted count, Bella et al. 2010); solved on the
simplex as in ``confusion.acc_qp``. Any scores do: they need not be calibrated.
"""

import numpy as np

from app.core.arrays import Codes, Floats
from app.core.prevalence.estimators.confusion import acc_qp_many
from app.core.prevalence.likelihood.means import RowMean
from app.core.prevalence.replicates import REPLICATES, Replicates


def soft_conditional(posteriors: Floats, labels: Codes) -> Floats:
    """M, C × C, from n × C posteriors and n labels; every class must occur."""
    classes = posteriors.shape[1]
    totals = np.array([np.bincount(labels, g, classes) for g in posteriors.T])
    conditional: Floats = totals / np.bincount(labels, minlength=classes)
    return conditional


def soft_replicates(
    batch: RowMean,
    posteriors: Floats,
    labels: Codes,
    source: Floats,
    seed: int,
    replicates: int = REPLICATES,
) -> Replicates:
    """Replicates of the estimate: v and the columns of M redrawn from normal distributions.

    ``batch``: of its rows; ``posteriors``: n × C with n ``labels``. Each mean gets the covariance
    of its rows over their number, one more row at the batch's mean or at the class's own vertex
    keeping equal rows from being certain.
    """
    rng = np.random.default_rng(seed)
    classes = posteriors.shape[1]
    shares = _means(rng, batch, source, replicates)
    columns = [
        _means(rng, RowMean.of(posteriors[labels == k]), np.eye(classes)[k], replicates)
        for k in range(classes)
    ]
    return Replicates(acc_qp_many(np.stack(columns, axis=2), shares, source), seed)


def _means(rng: np.random.Generator, rows: RowMean, other: Floats, replicates: int) -> Floats:
    """B × C draws of the mean of ``rows``, whose spread takes in the row ``other`` too."""
    n, mean = rows.size, rows.mean
    covariance = (rows.products + np.outer(other - mean, other - mean)) / n
    values, vectors = np.linalg.eigh(covariance / n)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws: Floats = mean + rng.standard_normal((replicates, len(mean))) @ root.T
    np.maximum(draws, 0.0, out=draws)
    draws /= draws.sum(axis=1, keepdims=True)
    return draws
