"""Scores at the ends of the range of numbers, through every calibration, end in an answer."""

import httpx
import numpy as np
import pytest

from app.core.prevalence.calibration import METHODS
from tests.api.sources import CLASSES, register

LEAST = 5e-324
POSITIVE = [0.0, LEAST, 1e-320, 1e-315, 1e-308, 1e-300, 2.0**-53, 0.1, 0.4, 1 - 2.0**-53, 1.0]
ROWS = [[1 - score, score] for score in POSITIVE]
EVEN = {"legit": 0.5, "fraud": 0.5}


def source(labels: str, times: int, calibration: str) -> dict[str, object]:
    names = [CLASSES[label == "p"] for label in labels]
    rows = ROWS[: len(labels)] * times
    return {
        "validation": {"labels": names * times, "posteriors": rows},
        "calibration": calibration,
    }


@pytest.mark.parametrize("calibration", [*METHODS, "auto"])
@pytest.mark.parametrize(("labels", "times"), [("np", 1), ("nnnpnpnpnpp", 8)])
def test_every_question_is_answered(
    lasting: httpx.Client, calibration: str, labels: str, times: int
) -> None:
    name = f"extreme-{calibration}-{len(labels)}-{times}"
    address = register(lasting, name, source(labels, times, calibration))
    # Resampling, which is slow, asks nothing else of the scores.
    plain = {"shift": {"reference": "scaled-chi-square"}}
    for rows in (ROWS, ROWS[2:3]):
        batch = {"posteriors": rows}
        found = lasting.post(f"{address}/estimates", json=batch | plain)
        assert found.status_code == 201, found.text
        for target in ({}, {"target_priors": EVEN}, {"target_priors": {"legit": 1, "fraud": 0}}):
            adjusted = lasting.post(f"{address}/posteriors", json=batch | target)
            assert adjusted.status_code == 200, adjusted.text
            assert np.isfinite(adjusted.json()["posteriors"]).all()
        tested = lasting.post(f"{address}/region-tests", json=batch | {"priors": EVEN})
        assert tested.status_code == 200, tested.text
    assert lasting.get(f"{address}").status_code == 200
