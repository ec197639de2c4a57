import httpx
import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, f1_score, log_loss

from tests.api.sources import CLASSES, COUNTED, register, scores, validation


def labelled(rows: int = 500, share: float = 0.5) -> tuple[list[str], list[list[float]]]:
    labels, posteriors = scores(np.random.default_rng(5), rows, share)
    return [CLASSES[k] for k in labels], posteriors.tolist()


class TestOfABatch:
    def test_before_and_after(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation(1000)})
        labels, posteriors = labelled()
        answer = client.post(
            f"{address}/evaluations", json={"labels": labels, "posteriors": posteriors}
        )
        assert answer.status_code == 201, answer.text
        shown = answer.json()
        truth = np.array([label == "fraud" for label in labels])
        assert shown["truth"]["fraud"] == truth.mean()
        assert shown["estimate"]["absolute_error"] < shown["counted"]["absolute_error"]
        for when, rows in (
            ("before", np.array(posteriors)),
            (
                "after",
                np.array(
                    client.post(f"{address}/posteriors", json={"posteriors": posteriors}).json()[
                        "posteriors"
                    ]
                ),
            ),
        ):
            found = shown[when]
            brier = brier_score_loss(truth, rows[:, 1])
            assert found["equal_length_bins"]["brier"] == pytest.approx(brier)
            assert found["log_loss"] == pytest.approx(log_loss(truth, rows))
            f1 = f1_score(truth, rows[:, 1] > 0.5, average="macro")
            assert found["macro_f1"] == pytest.approx(f1)
            parts = found["equal_count_bins"]
            total = parts["calibration_error"] + parts["refinement_error"] + parts["remainder"]
            assert total == pytest.approx(parts["brier"])
        assert (
            shown["after"]["equal_length_bins"]["brier"]
            < shown["before"]["equal_length_bins"]["brier"]
        )
        assert shown["covered"] == {"legit": True, "fraud": True}
        assert client.get(answer.headers["location"]).json() == shown

    def test_of_predictions_shares_alone(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        content = {
            "labels": ["fraud", "legit", "legit"],
            "predictions": ["fraud", "legit", "fraud"],
        }
        shown = client.post(f"{address}/evaluations", json=content).json()
        assert shown["before"] is None
        assert shown["counted"]["absolute_error"] == pytest.approx(1 / 3)


class TestOfAKeptEstimate:
    def test_shares_and_coverage(self, client: httpx.Client) -> None:
        address = register(client, "cards", {"validation": validation(1000)})
        labels, posteriors = labelled()
        kept = client.post(f"{address}/estimates", json={"posteriors": posteriors}).json()
        content = {"labels": labels, "estimate": kept["id"]}
        shown = client.post(f"{address}/evaluations", json=content).json()
        whole = client.post(
            f"{address}/evaluations", json={"labels": labels, "posteriors": posteriors}
        ).json()
        assert shown["estimate_id"] == kept["id"]
        for part in ("truth", "counted", "estimate", "covered"):
            assert shown[part] == whole[part]
        assert shown["before"] is None
        listed = client.get("/v1/evaluations", params={"estimate": kept["id"]}).json()["items"]
        assert listed == [shown]

    def test_of_another_version(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        other = register(client, "other", COUNTED)
        kept = client.post(f"{address}/estimates", json={"predictions": ["fraud"]}).json()
        answer = client.post(
            f"{other}/evaluations", json={"labels": ["fraud"], "estimate": kept["id"]}
        )
        assert answer.status_code == 404


class TestHistory:
    def test_pages_newest_first_and_goes_with_its_model(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        ids = [
            client.post(
                f"{address}/evaluations", json={"labels": ["fraud"], "predictions": ["fraud"]}
            ).json()["id"]
            for _ in range(5)
        ]
        seen: list[str] = []
        params = {"model": "cards", "limit": "2"}
        while True:
            page = client.get("/v1/evaluations", params=params).json()
            seen += [item["id"] for item in page["items"]]
            if page["next_cursor"] is None:
                break
            params["cursor"] = page["next_cursor"]
        assert seen == ids[::-1]
        assert client.get("/v1/evaluations", params={"version": "2"}).json()["items"] == []
        assert client.delete("/v1/models/cards").status_code == 409
        client.delete("/v1/models/cards", params={"force": "true"})
        assert client.get(f"/v1/evaluations/{ids[0]}").status_code == 404

    def test_the_same_key_writes_once(self, client: httpx.Client) -> None:
        address = register(client, "cards", COUNTED)
        content = {"labels": ["fraud"], "predictions": ["fraud"]}
        headers = {"Idempotency-Key": "k"}
        first, second = (
            client.post(f"{address}/evaluations", json=content, headers=headers) for _ in range(2)
        )
        assert first.content == second.content
        assert len(client.get("/v1/evaluations").json()["items"]) == 1


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ({}, 422),
        ({"labels": ["fraud"]}, 422),
        ({"labels": [], "predictions": ["fraud"]}, 422),
        ({"labels": ["theft"], "predictions": ["fraud"]}, 422),
        ({"labels": [1], "predictions": ["fraud"]}, 422),
        ({"labels": ["fraud", "legit"], "predictions": ["fraud"]}, 422),
        ({"labels": ["fraud"], "estimate": "0" * 32}, 404),
        ({"labels": ["fraud"], "estimate": "x"}, 422),
        ({"labels": ["fraud"], "posteriors": [[0.5, 0.6]]}, 422),
    ],
)
def test_wrong_requests(lasting: httpx.Client, content: dict[str, object], status: int) -> None:
    if lasting.get("/v1/models/evaluated").status_code == 404:
        register(lasting, "evaluated", COUNTED)
    answer = lasting.post("/v1/models/evaluated/versions/1/evaluations", json=content)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert lasting.get("/v1/evaluations").json()["items"] == []
