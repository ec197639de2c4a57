"""Every calibration, from registration to estimate, as a caller sees it."""

from typing import Any

import httpx
import numpy as np
import pytest
from scipy.special import softmax

from app.core.prevalence.calibration import METHODS
from tests.api.sources import CLASSES, register

THREE = ["a", "b", "c"]


def bent(rows: int, share: tuple[float, ...], seed: int) -> tuple[list[str], list[list[float]]]:
    """Labels, and posteriors too sure of themselves that lean towards the first class."""
    rng = np.random.default_rng(seed)
    names = THREE[: len(share)]
    labels = rng.choice(len(share), rows, p=share)
    centres = np.eye(len(share)) * 2.0
    x = centres[labels] + rng.normal(size=(rows, len(share)))
    logits = 2.0 * (x @ centres.T) + np.array([2.0, 0.0, -1.0])[: len(share)]
    return [names[k] for k in labels], softmax(logits, axis=1).tolist()


def source(calibration: str, share: tuple[float, ...] = (0.5, 0.3, 0.2)) -> dict[str, Any]:
    labels, posteriors = bent(900, share, 1)
    validation = {"labels": labels, "posteriors": posteriors}
    return {"validation": validation, "calibration": calibration}


@pytest.mark.parametrize("calibration", [*METHODS, "auto"])
class TestEveryCalibration:
    def test_version_estimate_and_posteriors(self, lasting: httpx.Client, calibration: str) -> None:
        address = register(lasting, f"every-{calibration}", source(calibration), classes=THREE)
        shown = lasting.get(address).json()["calibration"]
        report = shown["report"]
        assert report["asked"] == calibration
        assert report["folds"] == 5
        if calibration == "auto":
            losses = report["losses"]
            assert shown["method"] == min(losses, key=losses.get)
            assert set(losses) == set(METHODS)
        else:
            assert shown["method"] == calibration
            assert report["losses"] is None
        if calibration != "none":
            assert report["after"]["log_loss"] < report["before"]["log_loss"]
            assert (
                report["after"]["raw_false_alarm_rate"] < report["before"]["raw_false_alarm_rate"]
            )
        _, batch = bent(2000, (0.2, 0.2, 0.6), 2)
        body = {"posteriors": batch, "method": "mle", "include": ["posteriors"]}
        answer = lasting.post(f"{address}/estimates", json=body)
        assert answer.status_code == 201, answer.text
        found = answer.json()
        shares = {row["class"]: row["estimate"] for row in found["prevalence"]}
        assert shares["c"] == pytest.approx(0.6, abs=0.04 if calibration != "none" else 0.1)
        assert found["shift"]["detected"]
        np.testing.assert_allclose(np.sum(found["posteriors"], axis=1), 1)
        adjustment = found["adjustment"]
        assert (adjustment is None) == (shown["method"] in ("platt", "platt-targets", "isotonic"))
        if adjustment is not None:
            scale, offsets = adjustment["scale"], list(adjustment["offsets"].values())
            if isinstance(scale, dict):
                scale = np.array(list(scale.values()))
            logs = np.log(np.maximum(batch, max(adjustment["floor"], 1e-300)))
            np.testing.assert_allclose(
                softmax(scale * logs + offsets, axis=1), found["posteriors"], atol=1e-9
            )

    def test_intercepts_only_where_scale_and_bias_do_it(
        self, lasting: httpx.Client, calibration: str
    ) -> None:
        address = register(lasting, f"intercepts-{calibration}", source(calibration), classes=THREE)
        method = lasting.get(address).json()["calibration"]["method"]
        body = {
            "intercepts": dict.fromkeys(THREE, 0.1),
            "target_priors": dict.fromkeys(THREE, 1 / 3),
        }
        answer = lasting.post(f"{address}/bias-adjustments", json=body)
        expected = 200 if method in ("bcts", "temperature", "none") else 409
        assert answer.status_code == expected, answer.text

    def test_the_threshold_of_two_classes_decides_like_the_costs(
        self, lasting: httpx.Client, calibration: str
    ) -> None:
        labels, posteriors = bent(600, (0.7, 0.3), 3)
        names = {"a": "legit", "b": "fraud"}
        validation = {"labels": [names[x] for x in labels], "posteriors": posteriors}
        given = {"validation": validation, "calibration": calibration}
        address = register(lasting, f"threshold-{calibration}", given)
        body = {
            "posteriors": posteriors,
            "target_priors": {"legit": 0.4, "fraud": 0.6},
            "costs": [[0, 1], [3, 0]],
        }
        answer = lasting.post(f"{address}/posteriors", json=body).json()
        scores = np.array(posteriors)[:, 1]
        decided = np.array(answer["decisions"]) == CLASSES[1]
        clear = np.abs(scores - answer["threshold"]) > 1e-9
        np.testing.assert_array_equal((scores > answer["threshold"])[clear], decided[clear])


def test_a_single_row_of_a_class_rules_out_comparing(lasting: httpx.Client) -> None:
    labels, posteriors = bent(300, (0.7, 0.3), 1)
    labels = ["legit"] * 299 + ["fraud"]
    given = {"validation": {"labels": labels, "posteriors": posteriors}, "calibration": "auto"}
    shown = lasting.get(register(lasting, "single", given)).json()
    assert shown["calibration"]["method"] == "bcts"
    assert shown["calibration"]["report"]["folds"] is None
    assert "calibration-not-compared" in {w["code"] for w in shown["warnings"]}


def test_leaning_posteriors_are_called_uncalibrated(lasting: httpx.Client) -> None:
    shown = lasting.get(register(lasting, "leaning", source("none"), classes=THREE)).json()
    assert "uncalibrated" in {w["code"] for w in shown["warnings"]}
    assert shown["calibration"]["report"]["before"]["raw_false_alarm_rate"] > 0.5
