"""Calibrations and their reports as JSON and back."""

from dataclasses import asdict
from typing import Any

import numpy as np

from app.core.prevalence.calibration import (
    Calibration,
    Isotonic,
    OneVersusRest,
    Quality,
    Report,
    Scaling,
)


def encode(calibration: Calibration) -> dict[str, Any]:
    """A calibration as JSON; its method tells which kind it is."""
    content: dict[str, Any] = {
        "method": calibration.method,
        "floor": calibration.floor,
        "regularised": calibration.regularised,
    }
    if isinstance(calibration, Scaling):
        content["scale"] = calibration.scale.tolist()
        content["bias"] = calibration.bias.tolist()
    elif isinstance(calibration, OneVersusRest):
        content["slopes"] = calibration.slopes.tolist()
        content["intercepts"] = calibration.intercepts.tolist()
    elif isinstance(calibration, Isotonic):
        content["knots"] = [x.tolist() for x in calibration.knots]
        content["values"] = [y.tolist() for y in calibration.values]
    return content


def decode(content: dict[str, Any], classes: int) -> Calibration:
    """The calibration of ``encode``; a scale may be one number for all classes."""
    method, floor = content["method"], content["floor"]
    regularised = content["regularised"]
    if "knots" in content:
        knots = tuple(np.array(x) for x in content["knots"])
        values = tuple(np.array(y) for y in content["values"])
        return Isotonic(knots, values)
    if "slopes" in content:
        slopes, intercepts = np.array(content["slopes"]), np.array(content["intercepts"])
        return OneVersusRest(method, slopes, intercepts, floor, regularised)
    scale = np.broadcast_to(np.array(content["scale"], np.float64), classes).copy()
    return Scaling(method, scale, np.array(content["bias"]), floor, regularised)


def report_to_json(report: Report) -> dict[str, Any]:
    """A report as JSON; an infinite log-loss as null."""
    content = asdict(report)
    for name in ("before", "after"):
        content[name] = {
            key: value.tolist() if isinstance(value, np.ndarray) else _finite(value)
            for key, value in content[name].items()
        }
    if report.losses is not None:
        content["losses"] = {name: _finite(loss) for name, loss in report.losses.items()}
    return content


def report_from_json(content: dict[str, Any]) -> Report:
    """The report of ``report_to_json``."""
    losses = content["losses"]
    if losses is not None:
        losses = {name: _number(loss) for name, loss in losses.items()}
    before, after = _quality(content["before"]), _quality(content["after"])
    return Report(content["asked"], content["rows"], content["folds"], before, after, losses)


def _quality(content: dict[str, Any]) -> Quality:
    vectors = {name: np.array(content[name]) for name in ("gap", "z")}
    return Quality(**{**content, **vectors, "log_loss": _number(content["log_loss"])})


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _number(value: float | None) -> float:
    return float("inf") if value is None else value
