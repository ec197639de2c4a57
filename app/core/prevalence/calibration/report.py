"""What calibration did for a version: quality before and after, on rows that were not fitted."""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Codes, Floats
from app.core.prevalence.calibration.false_alarms import raw_false_alarm_rate, second_moment
from app.core.prevalence.calibration.fitting import Folds, cross_calibrated
from app.core.prevalence.calibration.maps import Calibration, Method
from app.core.prevalence.measures import brier, log_loss

BATCH = 1000
"""Rows of the batch that the predicted false alarms are of."""
SIGNIFICANCE = 0.05
BEYOND = 3.0
"""A gap of more standard errors than this is not chance."""


@dataclass(frozen=True)
class Quality:
    """Quality of n × C labelled posteriors.

    ``log_loss``: −mean ln g of the true class.
    ``brier``: see ``measures.brier``.
    ``calibration_error``: its part by ten bins of equal count.
    ``gap``: mean posterior − label frequency, C; positive where the class is overestimated.
    ``z``: the gap over its standard error, C; 0 where that is none.
    ``raw_false_alarm_rate``: how often the raw shift test at 5 % would alarm on 1,000 rows without
        a shift, because of the gap.
    """

    log_loss: float
    brier: float
    calibration_error: float
    gap: Floats
    z: Floats
    raw_false_alarm_rate: float

    @classmethod
    def of(cls, posteriors: Floats, labels: Codes) -> "Quality":
        """Of n × C posteriors and their labels."""
        n, classes = posteriors.shape
        truth = np.eye(classes)[labels]
        gap = (posteriors - truth).mean(axis=0)
        error = (posteriors - truth).std(axis=0) / np.sqrt(n)
        frequency = truth.mean(axis=0)
        score = brier(posteriors, labels, "equal-count")
        moment = second_moment(posteriors, frequency)
        return cls(
            log_loss(posteriors, labels),
            score.brier,
            score.calibration_error,
            gap,
            np.divide(gap, error, out=np.zeros(classes), where=error > 1e-12),
            raw_false_alarm_rate(gap, moment, BATCH, SIGNIFICANCE),
        )

    @property
    def misses(self) -> int | None:
        """The class whose gap is furthest beyond ``BEYOND`` standard errors, if there is one."""
        worst = int(np.argmax(np.abs(self.z)))
        return worst if abs(self.z[worst]) > BEYOND else None


@dataclass(frozen=True)
class Report:
    """Posteriors before and after calibration.

    ``asked``: the method asked for, or auto.
    ``rows``: how many were judged.
    ``folds``: into how many parts these were divided, so that none calibrates itself; None where a
        class has a single row: ``after`` is then of the fitted rows themselves.
    ``before``: raw.
    ``after``: calibrated.
    ``losses``: the log-losses that auto compared, by method; None where it compared nothing.
    """

    asked: str
    rows: int
    folds: int | None
    before: Quality
    after: Quality
    losses: dict[Method, float] | None = None


def report(
    requested: str,
    calibration: Calibration,
    posteriors: Floats,
    labels: Codes,
    folds: Folds | None,
    losses: dict[Method, float] | None,
) -> tuple[Report, Floats]:
    """The report, and the mean calibrated posterior of rows that were not fitted, C."""
    if folds is None:
        rows, codes = posteriors, labels
        after = calibration.apply(posteriors)
    else:
        rows, codes = posteriors[folds.rows], labels[folds.rows]
        after = cross_calibrated(calibration.method, posteriors, labels, folds)
    fitted = Report(
        requested,
        len(codes),
        None if folds is None else folds.count,
        Quality.of(rows, codes),
        Quality.of(after, codes),
        losses,
    )
    return fitted, after.mean(axis=0)
