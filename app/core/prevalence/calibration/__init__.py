"""Calibration: from a classifier's posteriors to ones that mean what they say, on the source.

Five of the maps are one convex fit with different parameters free (``scaling``), two more are the
same fit class by class (``platt``), one is a monotone curve per class (``isotonic``).
"""

from app.core.prevalence.calibration.fitting import Folds, cross_calibrated, fit, losses
from app.core.prevalence.calibration.maps import (
    METHODS,
    Calibration,
    Isotonic,
    Method,
    OneVersusRest,
    Scaling,
    at_least,
    log_scores,
)
from app.core.prevalence.calibration.report import Quality, Report, report
from app.core.prevalence.calibration.scaling import FAMILIES, refit, scaling

__all__ = [
    "FAMILIES",
    "METHODS",
    "Calibration",
    "Folds",
    "Isotonic",
    "Method",
    "OneVersusRest",
    "Quality",
    "Report",
    "Scaling",
    "at_least",
    "cross_calibrated",
    "fit",
    "log_scores",
    "losses",
    "refit",
    "report",
    "scaling",
]
