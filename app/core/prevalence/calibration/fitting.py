"""Fitting a calibration by name, on rows that it does not calibrate, and the best by evidence."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.core.arrays import Codes, Floats
from app.core.prevalence.calibration.isotonic import isotonic
from app.core.prevalence.calibration.maps import METHODS, Calibration, Method, Scaling
from app.core.prevalence.calibration.platt import one_versus_rest
from app.core.prevalence.calibration.scaling import scaling
from app.core.prevalence.measures import log_loss

FOLDS = 5
MOST_NUMBERS = 400_000
"""Most numbers, n · C, of the rows that are calibrated across folds; a stratified part beyond."""


def fit(method: Method, posteriors: Floats, labels: Codes) -> Calibration:
    """The calibration ``method`` on n × C posteriors and n labels; every class must occur."""
    if method == "none":
        return Scaling.identity(posteriors.shape[1])
    if method == "isotonic":
        return isotonic(posteriors, labels)
    if method == "platt":
        return one_versus_rest(posteriors, labels, "labels")
    if method == "platt-targets":
        return one_versus_rest(posteriors, labels, "smoothed")
    return scaling(method, posteriors, labels)


@dataclass(frozen=True)
class Folds:
    """Rows (positions, m of n) and the fold of each, stratified by class.

    ``count`` falls below ``FOLDS`` to the size of the rarest class.
    """

    rows: Codes
    fold: Codes
    count: int

    @classmethod
    def of(
        cls, labels: Codes, classes: int, seed: int = 0, most: int = FOLDS, rows: int | None = None
    ) -> "Folds | None":
        """At most ``most`` folds, of at most about ``rows`` rows.

        None if a class has a single row, which cannot be on both sides.
        """
        counts = np.bincount(labels, minlength=classes)
        count = int(min(most, counts.min()))
        if count < 2:
            return None
        order = np.random.default_rng(seed).permutation(len(labels))
        order = order[np.argsort(labels[order], kind="stable")]
        start = np.cumsum(counts) - counts
        place = np.arange(len(labels)) - start[labels[order]]
        limit = max(rows or MOST_NUMBERS // classes, most * classes)
        if len(labels) > limit:
            sampled = place < np.maximum(counts * limit // len(labels), count)[labels[order]]
            order, place = order[sampled], place[sampled]
        return cls(order, place % count, count)


def cross_calibrated(method: Method, posteriors: Floats, labels: Codes, folds: Folds) -> Floats:
    """Calibrated posteriors of ``folds.rows``, each by a fit on the other folds; m × C."""
    rows, codes = posteriors[folds.rows], labels[folds.rows]
    if method == "none":
        return rows
    out = np.empty_like(rows)
    for f in range(folds.count):
        held_out = folds.fold == f
        out[held_out] = fit(method, rows[~held_out], codes[~held_out]).apply(rows[held_out])
    return out


def losses(
    posteriors: Floats, labels: Codes, folds: Folds, methods: Sequence[Method] = METHODS
) -> dict[Method, float]:
    """Mean log-loss of each calibration on rows that it was not fitted on.

    In the order of ``METHODS``, which is that of preference among equals.
    """
    codes = labels[folds.rows]
    return {
        method: log_loss(cross_calibrated(method, posteriors, labels, folds), codes)
        for method in methods
    }
