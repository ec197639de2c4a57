"""Posteriors as lists by class: in any order, checked by name, answered in kind."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.api.sources import CLASSES, COUNTED, register, scores, validation

ROWS = scores(np.random.default_rng(3), 300, 0.5)[1]
BY_NAME = {"fraud": ROWS[:, 1].tolist(), "legit": ROWS[:, 0].tolist()}


def test_the_same_version_and_estimate(lasting: httpx.Client) -> None:
    given = validation()
    rows = np.array(given["posteriors"])
    address = register(lasting, "same", {"validation": given})
    by_name = {"fraud": rows[:, 1].tolist(), "legit": rows[:, 0].tolist()}
    source = {"source": {"validation": {**given, "posteriors": by_name}}}
    assert lasting.post("/v1/models/same/versions", json=source).status_code == 200
    answers = [
        lasting.post(
            f"{address}/estimates", json={"posteriors": p, "include": ["posteriors"]}
        ).json()
        for p in (ROWS.tolist(), BY_NAME)
    ]
    assert answers[0]["prevalence"] == answers[1]["prevalence"]
    assert list(answers[1]["posteriors"]) == CLASSES
    columns = np.column_stack([answers[1]["posteriors"][name] for name in CLASSES])
    np.testing.assert_array_equal(columns, answers[0]["posteriors"])
    adjusted = lasting.post(f"{address}/posteriors", json={"posteriors": BY_NAME}).json()
    assert len(adjusted["posteriors"]["legit"]) == 300


@pytest.mark.parametrize(
    ("posteriors", "place"),
    [
        ({"legit": [0.5]}, "/posteriors/fraud"),
        ({"legit": [0.5], "fraud": [0.5], "other": [0]}, "/posteriors/other"),
        ({"legit": [0.5], "fraud": [0.5, 0.5]}, "/posteriors/fraud"),
        ({"legit": [], "fraud": []}, "/posteriors/legit"),
        ({"legit": [0.5, "0.5"], "fraud": [0.5, 0.5]}, "/posteriors/legit/1"),
        ({"legit": [0.5, None], "fraud": [0.5, 0.5]}, "/posteriors/legit/1"),
        ({"legit": [0.5, True], "fraud": [0.5, 0.5]}, "/posteriors/legit/1"),
        ({"legit": 0.5, "fraud": 0.5}, "/posteriors/legit"),
        ({"legit": [0.5, 0.9], "fraud": [0.5, 0.5]}, "/posteriors/1"),
        ({"legit": [10**400], "fraud": [0.5]}, "/posteriors/legit/0"),
    ],
)
def test_what_is_wrong_is_named(lasting: httpx.Client, posteriors: Any, place: str) -> None:
    if lasting.get("/v1/models/wrong").status_code == 404:
        register(lasting, "wrong", COUNTED)
    answer = lasting.post("/v1/models/wrong/versions/1/estimates", json={"posteriors": posteriors})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == place


def test_an_order_makes_no_sense(lasting: httpx.Client) -> None:
    address = register(lasting, "order", COUNTED)
    body = {"posteriors": BY_NAME, "columns": CLASSES}
    answer = lasting.post(f"{address}/estimates", json=body)
    assert answer.json()["errors"][0]["pointer"] == "/columns"
