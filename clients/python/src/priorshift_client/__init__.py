"""A client of Priorshift: prevalence estimation under prior probability shift."""

from priorshift_client.access import ApiKey, AuditEntry, Release
from priorshift_client.aio import AsyncClient
from priorshift_client.batches import Features
from priorshift_client.client import Client
from priorshift_client.errors import (
    Busy,
    Conflict,
    Fault,
    Forbidden,
    InvalidInput,
    NotFound,
    PriorshiftError,
    Problem,
    TooLarge,
    TransportError,
    Unauthenticated,
    Unavailable,
    UnexpectedAnswer,
)
from priorshift_client.options import IntervalOptions, MethodOptions, ShiftOptions
from priorshift_client.quality import Brier, Evaluation, Quality, SharesError
from priorshift_client.registry import (
    Alias,
    Calibration,
    Method,
    Model,
    Scorecard,
    SoftmaxModel,
    Version,
)
from priorshift_client.results import (
    Adjustment,
    BiasAdjustment,
    ClassShare,
    Diagnostics,
    Estimate,
    Interval,
    Posteriors,
    Prevalence,
    RegionTest,
    Shift,
    ShiftTest,
    Warning,
)
from priorshift_client.retries import Retries
from priorshift_client.scoring import Adjusted, as_sklearn
from priorshift_client.sources import Source, Training

__all__ = [
    "Adjusted",
    "Adjustment",
    "Alias",
    "ApiKey",
    "AsyncClient",
    "AuditEntry",
    "BiasAdjustment",
    "Brier",
    "Busy",
    "Calibration",
    "ClassShare",
    "Client",
    "Conflict",
    "Diagnostics",
    "Estimate",
    "Evaluation",
    "Fault",
    "Features",
    "Forbidden",
    "Interval",
    "IntervalOptions",
    "InvalidInput",
    "Method",
    "MethodOptions",
    "Model",
    "NotFound",
    "Posteriors",
    "Prevalence",
    "PriorshiftError",
    "Problem",
    "Quality",
    "RegionTest",
    "Release",
    "Retries",
    "Scorecard",
    "SharesError",
    "Shift",
    "ShiftOptions",
    "ShiftTest",
    "SoftmaxModel",
    "Source",
    "TooLarge",
    "Training",
    "TransportError",
    "Unauthenticated",
    "Unavailable",
    "UnexpectedAnswer",
    "Version",
    "Warning",
    "as_sklearn",
]
