"""Versatile trees over HTTP: registered, adapted to batches, asked for predictions."""

import io
import json
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from sklearn.tree import DecisionTreeClassifier

from app.core.arrays import Codes, Floats
from tests.api.test_formats import KINDS, post

CLASSES = ["fine", "worn"]
NAMES = ["temperature", "load", "line"]


def machines(seed: int, rows: int, share: float = 0.5) -> tuple[Floats, Codes]:
    rng = np.random.default_rng(seed)
    worn = (rng.random(rows) < share).astype(np.intp)
    temperature = rng.normal(np.where(worn, 60.0, 40.0), 6.0)
    load = rng.gamma(2.0 + worn, 2.0)
    return np.column_stack([temperature, load, rng.integers(0, 4, rows)]), worn


ROWS, WORN = machines(0, 600)
LABELS = [CLASSES[k] for k in WORN]
TRAINING = {
    "features": ROWS.tolist(),
    "labels": LABELS,
    "feature_names": NAMES,
    "categorical": ["line"],
    "max_depth": 4,
    "min_samples_leaf": 5,
}


def register(client: httpx.Client, name: str, **source: Any) -> str:
    body = {
        "name": name,
        "kind": "versatile-tree",
        "classes": CLASSES,
        "source": {"training": TRAINING, **source},
    }
    answer = client.post("/v1/models", json=body)
    assert answer.status_code == 201, answer.text
    return f"/v1/models/{name}/versions/1"


@pytest.fixture(scope="module")
def version(lasting: httpx.Client) -> str:
    return register(lasting, "machines")


def adapted(client: httpx.Client, version: str, rows: Floats, **options: Any) -> dict[str, Any]:
    body = {"features": rows.tolist(), **options}
    answer = client.post(f"{version}/adaptations", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def by_name(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["attribute"]: one for one in found["attributes"]}


class TestRegistering:
    def test_its_page(self, lasting: httpx.Client, version: str) -> None:
        page = lasting.get(version).json()
        assert page["kind"] == "versatile-tree"
        assert page["classes"] == CLASSES
        assert page["attributes"] == NAMES
        assert page["categorical"] == ["line"]
        assert page["tree"]["depth"] <= 4
        assert page["training"]["rows"] == 600
        assert page["priors"]["worn"] == pytest.approx(WORN.mean())
        model = lasting.get("/v1/models/machines").json()
        assert (model["kind"], model["versions"]) == ("versatile-tree", 1)
        listed = lasting.get("/v1/models/machines/versions").json()["items"]
        assert listed == [page]

    def test_the_same_rows_are_the_same_version(self, lasting: httpx.Client, version: str) -> None:
        again = lasting.post("/v1/models/machines/versions", json={"training": TRAINING})
        assert again.status_code == 200
        assert again.json()["version"] == 1

    def test_a_tree_that_exists(self, lasting: httpx.Client) -> None:
        grown = DecisionTreeClassifier(max_depth=3, random_state=1).fit(ROWS, WORN)
        arrays = {
            name: getattr(grown.tree_, name).tolist()
            for name in ("feature", "threshold", "children_left", "children_right")
        }
        address = register(lasting, "existing", tree=arrays)
        found = adapted(lasting, address, ROWS, include=["predictions"])
        expected = [CLASSES[k] for k in grown.predict(ROWS)]
        assert found["predictions"] == expected
        assert found["summary"] == {"moved": [], "changed_predictions": 0}
        sources = [one["source"] for one in found["thresholds"]]
        inner = grown.tree_.children_left >= 0
        assert sources == grown.tree_.threshold[inner].tolist()

    @pytest.mark.parametrize(
        ("source", "place"),
        [
            ({}, "/source/training"),
            ({"training": {**TRAINING, "labels": LABELS[1:]}}, "/source/training/labels"),
            ({"training": {**TRAINING, "labels": ["fine"] * 600}}, "/source/training/labels"),
            ({"training": {**TRAINING, "categorical": ["x"]}}, "/source/training/categorical/0"),
            (
                {"training": {**TRAINING, "feature_names": ["a", "a", "b"]}},
                "/source/training/feature_names/1",
            ),
            ({"training": {**TRAINING, "max_depth": 0}}, "/source/training/max_depth"),
            ({"training": {**TRAINING, "depth": 3}}, "/source/training/depth"),
            (
                {"training": {**TRAINING, "features": [["a", 1, 2]] * 600}},
                "/source/training/features/0",
            ),
            (
                {
                    "training": TRAINING,
                    "tree": {
                        "feature": [0],
                        "threshold": [1.0],
                        "children_left": [1],
                        "children_right": [-1],
                    },
                },
                "/source/tree/children_left/0",
            ),
            (
                {
                    "training": TRAINING,
                    "tree": {
                        "feature": [9, -2, -2],
                        "threshold": [1.0, 0, 0],
                        "children_left": [1, -1, -1],
                        "children_right": [2, -1, -1],
                    },
                },
                "/source/tree/feature/0",
            ),
            (
                {
                    "training": TRAINING,
                    "tree": {
                        "feature": [],
                        "threshold": [],
                        "children_left": [],
                        "children_right": [],
                    },
                },
                "/source/tree/feature",
            ),
        ],
    )
    def test_what_is_wrong_is_placed(
        self, lasting: httpx.Client, source: dict[str, Any], place: str
    ) -> None:
        body = {"name": "wrong", "kind": "versatile-tree", "classes": CLASSES, "source": source}
        answer = lasting.post("/v1/models", json=body)
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["pointer"] == place
        assert lasting.get("/v1/models/wrong").status_code == 404

    @pytest.mark.parametrize("kind", [{}, [], 5, None, True, "forest", "versatile-tree "])
    def test_other_kinds_are_refused(self, lasting: httpx.Client, kind: Any) -> None:
        body = {"name": "wrong", "kind": kind, "classes": CLASSES}
        answer = lasting.post("/v1/models", json=body)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/kind"

    def test_it_has_classes(self, lasting: httpx.Client) -> None:
        answer = lasting.post("/v1/models", json={"name": "wrong", "kind": "versatile-tree"})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/classes"


class TestAdapting:
    def test_another_unit_is_found_and_told(self, lasting: httpx.Client, version: str) -> None:
        rows, worn = machines(1, 800)
        plain = adapted(lasting, version, rows, include=["predictions"])
        rows[:, 0] = 1.8 * rows[:, 0] + 32
        found = adapted(lasting, version, rows, include=["predictions", "posteriors"])
        moved = by_name(found)["temperature"]
        assert moved["kind"] == "linear"
        assert moved["alpha"] == pytest.approx(1.8, rel=0.05)
        assert found["summary"]["moved"] == [moved["in_words"]]
        assert by_name(found)["line"]["p_value"] is None
        assert by_name(found)["line"]["kind"] == "none"
        truth = np.array(CLASSES)[worn]
        accuracy = np.mean(np.array(found["predictions"]) == truth)
        assert accuracy > np.mean(np.array(plain["predictions"]) == truth) - 0.03
        assert accuracy > 0.85
        np.testing.assert_allclose(np.sum(found["posteriors"], axis=1), 1)
        share = np.mean(np.array(found["predictions"]) == "worn")
        assert found["prevalence"]["worn"] == pytest.approx(share)
        original = adapted(lasting, version, rows, strategy="original", include=["predictions"])
        assert original["summary"]["moved"] == []
        assert np.mean(np.array(original["predictions"]) == truth) < accuracy

    def test_it_is_kept_and_predicts(self, lasting: httpx.Client, version: str) -> None:
        rows, _ = machines(2, 300)
        rows[:, 0] += 25
        found = adapted(lasting, version, rows, include=["predictions"])
        address = f"/v1/adaptations/{found['id']}"
        kept = lasting.get(address).json()
        assert kept == {k: v for k, v in found.items() if k != "predictions"}
        said = lasting.post(
            f"{address}/predictions", json={"features": rows.tolist(), "include": ["posteriors"]}
        ).json()
        assert said["predictions"] == found["predictions"]
        assert len(said["posteriors"]) == 300
        assert said["adaptation"] == found["id"]

    def test_the_order_of_columns_and_gaps(self, lasting: httpx.Client, version: str) -> None:
        rows, _ = machines(3, 200)
        straight = adapted(lasting, version, rows)
        turned = adapted(lasting, version, rows[:, ::-1], columns=NAMES[::-1])
        assert turned["attributes"] == straight["attributes"]
        features: list[list[Any]] = rows.tolist()
        features[5][0] = None
        gaps = lasting.post(f"{version}/adaptations", json={"features": features})
        assert gaps.status_code == 201
        rows[5, 0] = np.nan
        body = io.BytesIO()
        np.save(body, rows)
        binary = lasting.post(
            f"{version}/adaptations?rows=features",
            content=body.getvalue(),
            headers={"content-type": "application/x-npy"},
        )
        assert binary.status_code == 201, binary.text
        assert binary.json()["attributes"] == gaps.json()["attributes"]
        named = (dict(zip(NAMES, row, strict=True)) for row in features)
        lines = "\n".join(map(json.dumps, named))
        table = lasting.post(
            f"{version}/adaptations",
            content=lines,
            headers={"content-type": "application/x-ndjson"},
        )
        assert table.status_code == 201, table.text
        assert table.json()["attributes"] == gaps.json()["attributes"]

    @pytest.mark.parametrize("kind", [*KINDS, "lists"])
    def test_every_format_says_the_same(
        self, lasting: httpx.Client, version: str, kind: str
    ) -> None:
        rows, codes = machines(8, 120)
        features: list[list[Any]] = rows.round(3).tolist()
        features[5][0] = None
        labels = [CLASSES[code] if k % 3 == 0 else None for k, code in enumerate(codes)]
        known = [label for label in labels if label is not None]
        plain = {"features": features, "deployment_labels": known, "include": ["predictions"]}
        expected = lasting.post(f"{version}/adaptations", json=plain).json()
        columns = dict(zip(NAMES, map(list, zip(*features, strict=True)), strict=True))
        if kind == "lists":
            found = lasting.post(f"{version}/adaptations", json={**plain, "features": columns})
        else:
            given = pa.table({**columns, "truth": labels, "unused": [True] * len(labels)})
            query = "?deployment_labels=truth&include=predictions"
            found = post(lasting, f"{version}/adaptations", kind, given, query)
        assert found.status_code == 201, found.text
        for name in ("attributes", "thresholds", "output_shift", "predictions"):
            assert found.json()[name] == expected[name]
        if kind == "lists":
            return
        path = f"/v1/adaptations/{found.json()['id']}/predictions"
        said = post(lasting, path, kind, given.select(NAMES))
        assert said.json()["predictions"] == expected["predictions"]

    def test_retries_get_the_same_one(self, lasting: httpx.Client, version: str) -> None:
        body = {"features": machines(4, 100)[0].tolist()}
        headers = {"idempotency-key": "adapt once"}
        answers = [
            lasting.post(f"{version}/adaptations", json=body, headers=headers) for _ in range(2)
        ]
        assert answers[0].json() == answers[1].json()
        assert answers[1].headers["idempotency-replayed"] == "true"
        assert answers[0].headers["location"] == f"/v1/adaptations/{answers[0].json()['id']}"

    def test_shares_that_changed_are_no_shift_of_attributes(
        self, lasting: httpx.Client, version: str
    ) -> None:
        rows, worn = machines(6, 1000, 0.9)
        plain = adapted(lasting, version, rows)
        assert by_name(plain)["temperature"]["shifted"]
        assert plain["output_shift"] is None
        estimated = adapted(lasting, version, rows, target_priors="estimate")
        assert not by_name(estimated)["temperature"]["shifted"]
        shift = estimated["output_shift"]
        assert shift["status"] == "converged"
        assert shift["target_priors"]["worn"] == pytest.approx(0.9, abs=0.06)
        stated = adapted(lasting, version, rows, target_priors={"fine": 0.1, "worn": 0.9})
        assert stated["output_shift"]["status"] == "given"
        assert not by_name(stated)["temperature"]["shifted"]
        labels = [CLASSES[k] for k in worn[:100]]
        labelled = adapted(lasting, version, rows, deployment_labels=labels)
        share = labelled["output_shift"]["target_priors"]["worn"]
        assert share == pytest.approx(worn[:100].mean())
        address = f"/v1/adaptations/{stated['id']}/predictions"
        body = {"features": rows.tolist(), "include": ["posteriors"]}
        mean = np.mean(lasting.post(address, json=body).json()["posteriors"], axis=0)
        assert mean[1] == pytest.approx(worn.mean(), abs=0.05)

    def test_few_rows_are_told(self, lasting: httpx.Client, version: str) -> None:
        rows = machines(5, 20)[0]
        rows[:, 1] = np.exp(rows[:, 1])
        found = adapted(lasting, version, rows, strategy="percentile")
        assert "few-values" in [warning["code"] for warning in found["warnings"]]

    @pytest.mark.parametrize(
        ("body", "status", "place"),
        [
            ({}, 422, "/features"),
            ({"features": []}, 422, "/features"),
            ({"features": [[1, 2]]}, 422, "/features/0"),
            ({"features": [[1, 2, "x"]]}, 422, "/features/0"),
            ({"features": [[1, 2, 1e40]]}, 422, "/features/0"),
            ({"features": [[1, 2, 3]], "columns": ["temperature", "load", "x"]}, 422, "/columns/2"),
            ({"features": [[1, 2, 3]], "strategy": "best"}, 422, "/strategy"),
            ({"features": [[1, 2, 3]], "significance": 2}, 422, "/significance"),
            ({"features": [[1, 2, 3]], "posteriors": [[1, 0]]}, 422, "/posteriors"),
            ({"features": [[1, 2, 3]], "target_priors": "guess"}, 422, "/target_priors"),
            ({"features": [[1, 2, 3]], "target_priors": {"fine": 1}}, 422, "/target_priors/worn"),
            ({"features": [[1, 2, 3]], "deployment_labels": ["x"]}, 422, "/deployment_labels/0"),
            (
                {
                    "features": [[1, 2, 3]],
                    "deployment_labels": ["fine"],
                    "target_priors": "estimate",
                },
                422,
                "/deployment_labels",
            ),
        ],
    )
    def test_what_is_wrong_is_placed(
        self,
        lasting: httpx.Client,
        version: str,
        body: dict[str, Any],
        status: int,
        place: str,
    ) -> None:
        answer = lasting.post(f"{version}/adaptations", json=body)
        assert answer.status_code == status, answer.text
        assert answer.json()["errors"][0]["pointer"] == place


class TestOtherPlaces:
    def test_each_kind_has_its_own_addresses(self, lasting: httpx.Client, version: str) -> None:
        rows = {"posteriors": [[0.5, 0.5]]}
        for what in ("estimates", "posteriors", "shift-tests"):
            answer = lasting.post(f"{version}/{what}", json=rows)
            assert answer.status_code == 409
            assert "versatile-tree" in answer.json()["detail"]
        assert lasting.get(f"{version}/scorecard").status_code == 409
        plain = {
            "name": "plain",
            "classes": CLASSES,
            "source": {"priors": {"fine": 0.5, "worn": 0.5}},
        }
        assert lasting.post("/v1/models", json=plain).status_code == 201
        answer = lasting.post("/v1/models/plain/versions/1/adaptations", json={"features": [[1]]})
        assert answer.status_code == 409
        assert "estimates" in answer.json()["detail"]

    def test_what_is_not_there(self, lasting: httpx.Client, version: str) -> None:
        nowhere = "/v1/adaptations/" + "0" * 32
        assert lasting.get(nowhere).status_code == 404
        assert (
            lasting.post(f"{nowhere}/predictions", json={"features": [[1, 2, 3]]}).status_code
            == 404
        )
        assert lasting.get("/v1/adaptations/x").status_code == 404
        assert (
            lasting.post(
                "/v1/models/machines/versions/9/adaptations", json={"features": [[1, 2, 3]]}
            ).status_code
            == 404
        )


def test_deleting_takes_force_and_all(client: httpx.Client) -> None:
    version = register(client, "gone")
    found = adapted(client, version, ROWS)
    assert client.delete("/v1/models/gone").status_code == 409
    assert client.delete("/v1/models/gone?force=true").status_code == 204
    assert client.get(f"/v1/adaptations/{found['id']}").status_code == 404
