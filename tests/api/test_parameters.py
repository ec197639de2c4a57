from typing import Any

import httpx
import numpy as np
import pytest
from scipy.special import softmax

from app.core.arrays import Floats
from tests.api.sources import CLASSES, COUNTED, register
from tests.api.trained import THREE, address, rows, train, training

PRIORS = {"two": {"legit": 0.9, "fraud": 0.1}, "three": {"low": 0.2, "middle": 0.5, "high": 0.3}}


def by_hand(model: dict[str, Any], features: list[list[Any]]) -> Floats:
    """What a client computes from the parameters."""
    scores = []
    for row in features:
        total = np.array([model["intercepts"][name] for name in model["classes"]])
        for column, cell in zip(model["columns"], row, strict=True):
            value = column["fill"] if cell is None else cell
            if column["levels"] is None:
                scaled = (value - column["centre"]) / column["scale"]
                total = total + scaled * np.array(column["weights"])
            for level in column["levels"] or []:
                if level["level"] == value:
                    total = total + np.array(level["weights"])
        scores.append(total)
    return np.asarray(softmax(np.array(scores), axis=1))


@pytest.mark.parametrize("classes", [CLASSES, THREE], ids=["two", "three"])
@pytest.mark.parametrize("learner", ["logistic-regression", "linear-svm"])
def test_adjusted_models_are_adjusted_posteriors(
    lasting: httpx.Client, learner: str, classes: list[str]
) -> None:
    kind = "two" if len(classes) == 2 else "three"
    asked = training(learner, classes, missing="impute")
    shown = train(lasting, f"{kind}-{learner}", asked, classes=classes)
    features = [*rows(25, classes, seed=7)[0], [0.3, "XX"], [None, "BE"], [0.1, None]]
    assert abs(shown["calibration"]["scale"] - 1) > 0.01
    targets: list[dict[str, Any]] = [{"target_priors": PRIORS[kind]}, {"features": features}]
    for target in targets:
        answer = lasting.post(f"{address(shown)}/adjusted-models", json=target)
        assert answer.status_code == 200, answer.text
        model = answer.json()
        adjusted = lasting.post(
            f"{address(shown)}/posteriors",
            json={"features": features, "target_priors": model["target_priors"]},
        ).json()["posteriors"]
        np.testing.assert_allclose(by_hand(model, features), adjusted, rtol=0, atol=1e-12)
    assert model["method"] in ("mle", "acc-qp")


def test_parameters_are_the_trained_model(lasting: httpx.Client) -> None:
    shown = train(lasting, "raw", training())
    model = lasting.get(f"{address(shown)}/parameters").json()
    assert model["target_priors"] is None
    assert model["learner"] == "logistic-regression"
    assert [column["name"] for column in model["columns"]] == ["amount", "country"]
    features = rows(10, CLASSES, seed=3)[0]
    raw = by_hand(model, features)
    one, other = (
        lasting.post(f"{address(shown)}/estimates?keep=false", json=batch).json()
        for batch in ({"features": features}, {"posteriors": raw.tolist()})
    )
    for ours, theirs in zip(one["prevalence"], other["prevalence"], strict=True):
        assert ours["estimate"] == pytest.approx(theirs["estimate"], abs=1e-9)


def test_other_versions_are_refused_with_the_reason(lasting: httpx.Client) -> None:
    plain = register(lasting, "plain", COUNTED)
    shown = train(lasting, "bayes", training("naive-bayes"))
    target = {"target_priors": {"legit": 0.5, "fraud": 0.5}}
    for path, reason in ((plain, "not trained"), (address(shown), "not a softmax")):
        for answer in (
            lasting.get(f"{path}/parameters"),
            lasting.post(f"{path}/adjusted-models", json=target),
        ):
            assert answer.status_code == 409
            assert reason in answer.json()["detail"]
    neither = lasting.post(f"{address(shown)}/adjusted-models", json={})
    assert neither.status_code in (409, 422)
