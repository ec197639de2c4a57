"""The use case: source model + batch + request → answer. Pure; no web, no database.

Whoever estimates (API, benchmarks, jobs) calls ``estimate``, ``adjust_batch``,
``adjust_intercepts``, ``compare_priors`` and ``check_region``, and nothing below them.
"""

from app.estimation.evidence import Evidence
from app.estimation.methods import ALIASES, METHODS, Availability, Method, availability
from app.estimation.request import (
    Batch,
    BayesOptions,
    EmOptions,
    FeatureBatch,
    IntervalOptions,
    OutputBatch,
    PosteriorBatch,
    Request,
    ShiftOptions,
    SummedBatch,
)
from app.estimation.results import (
    AdjustedModel,
    AdjustedRows,
    Adjustment,
    Diagnostics,
    Estimate,
    IntervalAnswer,
    RegionAnswer,
    ShiftAnswer,
    UnknownShare,
)
from app.estimation.scorecard import add_scorecard
from app.estimation.use_cases import (
    adjust_batch,
    adjust_intercepts,
    check_region,
    compare_priors,
    estimate,
    estimate_from,
)
from app.estimation.validation_rows import SourceRows

__all__ = [
    "ALIASES",
    "METHODS",
    "AdjustedModel",
    "AdjustedRows",
    "Adjustment",
    "Availability",
    "Batch",
    "BayesOptions",
    "Diagnostics",
    "EmOptions",
    "Estimate",
    "Evidence",
    "FeatureBatch",
    "IntervalAnswer",
    "IntervalOptions",
    "Method",
    "OutputBatch",
    "PosteriorBatch",
    "RegionAnswer",
    "Request",
    "ShiftAnswer",
    "ShiftOptions",
    "SourceRows",
    "SummedBatch",
    "UnknownShare",
    "add_scorecard",
    "adjust_batch",
    "adjust_intercepts",
    "availability",
    "check_region",
    "compare_priors",
    "estimate",
    "estimate_from",
]
