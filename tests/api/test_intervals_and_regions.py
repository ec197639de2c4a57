import httpx
import numpy as np
import pytest

from tests.api.sources import COUNTED, register, scores, validation

EVEN = {"priors": {"legit": 0.5, "fraud": 0.5}}


def rows(count: int = 400, share: float = 0.4, seed: int = 3) -> list[list[float]]:
    found: list[list[float]] = scores(np.random.default_rng(seed), count, share)[1].tolist()
    return found


def ends(answer: httpx.Response) -> list[tuple[float, float, float]]:
    assert answer.status_code in (200, 201), answer.text
    return [(r["lower"], r["estimate"], r["upper"]) for r in answer.json()["prevalence"]]


class TestIntervals:
    @pytest.mark.parametrize("method", ["cc", "pcc", "acc", "acc-qp", "em", "mle"])
    def test_every_method_has_one(self, client: httpx.Client, method: str) -> None:
        address = register(client, "cards", {"validation": validation(600)})
        answer = client.post(f"{address}/estimates", json={"posteriors": rows(), "method": method})
        for lower, share, upper in ends(answer):
            assert 0 <= lower <= share <= upper <= 1
            assert 0.02 < upper - lower < 0.3
        shown = answer.json()["interval"]
        assert shown["level"] == 0.95
        assert (shown["seed"] is not None) == (shown["method"] == "bootstrap")

    @pytest.mark.parametrize("method", ["cc", "acc", "acc-qp", "em", "mle"])
    def test_predicted_counts_too(self, client: httpx.Client, method: str) -> None:
        address = register(client, "cards", COUNTED)
        for kind in ("auto", "bootstrap"):
            answer = client.post(
                f"{address}/estimates",
                json={
                    "predicted_counts": {"legit": 300, "fraud": 100},
                    "method": method,
                    "interval": {"method": kind},
                },
            )
            for lower, share, upper in ends(answer):
                assert lower < share < upper

    def test_kinds_agree_and_seeds_repeat(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation(600)})
        found = {}
        for kind in ("auto", "wald", "profile", "bootstrap"):
            content = {"posteriors": rows(), "interval": {"method": kind, "seed": 5}}
            answer = client.post(f"{address}/estimates", json=content)
            found[kind] = ends(answer)[1]
            if kind == "bootstrap":
                again = client.post(f"{address}/estimates", json=content)
                assert ends(again) == ends(answer)
                assert answer.json()["interval"]["seed"] == 5
                assert answer.json()["interval"]["replicates"] == 500
        for kind in ("wald", "profile", "bootstrap"):
            assert found[kind][0] == pytest.approx(found["auto"][0], abs=0.015)
            assert found[kind][2] == pytest.approx(found["auto"][2], abs=0.015)

    def test_levels_nest_and_realised_shares_are_known_better(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation(600)})
        widths = []
        for interval in ({"level": 0.99}, {"level": 0.95}, {"level": 0.5}, {"of": "batch"}):
            answer = client.post(
                f"{address}/estimates", json={"posteriors": rows(), "interval": interval}
            )
            lower, _, upper = ends(answer)[1]
            widths.append(upper - lower)
        assert widths[0] > widths[1] > widths[2]
        assert widths[3] < widths[1]

    def test_a_smaller_validation_set_widens(self, client: httpx.Client) -> None:
        widths = []
        for name, size in (("small", 100), ("large", 2000)):
            address = register(client, name, {"validation": validation(size)})
            answer = client.post(f"{address}/estimates", json={"posteriors": rows()})
            lower, _, upper = ends(answer)[1]
            widths.append(upper - lower)
        assert widths[0] > 1.2 * widths[1]

    @pytest.mark.parametrize(
        ("method", "interval"),
        [
            ("acc", {"method": "profile"}),
            ("acc-qp", {"of": "batch"}),
            ("cc", {"method": "wald"}),
            ("mle", {"method": "bootstrap", "of": "batch"}),
        ],
    )
    def test_what_a_method_has_not(
        self, lasting: httpx.Client, method: str, interval: dict[str, str]
    ) -> None:
        name = f"has-not-{method}"
        address = register(lasting, name, COUNTED)
        content = {"posteriors": rows(50), "method": method, "interval": interval}
        answer = lasting.post(f"{address}/estimates", json=content)
        assert answer.status_code == 409
        assert "interval" in answer.json()["detail"]

    @pytest.mark.parametrize("kind", ["auto", "wald", "profile", "bootstrap"])
    @pytest.mark.parametrize("method", ["cc", "pcc", "acc", "acc-qp", "em", "mle"])
    def test_no_interval_excludes_its_estimate(
        self, lasting: httpx.Client, method: str, kind: str
    ) -> None:
        if lasting.get("/v1/models/tiny").status_code == 404:
            labels = ["a", "b", "c"] * 4
            given = np.random.default_rng(0).dirichlet(np.ones(3), 12).tolist()
            source = {"validation": {"labels": labels, "posteriors": given}}
            register(lasting, "tiny", source, classes=["a", "b", "c"])
        for batch in (
            [[1, 0, 0]],
            [[1, 0, 0]] * 10,
            [[0.5, 0.5, 0]] * 3,
            [[0, 0.3, 0.7], [1, 0, 0]],
        ):
            for level in (1e-6, 0.95, 1 - 1e-12):
                content = {
                    "posteriors": batch,
                    "method": method,
                    "interval": {"method": kind, "level": level},
                    "options": {"max_iterations": 1} if method == "em" else {},
                }
                answer = lasting.post("/v1/models/tiny/versions/1/estimates", json=content)
                if answer.status_code == 409:
                    continue
                for lower, share, upper in ends(answer):
                    assert 0 <= lower <= share <= upper <= 1
                    if level == 0.95 and kind != "bootstrap":
                        assert upper > lower


class TestRegions:
    def test_contains_the_estimate_and_excludes_the_far(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation(600)})
        estimate = client.post(f"{address}/estimates", json={"posteriors": rows()}).json()
        share = estimate["prevalence"][1]["estimate"]
        for p, inside in ((share, True), (share + 0.02, True), (0.2, False), (0.9, False)):
            answer = client.post(
                f"{address}/region-tests",
                json={"posteriors": rows(), "priors": {"legit": 1 - p, "fraud": p}},
            )
            assert answer.status_code == 200, answer.text
            assert answer.json()["inside"] == inside
            assert answer.json()["prevalence"]["fraud"] == share
            assert 0 < answer.json()["factor"] <= 1

    def test_agrees_with_the_profile_of_two_classes(self, client: httpx.Client) -> None:
        address = register(client, "even", EVEN)
        content = {"posteriors": rows(100), "interval": {"method": "profile"}}
        lower, _, upper = ends(client.post(f"{address}/estimates", json=content))[1]
        for p, inside in (
            (lower + 2e-3, True),
            (lower - 2e-3, False),
            (upper - 2e-3, True),
            (upper + 2e-3, False),
        ):
            answer = client.post(
                f"{address}/region-tests",
                json={"posteriors": rows(100), "priors": {"legit": 1 - p, "fraud": p}},
            )
            assert answer.json()["inside"] == inside

    def test_of_counts_and_of_the_impossible(self, client: httpx.Client) -> None:
        address = register(client, "exact", {"confusion_matrix": [[50, 0], [0, 50]]})
        answer = client.post(
            f"{address}/region-tests",
            json={"predictions": ["fraud", "legit"], "priors": {"legit": 1, "fraud": 0}},
        ).json()
        assert not answer["inside"]
        assert answer["statistic"] is None
        assert answer["p_value"] == 0

    @pytest.mark.parametrize(
        ("confusion", "counts", "priors"),
        [
            ([[90, 5, 5], [5, 90, 5], [5, 5, 90]], {"a": 500, "b": 500}, [0, 0, 1]),
            ([[90, 10], [10, 90]], {"a": 100}, [0, 1]),
            ([[90, 10], [10, 90]], {"a": 10**15, "b": 3}, [0, 1]),
        ],
    )
    def test_excludes_the_absurd_at_the_boundary(
        self,
        client: httpx.Client,
        confusion: list[list[int]],
        counts: dict[str, int],
        priors: list[float],
    ) -> None:
        classes = ["a", "b", "c"][: len(priors)]
        address = register(client, "m", {"confusion_matrix": confusion}, classes=classes)
        answer = client.post(
            f"{address}/region-tests",
            json={"predicted_counts": counts, "priors": dict(zip(classes, priors, strict=True))},
        ).json()
        assert not answer["inside"]

    @pytest.mark.parametrize(
        "part", [{}, {"priors": {"legit": 1}}, {"priors": {"legit": 0.5, "fraud": 0.5}, "level": 1}]
    )
    def test_wrong_requests(self, lasting: httpx.Client, part: dict[str, object]) -> None:
        if lasting.get("/v1/models/regions").status_code == 404:
            register(lasting, "regions", COUNTED)
        answer = lasting.post(
            "/v1/models/regions/versions/1/region-tests", json={"posteriors": [[1, 0]], **part}
        )
        assert answer.status_code == 422


class TestResampledShiftTest:
    def test_on_request(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation(300)})
        content = {"posteriors": rows(300, 0.2), "shift": {"reference": "bootstrap", "seed": 3}}
        answer = client.post(f"{address}/shift-tests", json=content).json()["shift"]
        scaled = client.post(f"{address}/shift-tests", json={"posteriors": rows(300, 0.2)}).json()
        assert answer["reference"] == "bootstrap"
        assert (answer["seed"], answer["replicates"]) == (3, 499)
        assert answer["p_value"] == pytest.approx(scaled["shift"]["p_value"], abs=0.1)
        again = client.post(f"{address}/shift-tests", json=content).json()["shift"]
        assert again == answer
        assert 0.05 <= answer["raw_false_alarm_rate"] <= 1

    def test_by_default_for_a_rare_class(self, client: httpx.Client) -> None:
        labels, posteriors = scores(np.random.default_rng(0), 400, 0.02, distance=1.5)
        names = ["legit", "fraud"]
        labels[:2] = 1
        source = {
            "validation": {
                "labels": [names[k] for k in labels],
                "posteriors": posteriors.tolist(),
            }
        }
        address = register(client, "rare", source)
        answer = client.post(
            f"{address}/shift-tests", json={"posteriors": posteriors[:60].tolist()}
        ).json()
        assert answer["shift"]["reference"] == "bootstrap"
        assert "boundary-source" in [w["code"] for w in answer["warnings"]]

    def test_needs_validation_rows(self, client: httpx.Client) -> None:
        address = register(client, "even", EVEN)
        content = {"posteriors": rows(10), "shift": {"reference": "bootstrap"}}
        answer = client.post(f"{address}/shift-tests", json=content)
        assert answer.status_code == 409
