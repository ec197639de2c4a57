"""EM stopped where decisions on labelled rows are most precise (thesis section 6.2).

The path of EM is searched for the priors at which the weighted precision P_W of out-of-fold
decisions, adjusted to them, is largest; the earliest on ties. Precision is measured at the
*source's* prevalence, so that this blocks real shifts: calibrate instead.
"""

from dataclasses import dataclass

import numpy as np

from app.core import deadline
from app.core.arrays import Codes, Floats
from app.core.prevalence.adjustment.posteriors import adjust
from app.core.prevalence.estimators.confusion import decisions


@dataclass(frozen=True)
class Stop:
    """Where on the path EM was stopped.

    ``step``: row of the path; 0 is the source priors.
    ``precision``: P_W at every row of the path, in [0, 1]; ``step`` has the first of the largest.
    """

    step: int
    precision: Floats


def weighted_precision(decided: Codes, labels: Codes, classes: int) -> float:
    """P_W = Σ_k frequency(k) precision(k), 0 for a class that is never decided."""
    hits = np.bincount(labels[decided == labels], minlength=classes)
    predicted = np.bincount(decided, minlength=classes)
    precision = np.divide(hits, predicted, out=np.zeros(classes), where=predicted > 0)
    frequency = np.bincount(labels, minlength=classes) / len(labels)
    return float(frequency @ precision)


def stop(path: Floats, source: Floats, posteriors: Floats, labels: Codes) -> Stop:
    """The best step of ``path``, (S + 1) × C priors, judged on n × C out-of-fold posteriors.

    ``posteriors`` are given under the priors ``source``.
    """
    precision = np.empty(len(path))
    for step, priors in enumerate(path):
        deadline.check()
        adjusted, _ = adjust(posteriors, source, priors)
        precision[step] = weighted_precision(decisions(adjusted), labels, len(source))
    return Stop(int(np.argmax(precision)), precision)
