"""Batches whose rows partly come with labels."""

from typing import Any

import httpx
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from tests.api.sources import CLASSES, COUNTED, register, scores, validation

BATCH = scores(np.random.default_rng(5), 400, 0.5)


def some(labels: Any, every: int) -> list[str | None]:
    return [CLASSES[k] if i % every == 0 else None for i, k in enumerate(labels)]


def share(answer: httpx.Response, name: str = "fraud") -> dict[str, Any]:
    assert answer.status_code in (200, 201), answer.text
    rows: list[dict[str, Any]] = answer.json()["prevalence"]
    return next(row for row in rows if row["class"] == name)


class TestPosteriors:
    def test_the_maximum_by_brute_force(self, lasting: httpx.Client) -> None:
        labels, rows = BATCH
        given = {"validation": validation(), "calibration": "none"}
        address = register(lasting, "brute", given)
        known = some(labels, 7)
        body = {"posteriors": rows.tolist(), "labels": known, "method": "mle"}
        answer = lasting.post(f"{address}/estimates", json=body)
        source = np.array(list(lasting.get(address).json()["source_priors"].values()))
        open_rows = np.array([label is None for label in known])
        hits = np.array([CLASSES.index(label) for label in known if label is not None])
        ratio = rows[open_rows] / source

        def loss(p: float) -> float:
            shares = np.array([1 - p, p])
            return -float(np.log(ratio @ shares).sum() + np.log(shares[hits]).sum())

        best = minimize_scalar(
            loss, bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-12}
        )
        found = share(answer)
        assert found["estimate"] == pytest.approx(best.x, abs=1e-6)
        assert found["lower"] < 0.5 < found["upper"]
        assert answer.json()["labelled"] == len(hits)
        em = {**body, "method": "em", "options": {"tolerance": 1e-10}}
        assert share(lasting.post(f"{address}/estimates", json=em))["estimate"] == pytest.approx(
            best.x, abs=1e-6
        )

    def test_all_labels_are_counting_and_narrow_the_interval(self, lasting: httpx.Client) -> None:
        labels, rows = BATCH
        address = register(lasting, "all", {"validation": validation()})
        names = [CLASSES[k] for k in labels]
        alone = share(lasting.post(f"{address}/estimates", json={"posteriors": rows.tolist()}))
        body = {"posteriors": rows.tolist(), "labels": names, "include": ["posteriors"]}
        answer = lasting.post(f"{address}/estimates", json=body)
        found = share(answer)
        assert found["estimate"] == pytest.approx(labels.mean(), abs=1e-9)
        assert found["upper"] - found["lower"] < 0.8 * (alone["upper"] - alone["lower"])
        np.testing.assert_array_equal(answer.json()["posteriors"], np.eye(2)[labels])
        assert answer.json()["reason"] == "400 rows came with labels"
        wald = np.sqrt(0.25 / 400) * 1.96
        assert found["upper"] - found["lower"] == pytest.approx(2 * wald, rel=0.05)

    def test_nulls_are_no_labels(self, lasting: httpx.Client) -> None:
        _, rows = BATCH
        address = register(lasting, "nulls", {"validation": validation()})
        without = lasting.post(f"{address}/estimates", json={"posteriors": rows.tolist()}).json()
        body = {"posteriors": rows.tolist(), "labels": [None] * 400}
        found = lasting.post(f"{address}/estimates", json=body).json()
        assert found["prevalence"] == without["prevalence"]
        assert found["labelled"] == 0

    def test_methods_that_count_say_that_they_do_not_use_them(self, lasting: httpx.Client) -> None:
        labels, rows = BATCH
        address = register(lasting, "unused", {"validation": validation()})
        body = {"posteriors": rows.tolist(), "labels": some(labels, 5), "method": "acc-qp"}
        answer = lasting.post(f"{address}/estimates", json=body).json()
        assert "labels-unused" in {w["code"] for w in answer["warnings"]}

    @pytest.mark.parametrize("method", ["bayes", "em-stop", "pcc", "cde"])
    def test_other_methods_take_them(self, lasting: httpx.Client, method: str) -> None:
        labels, rows = BATCH
        address = register(lasting, f"take-{method}", {"validation": validation()})
        body = {"posteriors": rows.tolist(), "labels": [CLASSES[k] for k in labels]}
        found = share(lasting.post(f"{address}/estimates", json={**body, "method": method}))
        if method != "em-stop":
            assert found["estimate"] == pytest.approx(labels.mean(), abs=0.005)

    def test_tests_and_posteriors_take_them(self, lasting: httpx.Client) -> None:
        labels, rows = BATCH
        address = register(lasting, "tests", {"validation": validation()})
        body = {"posteriors": rows.tolist(), "labels": some(labels, 2)}
        alone = {"posteriors": rows.tolist()}
        statistics = [
            lasting.post(f"{address}/shift-tests", json=b).json()["shift"]["statistic"]
            for b in (alone, body)
        ]
        assert statistics[1] > statistics[0]
        adjusted = lasting.post(f"{address}/posteriors", json=body).json()["posteriors"]
        np.testing.assert_array_equal(adjusted[::2], np.eye(2)[labels[::2]])
        region = {**body, "priors": {"legit": 0.5, "fraud": 0.5}}
        assert lasting.post(f"{address}/region-tests", json=region).json()["inside"]


class TestPredictions:
    def test_the_maximum_by_brute_force(self, lasting: httpx.Client) -> None:
        address = register(lasting, "outputs", COUNTED)
        predicted = ["fraud"] * 60 + ["legit"] * 140
        known = ["fraud"] * 10 + [None] * 170 + ["legit"] * 15 + ["fraud"] * 5
        body = {"predictions": predicted, "labels": known, "method": "mle"}
        found = share(lasting.post(f"{address}/estimates", json=body))
        M = np.array([[900 / 990, 10 / 110], [90 / 990, 100 / 110]])

        def loss(p: float) -> float:
            shares = np.array([1 - p, p])
            unseen = np.array([120, 50]) @ np.log(M @ shares)
            return -float(unseen + np.array([15, 15]) @ np.log(shares))

        best = minimize_scalar(
            loss, bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-12}
        )
        assert found["estimate"] == pytest.approx(best.x, abs=1e-6)
        assert found["lower"] < best.x < found["upper"]
        bayes = share(lasting.post(f"{address}/estimates", json={**body, "method": "bayes"}))
        assert bayes["estimate"] == pytest.approx(best.x, abs=0.02)
        rows = lasting.post(f"{address}/posteriors", json=body).json()["posteriors"]
        assert rows[0] == [0, 1]
        assert rows[185] == [1, 0]


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        (["fraud"], "/labels"),
        ("fraud", "/labels"),
        ([], "/labels"),
        ([None, "cat"], "/labels/1"),
        ([None, 1], "/labels/1"),
        ([None, True], "/labels/1"),
        ([["fraud"], None], "/labels/0"),
        ({"0": "fraud"}, "/labels"),
    ],
)
def test_wrong_labels(lasting: httpx.Client, labels: Any, place: str) -> None:
    if lasting.get("/v1/models/wrong").status_code == 404:
        register(lasting, "wrong", {"validation": validation()})
    body = {"posteriors": [[0.5, 0.5], [0.2, 0.8]], "labels": labels}
    answer = lasting.post("/v1/models/wrong/versions/1/estimates", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == place


def test_counts_have_no_rows_to_label(lasting: httpx.Client) -> None:
    address = register(lasting, "bare", COUNTED)
    body = {"predicted_counts": {"legit": 1, "fraud": 1}, "labels": ["fraud", None]}
    answer = lasting.post(f"{address}/estimates", json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/labels"
