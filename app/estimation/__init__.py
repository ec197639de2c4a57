"""The use case: source model + batch + request → answer. Pure; no web, no database.

Whoever estimates (API, benchmarks, jobs) calls ``estimate``, ``adjust_batch``, ``compare_priors``
and ``check_region``, and nothing below them.
"""

from app.estimation.answers import (
    AdjustedRows,
    Adjustment,
    Diagnostics,
    Estimate,
    IntervalAnswer,
    RegionAnswer,
    ShiftAnswer,
)
from app.estimation.choice import ALIASES, METHODS, Availability, Method, availability
from app.estimation.request import (
    Batch,
    EmOptions,
    IntervalOptions,
    OutputBatch,
    PosteriorBatch,
    Request,
    ShiftOptions,
)
from app.estimation.use import adjust_batch, check_region, compare_priors, estimate

__all__ = [
    "ALIASES",
    "METHODS",
    "AdjustedRows",
    "Adjustment",
    "Availability",
    "Batch",
    "Diagnostics",
    "EmOptions",
    "Estimate",
    "IntervalAnswer",
    "IntervalOptions",
    "Method",
    "OutputBatch",
    "PosteriorBatch",
    "RegionAnswer",
    "Request",
    "ShiftAnswer",
    "ShiftOptions",
    "adjust_batch",
    "availability",
    "check_region",
    "compare_priors",
    "estimate",
]
