import threading
from typing import Any

import httpx
import numpy as np
import pytest

from app.core.arrays import Floats
from tests.api.sources import CLASSES, COUNTED, register, scores, validation
from tests.golden import GOLDEN

EVEN = {"priors": {"legit": 0.5, "fraud": 0.5}}


def batch(rows: int = 300, share: float = 0.5, seed: int = 2) -> Floats:
    return scores(np.random.default_rng(seed), rows, share)[1]


def estimated(answer: httpx.Response) -> list[float]:
    assert answer.status_code in (200, 201), answer.text
    return [row["estimate"] for row in answer.json()["prevalence"]]


def codes(answer: httpx.Response) -> list[str]:
    return [warning["code"] for warning in answer.json()["warnings"]]


class TestGolden:
    def test_l01_by_em(self, client: httpx.Client) -> None:
        entry = GOLDEN["L01_em_C2_N2_exact"]
        address = register(client, "even", EVEN)
        answer = client.post(
            f"{address}/estimates",
            json={
                "posteriors": entry["inputs"]["posterior"],
                "method": "sld",
                "options": {"tolerance": 1e-14},
                "include": ["posteriors", "trace"],
            },
        )
        expected = entry["expected"]
        shown = answer.json()
        np.testing.assert_allclose(estimated(answer), expected["prior_hat"], atol=1e-9)
        np.testing.assert_allclose(shown["posteriors"], expected["posterior_adjusted"], atol=1e-9)
        np.testing.assert_allclose(shown["trace"][1], expected["prior_after_1_iteration"])
        assert shown["method"] == "em"
        assert shown["shift"]["statistic"] == pytest.approx(expected["lr_statistic"], abs=1e-9)
        assert shown["shift"]["p_value"] == pytest.approx(expected["p_value"], abs=1e-9)
        assert shown["shift"]["degrees_of_freedom"] == 1
        assert shown["shift"]["reference"] == "chi-square"
        assert "raw-shift-test" in codes(answer)
        assert shown["diagnostics"]["optimality_gap"] < 1e-9

    def test_l02_at_the_boundary(self, client: httpx.Client) -> None:
        entry = GOLDEN["L02_em_C2_N2_boundary"]
        address = register(client, "even", EVEN)
        answer = client.post(
            f"{address}/estimates",
            json={"posteriors": entry["inputs"]["posterior"], "options": {"tolerance": 1e-14}},
        )
        np.testing.assert_allclose(estimated(answer), [1, 0], atol=1e-9)

    def test_t06_binary_counts(self, client: httpx.Client) -> None:
        entry = GOLDEN["T06_acc_binary"]
        source = {"confusion_matrix": entry["inputs"]["confusion_rows_actual"]}
        address = register(client, "thesis", source)
        counts = dict(zip(CLASSES, entry["inputs"]["predicted_counts"], strict=True))
        for method in ("acc", "bbse", "acc-qp", "bbse+"):
            answer = client.post(
                f"{address}/estimates", json={"predicted_counts": counts, "method": method}
            )
            np.testing.assert_allclose(estimated(answer), entry["expected"]["prior"], atol=1e-9)
        by_likelihood = client.post(
            f"{address}/estimates",
            json={"predicted_counts": counts, "options": {"tolerance": 1e-14}},
        )
        assert by_likelihood.json()["method"] == "mle"
        np.testing.assert_allclose(estimated(by_likelihood), entry["expected"]["prior"], atol=1e-8)

    def test_t07_multiclass_counts(self, client: httpx.Client) -> None:
        entry = GOLDEN["T07_acc_multiclass"]
        names = ["w0", "w1", "w2", "w3"]
        source = {"confusion_matrix": entry["inputs"]["confusion_rows_actual"]}
        address = register(client, "thesis", source, classes=names)
        counts = {n: round(1000 * v) for n, v in zip(names, entry["inputs"]["v"], strict=True)}
        for method in ("acc", "acc-qp"):
            answer = client.post(
                f"{address}/estimates", json={"predicted_counts": counts, "method": method}
            )
            np.testing.assert_allclose(
                estimated(answer), entry["expected"]["prior"], atol=entry["tolerance"]
            )
            assert answer.json()["shift"]["degrees_of_freedom"] == 3

    def test_published_reject_column(self, client: httpx.Client) -> None:
        source = {
            "confusion_matrix": [[7619, 333, 88], [513, 11333, 114]],
            "outputs": ["legit", "fraud", "reject"],
        }
        address = register(client, "rejecting", source)
        counts = {"legit": 13540, "fraud": 6257, "reject": 203}
        answer = client.post(
            f"{address}/estimates", json={"predicted_counts": counts, "method": "acc"}
        )
        raw = answer.json()["diagnostics"]["raw"]
        assert raw["legit"] == pytest.approx(0.70085, abs=5e-6)
        assert raw["fraud"] == pytest.approx(0.29952, abs=5e-6)
        assert answer.json()["diagnostics"]["inadmissible"]
        assert "inadmissible" in codes(answer)
        counted = [row["counted"] for row in answer.json()["prevalence"]]
        assert counted == pytest.approx([13540 / 19797, 6257 / 19797])
        rows = client.post(
            f"{address}/estimates", json={"posteriors": [[0.5, 0.5]], "method": "acc"}
        )
        assert rows.status_code == 409

    def test_published_five_rows(self, client: httpx.Client) -> None:
        address = register(client, "even", EVEN)
        rows = [[1 - x, x] for x in (0.1, 0.2, 0.7, 0.8, 0.95)]
        answer = client.post(
            f"{address}/estimates", json={"posteriors": rows, "options": {"tolerance": 1e-14}}
        )
        assert estimated(answer)[1] == pytest.approx(0.60725058, abs=1e-8)
        assert answer.json()["shift"]["statistic"] == pytest.approx(0.10773709, abs=1e-8)


class TestCreate:
    def test_a_calibrated_version_finds_the_share(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation(1000)})
        answer = client.post(
            f"{address}/estimates",
            json={
                "posteriors": batch(2000).tolist(),
                "observed_at": "2026-01-31T00:00:00Z",
                "segment": {"country": "BE"},
            },
        )
        assert answer.status_code == 201
        shown = answer.json()
        assert shown["method"] == "mle"
        assert "calibrated" in shown["reason"]
        assert estimated(answer)[1] == pytest.approx(0.5, abs=0.05)
        assert shown["shift"]["detected"]
        assert shown["shift"]["scale"] == 3
        assert shown["shift"]["reference"] == "scaled-chi-square"
        assert shown["shift"]["p_value"] > shown["shift"]["raw_p_value"]
        assert client.get(answer.headers["location"]).json() == shown
        for row in shown["prevalence"]:
            assert row["weight"] == pytest.approx(row["estimate"] / row["source"])
            assert row["log_offset"] == pytest.approx(np.log(row["weight"]))

    def test_what_a_scorer_applies_equals_the_adjusted_posteriors(
        self, client: httpx.Client
    ) -> None:
        address = register(client, "cards", {"validation": validation()})
        rows = batch(50)
        answer = client.post(
            f"{address}/estimates", json={"posteriors": rows.tolist(), "include": ["posteriors"]}
        ).json()
        given = answer["adjustment"]
        logits = given["scale"] * np.log(rows) + [given["offsets"][c] for c in CLASSES]
        by_hand = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(by_hand, answer["posteriors"], atol=1e-12)

    def test_keep_false_keeps_nothing(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        answer = client.post(
            f"{address}/estimates", params={"keep": "false"}, json={"posteriors": [[0.5, 0.5]]}
        )
        assert answer.status_code == 200
        assert answer.json()["id"] is None
        assert client.get("/v1/estimates").json()["items"] == []

    def test_posteriors_are_answered_and_not_kept_a_short_trace_is(
        self, client: httpx.Client
    ) -> None:
        address = register(client, "cards", COUNTED)
        answer = client.post(
            f"{address}/estimates",
            json={"posteriors": [[0.5, 0.5]], "method": "em", "include": ["trace", "posteriors"]},
        )
        assert {"trace", "posteriors"} < set(answer.json())
        kept = client.get(answer.headers["location"]).json()
        assert "posteriors" not in kept
        assert kept["trace"] == answer.json()["trace"]

    def test_a_long_trace_is_not_kept(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        content = {
            "posteriors": [[0.899, 0.101], [0.9005, 0.0995]],
            "method": "em",
            "options": {"tolerance": 1e-15, "max_iterations": 1500},
            "include": ["trace"],
        }
        answer = client.post(f"{address}/estimates", json=content)
        assert len(answer.json()["trace"]) > 1000
        assert "trace" not in client.get(answer.headers["location"]).json()

    def test_scores_are_counted_before_and_after(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        rows = [[0.97, 0.03], [0.21, 0.79], [0.0, 1.0], [0.96, 0.04]]
        content = {"posteriors": rows, "include": ["histogram", "posteriors"]}
        answer = client.post(f"{address}/estimates", json=content)
        shown = answer.json()["histogram"]
        assert shown["bins"] == 20
        for part, given in (("before", rows), ("after", answer.json()["posteriors"])):
            for k, name in enumerate(CLASSES):
                column = [row[k] for row in given]
                expected, _ = np.histogram(column, bins=20, range=(0, 1))
                assert shown[part][name] == expected.tolist()
        assert client.get(answer.headers["location"]).json()["histogram"] == shown

    def test_predictions_have_no_scores_to_count(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        content = {"predicted_counts": {"legit": 9, "fraud": 1}, "include": ["histogram"]}
        shown = client.post(f"{address}/estimates", json=content).json()
        assert "histogram" not in shown
        assert "no-histogram" in [warning["code"] for warning in shown["warnings"]]

    def test_columns_in_another_order(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        plain = client.post(f"{address}/estimates", json={"posteriors": [[0.9, 0.1], [0.3, 0.7]]})
        swapped = client.post(
            f"{address}/estimates",
            json={"posteriors": [[0.1, 0.9], [0.7, 0.3]], "columns": CLASSES[::-1]},
        )
        assert estimated(plain) == estimated(swapped)

    def test_predictions_equal_their_counts(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        labels = ["fraud"] * 3 + ["legit"] * 7
        answers = [
            client.post(f"{address}/estimates", json=content)
            for content in ({"predictions": labels}, {"predicted_counts": {"fraud": 3, "legit": 7}})
        ]
        assert estimated(answers[0]) == estimated(answers[1])
        assert answers[0].json()["size"] == 10

    def test_every_method_on_one_batch(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation(1000)})
        for method in ("cc", "pcc", "acc", "acc-qp", "em", "mle", "auto"):
            answer = client.post(
                f"{address}/estimates", json={"posteriors": batch(1000).tolist(), "method": method}
            )
            assert sum(estimated(answer)) == pytest.approx(1)
            corrected = method not in ("cc", "pcc")
            assert (abs(estimated(answer)[1] - 0.5) < 0.06) == corrected
            assert ("uncorrected" in codes(answer)) != corrected
            assert answer.json()["shift"]["detected"]

    @pytest.mark.parametrize(
        ("source", "content", "method"),
        [
            (EVEN, {"posteriors": [[0.5, 0.5]]}, "mle"),
            (COUNTED, {"posteriors": [[0.5, 0.5]]}, "acc-qp"),
            (COUNTED, {"predictions": ["fraud"]}, "mle"),
            (EVEN, {"predictions": ["fraud"]}, "cc"),
            ({"validation": validation()}, {"posteriors": [[0.5, 0.5]]}, "mle"),
            (
                {"validation": validation(rows=40), "calibration": "none"},
                {"posteriors": [[0.5, 0.5]]},
                "acc-qp",
            ),
        ],
    )
    def test_auto(
        self, client: httpx.Client, source: dict[str, Any], content: dict[str, Any], method: str
    ) -> None:
        answer = client.post(f"{register(client, 'm', source)}/estimates", json=content)
        assert answer.json()["method"] == method
        assert answer.json()["reason"]

    def test_decisions_are_on_raw_posteriors(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation()})
        answer = client.post(f"{address}/estimates", json={"posteriors": [[0.5, 0.5], [0.4, 0.6]]})
        assert [row["counted"] for row in answer.json()["prevalence"]] == [0.5, 0.5]

    def test_renormalised_rows_are_told(self, client: httpx.Client) -> None:
        address = register(client, "cards", EVEN)
        answer = client.post(f"{address}/estimates", json={"posteriors": [[0.5, 0.5004]]})
        assert "renormalised" in codes(answer)

    def test_twin_classes(self, client: httpx.Client) -> None:
        source = {"priors": {"a": 0.5, "b": 0.2, "c": 0.3}}
        address = register(client, "twins", source, classes=["a", "b", "c"])
        rows = [[x, 0.4 * (1 - x), 0.6 * (1 - x)] for x in (0.1, 0.3, 0.9, 0.4)]
        answer = client.post(f"{address}/estimates", json={"posteriors": rows})
        assert "not-identifiable" in codes(answer)
        assert answer.json()["diagnostics"]["status"] == "not-identifiable"
        assert answer.json()["shift"]["degrees_of_freedom"] == 1
        share = estimated(answer)
        assert share[2] / share[1] == pytest.approx(1.5)

    def test_an_output_that_the_source_never_saw(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"confusion_matrix": [[9, 0], [3, 0]]})
        answer = client.post(f"{address}/estimates", json={"predicted_counts": {"fraud": 5}})
        assert estimated(answer) == [0.75, 0.25]
        assert answer.json()["diagnostics"]["status"] == "no-information"
        assert "unsupported-rows" in codes(answer)

    def test_one_class(self, client: httpx.Client) -> None:
        address = register(client, "one", {"priors": {"only": 1}}, classes=["only"])
        answer = client.post(f"{address}/estimates", json={"posteriors": [[1.0], [1]]})
        assert estimated(answer) == [1]
        assert answer.json()["shift"]["p_value"] == 1


class TestIdempotency:
    def test_the_same_key_the_same_answer(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        content = {"posteriors": [[0.5, 0.5]], "include": ["posteriors"]}
        headers = {"Idempotency-Key": "k1"}
        first = client.post(f"{address}/estimates", json=content, headers=headers)
        second = client.post(f"{address}/estimates", json=content, headers=headers)
        assert first.status_code == second.status_code == 201
        assert first.content == second.content
        assert second.headers["location"] == first.headers["location"]
        assert second.headers["content-type"] == "application/json"
        assert second.headers["idempotency-replayed"] == "true"
        assert len(client.get("/v1/estimates").json()["items"]) == 1

    def test_the_same_key_another_body(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        headers = {"Idempotency-Key": "k1"}
        client.post(f"{address}/estimates", json={"posteriors": [[0.5, 0.5]]}, headers=headers)
        answer = client.post(
            f"{address}/estimates", json={"posteriors": [[0.4, 0.6]]}, headers=headers
        )
        assert answer.status_code == 409
        assert "Idempotency-Key" in answer.json()["detail"]

    def test_models_and_versions_too(self, client: httpx.Client) -> None:
        headers = {"Idempotency-Key": "k"}
        content = {"name": "cards", "classes": CLASSES}
        answers = [client.post("/v1/models", json=content, headers=headers) for _ in range(2)]
        assert [a.status_code for a in answers] == [201, 201]
        versions = [
            client.post("/v1/models/cards/versions", json=COUNTED, headers=headers)
            for _ in range(2)
        ]
        assert [a.status_code for a in versions] == [201, 201]

    def test_concurrent_requests_write_once(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        answers: list[httpx.Response] = []

        def post() -> None:
            answers.append(
                client.post(
                    f"{address}/estimates",
                    json={"posteriors": [[0.5, 0.5]]},
                    headers={"Idempotency-Key": "same"},
                )
            )

        threads = [threading.Thread(target=post) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {answer.status_code for answer in answers} == {201}
        assert len({answer.content for answer in answers}) == 1
        assert len(client.get("/v1/estimates").json()["items"]) == 1


class TestHistory:
    def test_filters_and_pages(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        other = register(client, "other", COUNTED)
        for day in range(1, 8):
            client.post(
                f"{address}/estimates",
                json={
                    "posteriors": [[0.5, 0.5]],
                    "observed_at": f"2026-01-{day:02}T00:00:00+01:00",
                    "segment": {"country": "BE" if day % 2 else "NL", "channel": "web"},
                },
            )
        client.post(f"{other}/estimates", json={"posteriors": [[0.5, 0.5]]})

        def days(**params: str) -> list[str]:
            seen: list[str] = []
            while True:
                page = client.get("/v1/estimates", params={"limit": "3", **params}).json()
                seen += [item["observed_at"] for item in page["items"]]
                if page["next_cursor"] is None:
                    return seen
                params["cursor"] = page["next_cursor"]

        everything = days(model="cards")
        assert len(everything) == 7
        assert everything == sorted(everything, reverse=True)
        assert len(days()) == 8
        assert days(model="cards", version="2") == []
        assert len(days(**{"segment.country": "NL"})) == 3
        assert len(days(**{"segment.country": "NL", "segment.channel": "web"})) == 3
        assert days(**{"segment.country": "FR"}) == []
        span = days(since="2026-01-03T00:00:00+01:00", until="2026-01-05T00:00:00+01:00")
        assert len(span) == 2
        assert client.get("/v1/estimates", params={"model": "none"}).status_code == 404

    @pytest.mark.parametrize(
        "params",
        [
            {"cursor": "nonsense"},
            {"cursor": "WzEsMl0"},
            {"since": "yesterday"},
            {"since": "2026-01-01T00:00:00"},
            {"limit": "0"},
            {"limit": "10000"},
            {"version": "99999999999999999999"},
            {"modle": "cards"},
            {"model": "\x00"},
            {"segment.country": "\x00"},
            {"segment.": "x"},
        ],
    )
    def test_wrong_parameters(self, lasting: httpx.Client, params: dict[str, str]) -> None:
        answer = lasting.get("/v1/estimates", params=params)
        assert answer.status_code == 422
        assert answer.json()["errors"]

    def test_an_unknown_estimate(self, lasting: httpx.Client) -> None:
        for name in ("none", "%00"):
            assert lasting.get(f"/v1/estimates/{name}").status_code == 404


class TestPosteriors:
    def test_known_targets(self, client: httpx.Client) -> None:
        address = register(client, "even", EVEN)
        answer = client.post(
            f"{address}/posteriors",
            json={"posteriors": [[0.5, 0.5]], "target_priors": {"legit": 0.9, "fraud": 0.1}},
        )
        assert answer.status_code == 200
        np.testing.assert_allclose(answer.json()["posteriors"], [[0.9, 0.1]])
        assert answer.json()["columns"] == CLASSES
        assert client.get("/v1/estimates").json()["items"] == []

    def test_to_their_own_estimate(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation()})
        rows = batch().tolist()
        answer = client.post(f"{address}/posteriors", json={"posteriors": rows}).json()
        whole = client.post(
            f"{address}/estimates", json={"posteriors": rows, "include": ["posteriors"]}
        ).json()
        assert answer["posteriors"] == whole["posteriors"]
        assert list(answer["target_priors"].values()) == [
            row["estimate"] for row in whole["prevalence"]
        ]

    def test_npy_both_ways_equals_json(self, client: httpx.Client) -> None:
        import io

        address = register(client, "cards", {"validation": validation()})
        rows = batch()
        buffer = io.BytesIO()
        np.save(buffer, rows[:, ::-1])
        answer = client.post(
            f"{address}/posteriors",
            params={
                "columns": CLASSES[::-1],
                "target_priors.legit": 0.3,
                "target_priors.fraud": 0.7,
            },
            content=buffer.getvalue(),
            headers={"content-type": "application/x-npy", "accept": "application/x-npy"},
        )
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/x-npy"
        assert answer.headers["priorshift-target-priors"] == '{"legit": 0.3, "fraud": 0.7}'
        array = np.load(io.BytesIO(answer.content), allow_pickle=False)
        by_json = client.post(
            f"{address}/posteriors",
            json={"posteriors": rows.tolist(), "target_priors": {"legit": 0.3, "fraud": 0.7}},
        ).json()
        np.testing.assert_array_equal(array, by_json["posteriors"])

    def test_of_predicted_labels_and_counts(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        target = {"legit": 0.9, "fraud": 0.1}
        labels = client.post(
            f"{address}/posteriors",
            json={"predictions": ["fraud", "legit", "fraud"], "target_priors": target},
        ).json()
        counts = client.post(
            f"{address}/posteriors",
            json={"predicted_counts": {"fraud": 2}, "target_priors": target},
        ).json()
        assert counts["outputs"] == CLASSES
        assert labels["outputs"] is None
        np.testing.assert_allclose(counts["posteriors"][1], [90 / 190, 100 / 190])
        assert labels["posteriors"] == [counts["posteriors"][k] for k in (1, 0, 1)]

    def test_impossible_rows_are_told(self, client: httpx.Client) -> None:
        address = register(client, "even", EVEN)
        answer = client.post(
            f"{address}/posteriors",
            json={"posteriors": [[0, 1]], "target_priors": {"legit": 1, "fraud": 0}},
        )
        assert answer.json()["posteriors"] == [[1, 0]]
        assert codes(answer) == ["impossible-rows"]

    def test_other_formats_are_not_acceptable(self, client: httpx.Client) -> None:
        address = register(client, "even", EVEN)
        answer = client.post(
            f"{address}/posteriors",
            json={"posteriors": [[0.5, 0.5]]},
            headers={"accept": "text/html"},
        )
        assert answer.status_code == 406
        assert "application/x-npy" in answer.json()["detail"]


class TestShiftTests:
    def test_equals_the_estimate_and_keeps_nothing(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation()})
        rows = batch().tolist()
        answer = client.post(f"{address}/shift-tests", json={"posteriors": rows}).json()
        whole = client.post(
            f"{address}/estimates", params={"keep": "false"}, json={"posteriors": rows}
        ).json()
        assert answer["shift"] == whole["shift"]
        assert client.get("/v1/estimates").json()["items"] == []

    def test_options(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation()})
        answer = client.post(
            f"{address}/shift-tests",
            json={
                "posteriors": batch().tolist(),
                "shift": {"significance": 0.01, "minimum_effect": 0.9, "reference": "chi-square"},
            },
        ).json()
        assert answer["shift"]["significance"] == 0.01
        assert not answer["shift"]["detected"]
        assert answer["shift"]["scale"] == 1
        assert [w["code"] for w in answer["warnings"]] == ["raw-shift-test"]

    def test_needs_a_likelihood(self, client: httpx.Client) -> None:
        address = register(client, "even", EVEN)
        answer = client.post(f"{address}/shift-tests", json={"predictions": ["fraud"]})
        assert answer.status_code == 409
        assert "confusion matrix" in answer.json()["detail"]
