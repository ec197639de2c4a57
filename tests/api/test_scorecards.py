"""The scorecard of a version, and what follows from it."""

import httpx
import numpy as np
import pytest

from app.estimation.methods import MATCHING, METHODS
from tests.api.sources import COUNTED, register, scores, validation


def test_every_method_is_tried_or_says_why_not(lasting: httpx.Client) -> None:
    address = register(lasting, "tried", {"validation": validation(2000)})
    card = lasting.get(f"{address}/scorecard").json()
    assert [row["name"] for row in card["methods"]] == list(METHODS)
    by_name = {row["name"]: row for row in card["methods"]}
    assert card["rows"] == 2000
    assert card["batches"] == 40
    for row in card["methods"]:
        if row["name"] in MATCHING:
            assert "not tried" in row["reason"]
            continue
        assert row["reason"] is None
        assert {(b["size"], b["priors"]) for b in row["batches"]} == {
            (size, priors) for size in (100, 1000) for priors in ("uniform", "normalised-uniform")
        }
        large = np.mean([b["mean_absolute_error"] for b in row["batches"] if b["size"] == 1000])
        assert large < 1
    assert by_name["mle"]["mean_absolute_error"] < 0.05
    assert by_name["mle"]["mean_absolute_error"] < by_name["cc"]["mean_absolute_error"]
    assert by_name["mle"]["brier_change"] < by_name["pcc"]["brier_change"] < 0
    assert card["chosen"] == "mle"
    answer = lasting.post(f"{address}/estimates", json={"posteriors": [[0.5, 0.5]]}).json()
    assert (answer["method"], answer["reason"]) == (card["chosen"], card["reason"])


def test_auto_follows_the_evidence(lasting: httpx.Client) -> None:
    """Posteriors squared are no posteriors: the likelihood is misled, inversion is not."""
    labels, rows = scores(np.random.default_rng(0), 3000, 0.2)
    sharp = rows**4
    sharp /= sharp.sum(axis=1, keepdims=True)
    names = [("legit", "fraud")[k] for k in labels]
    given = {"labels": names, "posteriors": sharp.tolist()}
    address = register(lasting, "sharp", {"validation": given, "calibration": "none"})
    card = lasting.get(f"{address}/scorecard").json()
    errors = {row["name"]: row["mean_absolute_error"] for row in card["methods"]}
    assert errors["mle"] > 2 * errors["pacc-qp"]
    assert card["chosen"] in ("acc-qp", "pacc-qp")
    calibrated = register(lasting, "mended", {"validation": given})
    mended = lasting.get(f"{calibrated}/scorecard").json()
    assert mended["chosen"] == "mle"
    assert min(error for error in errors.values() if error is not None) > 0.9 * next(
        row["mean_absolute_error"] for row in mended["methods"] if row["name"] == "mle"
    )


def test_the_same_content_gives_the_same_card(lasting: httpx.Client) -> None:
    cards = []
    for name in ("one", "two"):
        address = register(lasting, name, {"validation": validation(300, 4)})
        card = lasting.get(f"{address}/scorecard").json()
        cards.append({key: card[key] for key in card if key != "model"})
    assert cards[0] == cards[1]


@pytest.mark.parametrize("source", [COUNTED, {"validation": validation(30)}])
def test_without_rows_there_is_none(lasting: httpx.Client, source: dict[str, object]) -> None:
    name = f"none-{len(str(source))}"
    answer = lasting.get(f"{register(lasting, name, source)}/scorecard")
    assert answer.status_code == 409
    assert "register one" in answer.json()["detail"]


def test_unknown_versions_and_parameters(lasting: httpx.Client) -> None:
    address = register(lasting, "known", COUNTED)
    assert lasting.get(f"{address[:-1]}9/scorecard").status_code == 404
    assert lasting.get(f"{address}/scorecard?seed=1").status_code == 422
    assert lasting.post(f"{address}/scorecard").status_code == 405


class TestAdvice:
    def test_small_batches_and_little_shift(self, lasting: httpx.Client) -> None:
        address = register(lasting, "advice", {"validation": validation()})
        rng = np.random.default_rng(2)

        def codes(rows: int, share: float) -> set[str]:
            body = {"posteriors": scores(rng, rows, share)[1].tolist()}
            answer = lasting.post(f"{address}/estimates", json=body).json()
            return {w["code"] for w in answer["warnings"]}

        assert codes(99, 0.2) >= {"small-batch"}
        assert codes(400, 0.7).isdisjoint({"small-batch", "little-shift"})
        assert "little-shift" in codes(2000, 0.2)

    @pytest.mark.parametrize(
        ("classes", "rows", "calibration", "warned"),
        [
            (6, 320, "none", True),
            (6, 280, "bcts", True),
            (6, 320, "bcts", False),
            (5, 50, "none", False),
        ],
    )
    def test_many_classes(
        self, lasting: httpx.Client, classes: int, rows: int, calibration: str, warned: bool
    ) -> None:
        names = [f"c{k}" for k in range(classes)]
        labels = [names[k % classes] for k in range(rows)]
        posteriors = np.random.default_rng(0).dirichlet(np.ones(classes), rows).tolist()
        source = {
            "validation": {"labels": labels, "posteriors": posteriors},
            "calibration": calibration,
        }
        name = f"many-{classes}-{rows}-{calibration}"
        shown = lasting.get(register(lasting, name, source, classes=names)).json()
        assert ("many-classes" in {w["code"] for w in shown["warnings"]}) == warned
