import threading

import httpx
import numpy as np
import pytest

from app.estimation.methods import MATCHING
from tests.api.sources import CLASSES, COUNTED, register, scores, validation


class TestRegister:
    def test_the_same_content_is_the_same_version(self, client: httpx.Client) -> None:
        register(client, "cards", COUNTED)
        again = client.post(
            "/v1/models/cards/versions",
            json={"source": {**COUNTED, "metadata": {"commit": "another"}}},
        )
        assert again.status_code == 200
        assert again.json()["version"] == 1
        bare = client.post("/v1/models/cards/versions", json=COUNTED)
        assert bare.status_code == 200
        other = client.post(
            "/v1/models/cards/versions", json={"source": {"priors": {"legit": 0.9, "fraud": 0.1}}}
        )
        assert other.status_code == 201
        assert other.headers["location"] == "/v1/models/cards/versions/2"
        assert client.get("/v1/models/cards/versions/latest").json()["version"] == 2
        listed = client.get("/v1/models/cards/versions", params={"limit": "1"}).json()
        assert [item["version"] for item in listed["items"]] == [2]
        rest = client.get(
            "/v1/models/cards/versions", params={"cursor": listed["next_cursor"]}
        ).json()
        assert [item["version"] for item in rest["items"]] == [1]

    def test_columns_in_another_order_are_the_same_content(self, client: httpx.Client) -> None:
        given = validation()
        register(client, "cards", {"validation": {**given, "columns": CLASSES}})
        swapped = {
            "labels": given["labels"],
            "posteriors": [row[::-1] for row in given["posteriors"]],
            "columns": CLASSES[::-1],
        }
        answer = client.post("/v1/models/cards/versions", json={"source": {"validation": swapped}})
        assert answer.status_code == 200

    def test_concurrent_registrations_never_share_a_number(self, client: httpx.Client) -> None:
        register(client, "cards", COUNTED)
        numbers: list[int] = []

        def post(share: float) -> None:
            source = {"priors": {"legit": 1 - share, "fraud": share}}
            answer = client.post("/v1/models/cards/versions", json={"source": source})
            numbers.append(answer.json()["version"])

        threads = [threading.Thread(target=post, args=(k / 100,)) for k in range(1, 21)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(numbers) == list(range(2, 22))

    def test_concurrent_equal_registrations_are_one(self, client: httpx.Client) -> None:
        register(client, "cards", COUNTED)
        answers: list[tuple[int, int]] = []

        def post() -> None:
            source = {"priors": {"legit": 0.5, "fraud": 0.5}}
            answer = client.post("/v1/models/cards/versions", json={"source": source})
            answers.append((answer.status_code, answer.json()["version"]))

        threads = [threading.Thread(target=post) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == [(200, 2)] * 7 + [(201, 2)]


class TestContent:
    def test_a_validation_set_gives_everything(self, client: httpx.Client) -> None:
        shown = client.get(register(client, "cards", {"validation": validation()})).json()
        labels = validation()["labels"]
        counts = {name: labels.count(name) for name in CLASSES}
        assert shown["validation"]["size"] == 400
        assert shown["validation"]["label_counts"] == counts
        assert shown["source_priors"]["fraud"] == counts["fraud"] / 400
        assert [sum(row) for row in shown["confusion_matrix"]] == [counts[c] for c in CLASSES]
        assert shown["calibration"]["method"] == "bcts"
        assert 0.5 < shown["calibration"]["scale"] < 1.5
        assert sum(shown["calibration"]["bias"].values()) == pytest.approx(0, abs=1e-12)
        missing = {method["name"] for method in shown["methods"] if not method["available"]}
        assert missing == MATCHING
        assert shown["warnings"] == []

    def test_priors_alone_say_what_more_would_unlock(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"priors": {"legit": 0.9, "fraud": 0.1}})
        methods = {m["name"]: m for m in client.get(address).json()["methods"]}
        assert methods["em"]["available"]
        assert not methods["acc"]["available"]
        assert "register" in methods["acc"]["reason"]

    def test_priors_that_disagree_with_the_labels(self, client: httpx.Client) -> None:
        source = {"class_counts": {"legit": 9900, "fraud": 100}, "validation": validation()}
        shown = client.get(register(client, "cards", source)).json()
        assert [w["code"] for w in shown["warnings"]] == ["priors-disagree"]
        assert shown["priors"]["fraud"] == 0.01
        assert shown["source_priors"]["fraud"] == pytest.approx(0.2, abs=0.06)

    def test_without_calibration_the_mean_posterior_is_the_prior(
        self, client: httpx.Client
    ) -> None:
        given = validation()
        source = {"validation": given, "calibration": "none"}
        shown = client.get(register(client, "cards", source)).json()
        mean = np.mean(given["posteriors"], axis=0)
        np.testing.assert_allclose(list(shown["source_priors"].values()), mean)
        assert shown["warnings"] == []
        assert shown["calibration"]["report"]["before"] == shown["calibration"]["report"]["after"]

    def test_priors_from_the_confusion_matrix(self, client: httpx.Client) -> None:
        source = {"confusion_matrix": COUNTED["confusion_matrix"]}
        shown = client.get(register(client, "cards", source)).json()
        assert shown["priors"] == {"legit": 0.9, "fraud": 0.1}
        assert [w["code"] for w in shown["warnings"]] == ["priors-from-confusion-matrix"]

    def test_an_output_that_is_never_predicted(self, client: httpx.Client) -> None:
        source = {"confusion_matrix": [[9, 0], [3, 0]]}
        shown = client.get(register(client, "cards", source)).json()
        assert "unpredicted-outputs" in [w["code"] for w in shown["warnings"]]

    def test_separable_scores_are_flagged(self, client: httpx.Client) -> None:
        given = {"labels": ["legit", "fraud"] * 5, "posteriors": [[0.9, 0.1], [0.2, 0.8]] * 5}
        shown = client.get(register(client, "cards", {"validation": given})).json()
        assert shown["calibration"]["regularised"]
        assert [w["code"] for w in shown["warnings"]] == [
            "calibration-regularised",
            "validation-too-small",
        ]


def test_a_large_validation_set_registers_and_loads(client: httpx.Client) -> None:
    rng = np.random.default_rng(0)
    labels, posteriors = scores(rng, 50_000, 0.2)
    given = {"labels": [CLASSES[k] for k in labels], "posteriors": posteriors.tolist()}
    address = register(client, "cards", {"validation": given})
    assert client.get(address).json()["validation"]["size"] == 50_000
    answer = client.post(f"{address}/shift-tests", json={"posteriors": posteriors[:500].tolist()})
    assert answer.json()["shift"]["scale"] == pytest.approx(1.01)
