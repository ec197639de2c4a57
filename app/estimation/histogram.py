"""Scores before and after adjusting, counted in bins: small enough to be kept with an estimate."""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Floats
from app.core.warnings import Warning, WarningCode
from app.estimation.request import Batch, PosteriorBatch

BINS = 20
MOST_CLASSES = 50


@dataclass(frozen=True)
class Histogram:
    """Rows by class and score: bin b holds b/BINS ≤ score < (b+1)/BINS, the last one 1 too.

    ``before``: C × BINS counts, of the posteriors as they came.
    ``after``: C × BINS counts, of the posteriors adjusted to the estimate.
    """

    before: Floats
    after: Floats


def histogram(batch: Batch, adjusted: Floats | None) -> Histogram | Warning:
    """Of a batch and its adjusted rows, or why there is none."""
    if not isinstance(batch, PosteriorBatch) or adjusted is None:
        return Warning(
            WarningCode.NO_HISTOGRAM, "predicted outputs and features have no scores to count"
        )
    if batch.posteriors.shape[1] > MOST_CLASSES:
        message = f"scores are counted for at most {MOST_CLASSES} classes"
        return Warning(WarningCode.NO_HISTOGRAM, message)
    return Histogram(_counts(batch.posteriors), _counts(adjusted))


def _counts(posteriors: Floats) -> Floats:
    bins = np.minimum((posteriors * BINS).astype(np.intp), BINS - 1)
    columns = [np.bincount(column, minlength=BINS) for column in bins.T]
    return np.array(columns, dtype=np.float64)
