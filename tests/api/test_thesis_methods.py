import httpx
import numpy as np
import pytest
from scipy.special import softmax

from app.core.arrays import Floats
from tests.api.sources import CLASSES, COUNTED, register, scores, validation

HALF = {"legit": 0.5, "fraud": 0.5}
EVEN = {"priors": HALF}


def rows(count: int = 300, share: float = 0.5) -> Floats:
    return scores(np.random.default_rng(2), count, share)[1]


def codes(answer: httpx.Response) -> list[str]:
    return [warning["code"] for warning in answer.json()["warnings"]]


class TestCde:
    def test_warns_and_stops_short_of_the_truth(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation(1000)})
        content = {"posteriors": rows().tolist(), "method": "cde", "include": ["trace"]}
        answer = client.post(f"{address}/estimates", json=content)
        shown = answer.json()
        assert answer.status_code == 201
        assert "not-fisher-consistent" in codes(answer)
        assert "no-interval" in codes(answer)
        assert shown["interval"] is None
        assert shown["diagnostics"]["status"] in ("converged", "cycle")
        assert len(shown["trace"]) == shown["diagnostics"]["iterations"]
        assert 0.3 < shown["prevalence"][1]["estimate"] < 0.6

    def test_more_classes_are_refused_with_the_reason(self, client: httpx.Client) -> None:
        source = {"priors": {"a": 0.2, "b": 0.3, "c": 0.5}}
        address = register(client, "three", source, classes=["a", "b", "c"])
        content = {"posteriors": [[0.2, 0.3, 0.5]], "method": "cde"}
        answer = client.post(f"{address}/estimates", json=content)
        assert answer.status_code == 409
        assert "two classes" in answer.json()["detail"]


class TestEmStop:
    def test_blocks_a_real_shift_and_says_so(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation(1000)})
        content = {"posteriors": rows().tolist(), "method": "em-stop", "include": ["trace"]}
        answer = client.post(f"{address}/estimates", json=content)
        shown = answer.json()
        assert "blocks-shifts" in codes(answer)
        assert len(shown["trace"]) == len(shown["weighted_precision"])
        step = shown["diagnostics"]["iterations"]
        best = shown["weighted_precision"][step]
        assert best == max(shown["weighted_precision"])
        assert best not in shown["weighted_precision"][:step]
        np.testing.assert_allclose(
            [row["estimate"] for row in shown["prevalence"]], shown["trace"][step]
        )
        assert shown["prevalence"][1]["estimate"] < 0.45

    def test_needs_a_validation_set(self, client: httpx.Client) -> None:
        address = register(client, "even", EVEN)
        answer = client.post(
            f"{address}/estimates", json={"posteriors": [[0.5, 0.5]], "method": "em-stop"}
        )
        assert answer.status_code == 409


class TestBayes:
    def test_a_prior_moves_a_small_batch(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation(600)})
        shares = []
        for prior in (None, {"legit": 99.0, "fraud": 1.0}):
            content = {"posteriors": rows(40).tolist(), "method": "bayes"}
            answer = client.post(
                f"{address}/estimates", json={**content, "options": {"prior": prior}}
            )
            row = answer.json()["prevalence"][1]
            assert row["lower"] < row["estimate"] < row["upper"]
            assert answer.json()["interval"]["method"] == "credible"
            shares.append(row["estimate"])
        assert shares[1] < shares[0] / 2

    def test_counts_carry_the_confusion_matrix(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        content = {"predicted_counts": {"legit": 300, "fraud": 100}, "method": "bayes"}
        found = [client.post(f"{address}/estimates", json=content).json() for _ in range(2)]
        by_likelihood = client.post(f"{address}/estimates", json={**content, "method": "mle"})
        one, other = found[0]["prevalence"][1], by_likelihood.json()["prevalence"][1]
        assert one == found[1]["prevalence"][1]
        assert one["estimate"] == pytest.approx(other["estimate"], abs=0.02)
        assert one["upper"] - one["lower"] == pytest.approx(
            other["upper"] - other["lower"], rel=0.15
        )

    @pytest.mark.parametrize(
        "prior", [{"legit": 1}, {"legit": 1, "fraud": 0}, {"legit": 1, "fraud": "1"}, [1, 1]]
    )
    def test_wrong_priors(self, lasting: httpx.Client, prior: object) -> None:
        if lasting.get("/v1/models/bayes").status_code == 404:
            register(lasting, "bayes", COUNTED)
        answer = lasting.post(
            "/v1/models/bayes/versions/1/estimates",
            json={"predictions": ["fraud"], "method": "bayes", "options": {"prior": prior}},
        )
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"].startswith("/options/prior")


class TestCosts:
    def test_decisions_and_their_threshold(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation(1000)})
        raw = rows()
        content = {"posteriors": raw.tolist(), "costs": [[0, 1], [9, 0]]}
        shown = client.post(f"{address}/posteriors", json=content).json()
        adjusted = np.array(shown["posteriors"])
        by_hand = np.where(9 * adjusted[:, 1] > adjusted[:, 0], "fraud", "legit")
        assert shown["decisions"] == by_hand.tolist()
        above = np.where(raw[:, 1] > shown["threshold"], "fraud", "legit")
        assert shown["decisions"] == above.tolist()

    @pytest.mark.parametrize(
        "costs", [[[0, 1]], [[0, 1], [1]], [[0, "1"], [1, 0]], [[0, 1], [1, 0], [1, 1]], 3]
    )
    def test_wrong_costs(self, lasting: httpx.Client, costs: object) -> None:
        if lasting.get("/v1/models/costs").status_code == 404:
            register(lasting, "costs", COUNTED)
        answer = lasting.post(
            "/v1/models/costs/versions/1/posteriors",
            json={"posteriors": [[0.5, 0.5]], "costs": costs},
        )
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"].startswith("/costs")

    def test_only_if_shifted(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation(1000)})
        for share, moved in ((0.2, False), (0.6, True)):
            content = {"posteriors": rows(400, share).tolist(), "adjust": "if-shifted"}
            answer = client.post(f"{address}/posteriors", json=content)
            shown = answer.json()
            assert (shown["source_priors"] != shown["target_priors"]) == moved
            assert ("little-shift" in codes(answer)) != moved


class TestBiasAdjustments:
    @pytest.mark.parametrize("reference", [None, "legit"])
    @pytest.mark.parametrize("calibration", ["bcts", "none"])
    def test_equals_adjusting_the_posteriors(
        self, client: httpx.Client, calibration: str, reference: str | None
    ) -> None:
        rng = np.random.default_rng(0)
        labels = (rng.random(500) < 0.3).astype(int)
        x = rng.normal(labels, 1.0)
        weight, intercept = 1.7, -0.4
        raw = softmax(np.column_stack([np.zeros(500), weight * x + intercept]), axis=1)
        source = {
            "validation": {"labels": [CLASSES[k] for k in labels], "posteriors": raw.tolist()},
            "calibration": calibration,
        }
        address = register(client, "linear", source)
        target = {"legit": 0.35, "fraud": 0.65}
        intercepts = {"fraud": intercept} if reference else {"legit": 0.0, "fraud": intercept}
        answer = client.post(
            f"{address}/bias-adjustments",
            json={"intercepts": intercepts, "reference": reference, "target_priors": target},
        )
        assert answer.status_code == 200, answer.text
        model = answer.json()
        moved = np.array([model["intercepts"][name] for name in CLASSES])
        logits = model["scale"] * np.column_stack([np.zeros(500), weight * x]) + moved
        expected = client.post(
            f"{address}/posteriors", json={"posteriors": raw.tolist(), "target_priors": target}
        ).json()
        np.testing.assert_allclose(
            softmax(logits, axis=1), expected["posteriors"], rtol=0, atol=1e-12
        )
        if reference:
            assert model["intercepts"][reference] == 0

    def test_to_the_estimate_of_a_batch(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation(600)})
        content = {"intercepts": {"legit": 0, "fraud": 1}, "posteriors": rows().tolist()}
        shown = client.post(f"{address}/bias-adjustments", json=content).json()
        whole = client.post(f"{address}/estimates", json={"posteriors": rows().tolist()}).json()
        assert shown["method"] == whole["method"] == "mle"
        assert list(shown["target_priors"].values()) == [
            row["estimate"] for row in whole["prevalence"]
        ]

    @pytest.mark.parametrize(
        ("content", "place"),
        [
            ({}, "/intercepts"),
            ({"intercepts": {"legit": 0, "fraud": 0}}, ""),
            ({"intercepts": {"legit": 0}, "target_priors": HALF}, "/intercepts/fraud"),
            (
                {"intercepts": {"legit": "0", "fraud": 0}, "target_priors": HALF},
                "/intercepts/legit",
            ),
            (
                {
                    "intercepts": {"legit": 1, "fraud": 0},
                    "reference": "legit",
                    "target_priors": HALF,
                },
                "/intercepts/legit",
            ),
            (
                {"intercepts": {"fraud": 0}, "reference": "theft", "target_priors": HALF},
                "/reference",
            ),
            (
                {
                    "intercepts": {"legit": 0, "fraud": 0},
                    "target_priors": HALF,
                    "posteriors": [[0.5, 0.5]],
                },
                "",
            ),
        ],
    )
    def test_wrong_requests(
        self, lasting: httpx.Client, content: dict[str, object], place: str
    ) -> None:
        if lasting.get("/v1/models/bias").status_code == 404:
            register(lasting, "bias", COUNTED)
        answer = lasting.post("/v1/models/bias/versions/1/bias-adjustments", json=content)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == place

    def test_a_class_at_zero_has_no_intercept(self, lasting: httpx.Client) -> None:
        if lasting.get("/v1/models/bias").status_code == 404:
            register(lasting, "bias", COUNTED)
        answer = lasting.post(
            "/v1/models/bias/versions/1/bias-adjustments",
            json={
                "intercepts": {"legit": 0, "fraud": 0},
                "target_priors": {"legit": 1, "fraud": 0},
            },
        )
        assert answer.status_code == 409
