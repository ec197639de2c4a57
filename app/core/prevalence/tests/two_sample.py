"""The shift test by resampling the source: no chi-square, no scale.

Under no shift a batch is another sample of the source. So the validation rows are resampled twice,
once as a validation set of n rows (on which calibration and priors are fitted again), once as a
batch of N rows, and the statistic is computed as for the real batch.
"""

import numpy as np

from app.core import deadline
from app.core.arrays import Codes, Floats
from app.core.prevalence.calibration import FAMILIES, Calibration, Scaling, log_scores, refit
from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.source import without_traces

REPLICATES = 499
MOST_NUMBERS = 400_000
"""Most numbers, n · C, of a validation set that is resampled when that is asked for."""
UNASKED = 20_000
"""Most such numbers when nobody asks for it."""


def null_statistics(
    size: float,
    posteriors: Floats,
    labels: Codes,
    calibration: Calibration,
    seed: int,
    replicates: int = REPLICATES,
) -> Floats:
    """Statistics 2 N ℓ(p̂) of batches of ``size`` rows without a shift, ``replicates`` of them.

    ``posteriors``: n × C validation rows, with their n ``labels``. ``calibration``: as registered;
    a scaling is fitted again, other maps stay (their error does not move the test to first
    order). The source prior is the mean calibrated posterior. They depend on the version and the
    size only, not on the batch.
    """
    rng = np.random.default_rng(seed)
    n = len(labels)
    even = np.full(n, 1.0 / n)
    again = calibration if isinstance(calibration, Scaling) else None
    if again is None or again.method not in FAMILIES:
        again, posteriors = None, calibration.apply(posteriors)
    logs = posteriors if again is None else log_scores(posteriors, again.floor)
    statistics = np.empty(replicates)
    for b in range(replicates):
        deadline.check()
        source = rng.multinomial(n, even).astype(np.float64)
        batch = rng.multinomial(round(size), even).astype(np.float64)
        statistics[b] = _statistic(posteriors, logs, labels, again, source, batch)
    return statistics


def round_size(size: float) -> float:
    """``size`` to two digits: batches of about one size share their null statistics."""
    digits = 10.0 ** max(np.floor(np.log10(max(size, 1.0))) - 1, 0)
    return float(max(np.round(size / digits) * digits, 1.0))


def rescale(null: Floats, drawn_for: float, size: float, validation_size: float) -> Floats:
    """Null statistics of one batch size for another, by the ratio of 1 + N/n."""
    factor = (1 + size / validation_size) / (1 + drawn_for / validation_size)
    moved: Floats = null * factor
    return moved


def p_value(statistic: float, null: Floats) -> float:
    """Share of the null statistics, the statistic itself included, that are as large."""
    return (1 + int(np.count_nonzero(null >= statistic))) / (1 + len(null))


def _statistic(
    posteriors: Floats,
    logs: Floats,
    labels: Codes,
    calibration: Scaling | None,
    source: Floats,
    batch: Floats,
) -> float:
    """2 N ℓ(p̂) of the rows with weights ``batch``, the source being those with ``source``."""
    if calibration is None:
        priors = without_traces(source @ posteriors / source.sum())
        likelihood = Likelihood.of(posteriors, priors, batch)
        return 2.0 * likelihood.size * mle(likelihood).gain
    counts = np.bincount(labels, source, minlength=posteriors.shape[1])
    present = counts > 0
    if not present.all():
        # A class that fell out of the resample is out of its model too.
        keep = present[labels]
        return _statistic(
            posteriors[np.ix_(keep, present)],
            logs[np.ix_(keep, present)],
            (np.cumsum(present) - 1)[labels[keep]],
            calibration.of_classes(present),
            source[keep],
            batch[keep],
        )
    fitted = refit(calibration, logs, labels, source)
    priors = counts / counts.sum()
    if not FAMILIES[fitted.method].biased:
        priors = without_traces(source @ fitted.apply(posteriors) / source.sum())
    likelihood = Likelihood.of(posteriors, priors, batch, fitted)
    return 2.0 * likelihood.size * mle(likelihood).gain
