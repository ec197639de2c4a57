"""Versions with reference features, and batches of features under them."""

import io
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from app.core.arrays import Codes, Floats
from app.estimation import evidence
from app.formats import arrow
from tests.api.sources import CLASSES, register, scores
from tests.golden import GOLDEN

CENTRES = np.array([[0.0, 0.0], [2.5, 1.0]])
NAMES = ["amount", "age"]


def rows(seed: int, counts: list[int]) -> tuple[Codes, Floats]:
    labels = np.repeat(np.arange(2), counts)
    return labels, np.random.default_rng(seed).normal(CENTRES[labels], 1.0)


def source(**matching: Any) -> dict[str, Any]:
    labels, features = rows(1, [450, 150])
    found: dict[str, Any] = {
        "validation": {
            "labels": [CLASSES[k] for k in labels],
            "features": features.tolist(),
            "feature_names": NAMES,
        },
        "matching": {"dimension": 400, **matching},
    }
    return found


def strangers(count: int = 40) -> Floats:
    return np.random.default_rng(9).normal([-8.0, 6.0], 0.5, (count, 2))


BATCH = rows(2, [100, 300])[1]
LARGER = rows(2, [300, 600])[1]


def post(client: httpx.Client, address: str, features: Floats, **more: Any) -> dict[str, Any]:
    answer = client.post(f"{address}/estimates", json={"features": features.tolist(), **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def shares(answer: dict[str, Any]) -> list[float]:
    return [row["estimate"] for row in answer["prevalence"]]


def codes(answer: dict[str, Any]) -> list[str]:
    return [warning["code"] for warning in answer["warnings"]]


@pytest.fixture
def address(client: httpx.Client) -> str:
    return register(client, "plain", source())


class TestVersion:
    def test_says_how_it_matches(self, client: httpx.Client, address: str) -> None:
        page = client.get(address).json()
        assert page["priors"] == {"legit": 0.75, "fraud": 0.25}
        assert page["validation"] is None
        matching = page["matching"]
        assert matching["feature_names"] == NAMES
        assert (matching["rows"], matching["dimension"], matching["seed"]) == (600, 400, 0)
        assert 0.1 < matching["bandwidth"] < 10
        assert 0 < matching["lambda_min"] <= matching["delta_min"] < 1
        assert matching["condition"] > 1
        assert matching["exact"] is True
        available = {m["name"] for m in page["methods"] if m["available"]}
        assert {"rffm", "kmm-gaussian", "kmm-energy", "pcc"} <= available

    def test_the_same_content_is_the_same_version(self, client: httpx.Client, address: str) -> None:
        versions = address.rpartition("/")[0]
        again = client.post(versions, json=source())
        assert (again.status_code, again.json()["version"]) == (200, 1)
        other = client.post(versions, json=source(seed=1))
        assert (other.status_code, other.json()["version"]) == (201, 2)

    def test_others_say_what_matching_needs(self, client: httpx.Client) -> None:
        address = register(client, "priors", {"priors": {"legit": 0.5, "fraud": 0.5}})
        page = client.get(address).json()
        assert page["matching"] is None
        reasons = {m["name"]: m["reason"] for m in page["methods"]}
        assert "register validation.features" in reasons["rffm"]
        answer = client.post(
            f"{address}/estimates", json={"posteriors": [[0.5, 0.5]], "method": "rffm"}
        )
        assert answer.status_code == 409

    @pytest.mark.parametrize(
        ("change", "pointer"),
        [
            ({"matching": {"dimension": 7}}, "/source/matching/dimension"),
            ({"matching": {"bandwidth": 0}}, "/source/matching/bandwidth"),
            ({"matching": {"feature_map": "posteriors"}}, "/source/matching/feature_map"),
            ({"validation": {"labels": ["legit", "fraud"]}}, "/source/validation"),
            (
                {"validation": {"labels": ["legit", "legit"], "features": [[1], [2]]}},
                "/source/validation/labels",
            ),
            (
                {"validation": {"labels": ["legit", "fraud"], "features": [[1], [2, 3]]}},
                "/source/validation/features/1",
            ),
            (
                {"validation": {"labels": ["legit", "fraud"], "features": [[1]]}},
                "/source/validation/features",
            ),
            ({"validation": None}, "/source/matching"),
        ],
    )
    def test_faults_have_their_place(
        self, client: httpx.Client, change: dict[str, Any], pointer: str
    ) -> None:
        changed = {**source(), **change}
        if change == {"validation": None}:
            changed["priors"] = {"legit": 0.5, "fraud": 0.5}
        content = {"name": "bad", "classes": CLASSES, "source": changed}
        answer = client.post("/v1/models", json=content)
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["pointer"] == pointer


class TestEstimate:
    @pytest.mark.parametrize("method", ["auto", "rffm", "kmm-gaussian", "kmm-energy"])
    def test_finds_the_shares(self, client: httpx.Client, address: str, method: str) -> None:
        found = post(client, address, BATCH, method=method)
        assert found["method"] == ("rffm" if method == "auto" else method)
        assert shares(found) == pytest.approx([0.25, 0.75], abs=0.06)
        fraud = found["prevalence"][1]
        assert fraud["lower"] < 0.75 < fraud["upper"]
        assert 0.03 < fraud["upper"] - fraud["lower"] < 0.25
        assert fraud["weight"] == pytest.approx(fraud["estimate"] / 0.25)
        assert found["interval"]["method"] == "bootstrap"
        assert found["unknown_share"] is None
        assert found["shift"] is None
        assert found["fit"]["reference"] == "features"
        assert found["fit"]["p_value"] > 0.01
        assert "no-shift-test" in codes(found)
        assert "not-prior-shift" not in codes(found)
        assert (found["diagnostics"]["radius"] is None) == (method == "kmm-energy")
        kept = client.get(f"/v1/estimates/{found['id']}").json()
        assert kept == found

    @pytest.mark.parametrize("method", ["rffm", "kmm-gaussian"])
    def test_sees_a_new_kind_of_case(self, client: httpx.Client, address: str, method: str) -> None:
        batch = np.concatenate([LARGER, strangers(100)])
        options = {"soft": True}
        found = post(client, address, batch, method=method, options=options)
        unknown = found["unknown_share"]
        assert unknown["lower"] < 0.1 < unknown["upper"] + 0.02
        assert unknown["lower"] > 0.02
        assert sum(shares(found)) == pytest.approx(1 - unknown["estimate"])
        assert "not-prior-shift" in codes(found)
        assert found["fit"]["p_value"] < 0.01
        pure = post(client, address, BATCH, method=method, options=options)
        assert pure["unknown_share"]["estimate"] < 0.05

    def test_random_features_are_near_the_exact_kernel(self, client: httpx.Client) -> None:
        entry = GOLDEN["D02_contaminated_gaussian"]
        groups = entry["inputs"]["source"]
        names = ["low", "middle", "high"]
        labels = [name for name, group in zip(names, groups, strict=True) for _ in group]
        content = {
            "validation": {"labels": labels, "features": [[x] for g in groups for x in g]},
            "matching": {"bandwidth": 1.0, "dimension": 4000, "standardise": False},
        }
        answer = client.post(
            "/v1/models", json={"name": "golden", "classes": names, "source": content}
        )
        assert answer.status_code == 201, answer.text
        batch = np.array(entry["inputs"]["target"])[:, None]
        for soft in (False, True):
            wanted = entry["expected"]["soft" if soft else "hard"]
            for method, tolerance in (("kmm-gaussian", 1e-5), ("rffm", 0.01)):
                found = post(
                    client, "/v1/models/golden/versions/1", batch,
                    method=method, options={"soft": soft},
                )  # fmt: skip
                assert shares(found) == pytest.approx(wanted, abs=tolerance)

    def test_what_soft_cannot_be(self, client: httpx.Client, address: str) -> None:
        for method in ("kmm-energy",):
            answer = client.post(
                f"{address}/estimates",
                json={"features": [[0, 0]], "method": method, "options": {"soft": True}},
            )
            assert answer.status_code == 422
            assert answer.json()["errors"][0]["pointer"] == "/options/soft"
            assert "origin" in answer.text

    def test_soft_counts_are_blind_to_the_unknown(self, client: httpx.Client) -> None:
        content = {"confusion_matrix": [[90, 10], [20, 80]]}
        address = register(client, "counted", content)
        for method in ("acc-qp", "bbse+"):
            answer = client.post(
                f"{address}/estimates",
                json={
                    "predicted_counts": {"legit": 55, "fraud": 45},
                    "method": method,
                    "options": {"soft": True},
                },
            )
            found = answer.json()
            assert shares(found) == pytest.approx([0.5, 0.5], abs=1e-6)
            assert found["unknown_share"]["estimate"] == pytest.approx(0, abs=1e-6)
            assert "blind-to-the-unknown" in codes(found)

    @pytest.mark.parametrize(
        ("batch", "status"),
        [
            ({"features": [[1, 2]], "method": "mle"}, 409),
            ({"features": [[1, 2]], "include": ["posteriors"]}, 409),
            ({"features": [[1, 2]], "labels": ["legit"]}, 422),
            ({"features": [[1, 2, 3]]}, 422),
            ({"features": [[1, None]]}, 422),
            ({"features": [[1, 2]], "columns": ["age", "weight"]}, 422),
            ({"features": [[1, 2]], "interval": {"method": "wald"}}, 409),
            ({"posteriors": [[0.5, 0.5]], "method": "rffm"}, 409),
        ],
    )
    def test_refusals(
        self, client: httpx.Client, address: str, batch: dict[str, Any], status: int
    ) -> None:
        answer = client.post(f"{address}/estimates", json=batch)
        assert answer.status_code == status, answer.text

    def test_a_batch_too_large_for_the_exact_kernel(
        self, client: httpx.Client, address: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(evidence, "MOST_PAIRS", 1000)
        asked = {"features": BATCH.tolist(), "method": "kmm-energy"}
        answer = client.post(f"{address}/estimates", json=asked)
        assert answer.status_code == 409
        assert "choose rffm" in answer.text

    def test_one_row(self, client: httpx.Client, address: str) -> None:
        for method in ("rffm", "kmm-gaussian", "kmm-energy"):
            found = post(client, address, BATCH[:1], method=method)
            assert sum(shares(found)) == pytest.approx(1)

    def test_evaluations_take_them(self, client: httpx.Client, address: str) -> None:
        labels, features = rows(2, [100, 300])
        answer = client.post(
            f"{address}/evaluations",
            json={"features": features.tolist(), "labels": [CLASSES[k] for k in labels]},
        )
        assert answer.status_code == 201, answer.text
        assert answer.json()["estimate"]["total_variation"] < 0.06
        assert answer.json()["covered"] == {"legit": True, "fraud": True}


class TestFormats:
    def test_all_tell_the_same(self, client: httpx.Client, address: str) -> None:
        wanted = shares(post(client, address, BATCH))
        swapped = post(client, address, BATCH[:, ::-1], columns=NAMES[::-1])
        assert shares(swapped) == pytest.approx(wanted, abs=1e-12)
        body = io.BytesIO()
        np.save(body, BATCH)
        table = pa.table({"age": BATCH[:, 1], "note": ["x"] * len(BATCH), "amount": BATCH[:, 0]})
        ipc, parquet = io.BytesIO(), io.BytesIO()
        with pa.ipc.new_stream(ipc, table.schema) as writer:
            writer.write_table(table)
        pyarrow.parquet.write_table(table, parquet)
        for kind, content, query in (
            ("application/x-npy", body.getvalue(), "?rows=features&method=rffm"),
            (arrow.ARROW, ipc.getvalue(), ""),
            (arrow.PARQUET, parquet.getvalue(), "?method=rffm"),
        ):
            answer = client.post(
                f"{address}/estimates{query}", content=content, headers={"content-type": kind}
            )
            assert answer.status_code == 201, answer.text
            assert shares(answer.json()) == pytest.approx(wanted, abs=1e-12)

    def test_groups_of_a_table_have_an_estimate_each(
        self, client: httpx.Client, address: str
    ) -> None:
        table = pa.table(
            {
                "amount": BATCH[:, 0],
                "age": BATCH[:, 1],
                "country": ["BE"] * 100 + ["NL"] * 300,
            }
        )
        body = io.BytesIO()
        pyarrow.parquet.write_table(table, body)
        answer = client.post(
            f"{address}/estimates?group_by=country&method=rffm&options.soft=true",
            content=body.getvalue(),
            headers={"content-type": arrow.PARQUET},
        )
        assert answer.status_code == 201, answer.text
        first, second = (item["estimate"] for item in answer.json()["items"])
        assert shares(first)[0] > 0.9
        assert shares(second)[1] > 0.9
        assert first["unknown_share"]["lower"] == 0

    def test_nan_is_refused_with_its_row(self, client: httpx.Client, address: str) -> None:
        body = io.BytesIO()
        np.save(body, np.array([[1.0, 2.0], [np.nan, 0.0]], np.float32))
        answer = client.post(
            f"{address}/estimates?rows=features",
            content=body.getvalue(),
            headers={"content-type": "application/x-npy"},
        )
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["row"] == 1


class TestPosteriors:
    def test_may_be_what_is_matched(self, client: httpx.Client) -> None:
        labels, posteriors = scores(np.random.default_rng(1), 600, 0.2)
        address = register(
            client,
            "scores",
            {
                "validation": {
                    "labels": [CLASSES[k] for k in labels],
                    "posteriors": posteriors.tolist(),
                },
                "matching": {"feature_map": "posteriors", "dimension": 200},
            },
        )
        truth, batch = scores(np.random.default_rng(2), 600, 0.6)
        for method in ("rffm", "kmm-gaussian", "mle"):
            answer = client.post(
                f"{address}/estimates", json={"posteriors": batch.tolist(), "method": method}
            )
            found = answer.json()
            assert shares(found)[1] == pytest.approx(truth.mean(), abs=0.06)
            assert found["fit"]["reference"] == "posteriors"
            assert found["fit"]["p_value"] > 0.01
            assert found["shift"]["detected"]

    def test_a_changed_classifier_is_not_prior_shift(self, client: httpx.Client) -> None:
        labels, posteriors = scores(np.random.default_rng(1), 1000, 0.2)
        content = {"labels": [CLASSES[k] for k in labels], "posteriors": posteriors.tolist()}
        address = register(client, "fit", {"validation": content})
        batch = np.full((1000, 2), 0.5) + np.random.default_rng(3).uniform(-0.2, 0.2, (1000, 1)) * [
            1,
            -1,
        ]
        answer = client.post(f"{address}/estimates", json={"posteriors": batch.tolist()})
        assert "not-prior-shift" in codes(answer.json())
