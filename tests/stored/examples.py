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
