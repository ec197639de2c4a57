"""Contents of rows as the release 0009 wrote them: without a number."""

from typing import Any


def share(name: str, source: float, estimate: float, lower: float, upper: float) -> dict[str, Any]:
    """A class of an estimate."""
    ends = {"counted": source, "estimate": estimate, "lower": lower, "upper": upper}
    return {"class": name, "source": source, **ends, "weight": estimate / source, "log_offset": 0.8}


SHIFT: dict[str, Any] = {
    "statistic": 15.4,
    "scale": 1.1,
    "degrees_of_freedom": 1,
    "p_value": 0.00018,
    "raw_p_value": 0.000087,
    "reference": "scaled-chi-square",
    "significance": 0.05,
    "minimum_effect": 0.0,
    "effect_size": 0.013,
    "detected": True,
    "raw_false_alarm_rate": None,
    "mean_gap": {"legit": 0.001, "fraud": -0.001},
    "seed": None,
    "replicates": None,
}
ESTIMATE: dict[str, Any] = {
    "id": "1" * 32,
    "model": "cards",
    "version": 3,
    "method": "mle",
    "reason": "posteriors with a calibrated validation set",
    "size": 1000,
    "labelled": 0,
    "created_at": "2026-02-01T08:00:00.000123Z",
    "observed_at": "2026-01-31T00:00:00Z",
    "segment": {"country": "BE"},
    "prevalence": [
        share("legit", 0.99, 0.977, 0.966, 0.986),
        share("fraud", 0.01, 0.023, 0.014, 0.034),
    ],
    "unknown_share": None,
    "interval": {
        "level": 0.95,
        "method": "profile",
        "of": "population",
        "seed": None,
        "replicates": None,
    },
    "adjustment": {"scale": 1.21, "offsets": {"legit": 0.05, "fraud": None}, "floor": 1e-15},
    "shift": SHIFT,
    "fit": None,
    "diagnostics": {
        "status": "converged",
        "iterations": 7,
        "optimality_gap": 3e-11,
        "gain": 0.0077,
        "raw": None,
        "inadmissible": None,
        "radius": None,
    },
    "warnings": [{"code": "small-batch", "message": "…"}],
}
ERRORS: dict[str, float] = {
    "absolute_error": 0.1,
    "normalised_absolute_error": 0.2,
    "relative_absolute_error": 0.3,
    "squared_error_sum": 0.4,
    "kullback_leibler": 0.5,
    "hellinger": 0.6,
    "total_variation": 0.1,
}
EVALUATION: dict[str, Any] = {
    "id": "2" * 32,
    "model": "cards",
    "version": 3,
    "estimate_id": None,
    "method": "mle",
    "size": 1000,
    "created_at": "2026-02-02T08:00:00Z",
    "truth": {"legit": 0.9, "fraud": 0.1},
    "counted": None,
    "estimate": ERRORS,
    "covered": None,
    "interval": None,
    "before": None,
    "after": None,
    "warnings": [],
}
MONITOR: dict[str, Any] = {
    "version": "@champion",
    "method": "auto",
    "window": {"rows": None, "duration": "PT1H", "minimum_rows": 1, "grace": "PT0S"},
    "segment_by": "country",
    "alert": {
        "false_alarms": 1.0,
        "per": "P30D",
        "minimum_effect": 0.0,
        "consecutive": 1,
        "recovery": 3,
        "test": "window",
    },
    "interval_level": 0.95,
    "keep_rows": True,
    "description": "",
}
ALERT: dict[str, Any] = {
    "id": "3" * 32,
    "monitor": "watch",
    "model": "cards",
    "version": 1,
    "segment": "BE",
    "state": "acknowledged",
    "opened_at": "2026-02-03T12:00:01.000001Z",
    "start": "2026-02-03T12:00:00Z",
    "end": "2026-02-03T13:00:00Z",
    "estimate": "1" * 32,
    "size": 50,
    "p_value": 1.7e-11,
    "level": 0.01,
    "effect_size": 0.68,
    "message": "fraud rose from 21.3 % to 89 %",
    "prevalence": [
        {"class": "fraud", "source": 0.2, "estimate": 0.9, "lower": None, "upper": None}
    ],
    "acknowledged_at": "2026-02-03T14:00:00.123456+00:00",
    "acknowledged_by": "anonymous",
    "note": "seen",
    "closed_at": None,
    "closed_by": None,
}
EVIDENCE: dict[str, Any] = {
    "version": 7,
    "since": 1_770_000_000_000_000,
    "state": {"log_weights": [-0.5, 0.25], "rows": 50.0, "batches": 1, "log_e": 0.1},
}
PROGRESS: dict[str, Any] = {
    "round": 1,
    "partitions": 2,
    "of": 3,
    "rows": None,
    "rows_per_second": None,
    "remaining_seconds": 1.5,
}
ADAPTATION: dict[str, Any] = {
    "id": "4" * 32,
    "model": "mixture",
    "version": 1,
    "kind": "regression-mixture",
    "created_at": "2026-02-03T12:00:00Z",
    "method": "em",
    "components": 2,
    "warnings": [{"code": "few-rows", "message": "…"}],
}
