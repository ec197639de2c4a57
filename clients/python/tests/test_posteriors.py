import httpx
import numpy as np
import pytest

from priorshift_client import Client, InvalidInput, Source, as_sklearn
from tests.api.sources import CLASSES, scores

LABELS, ROWS = scores(np.random.default_rng(9), 300, 0.5)
TARGET = {"legit": 0.7, "fraud": 0.3}


class TestPosteriors:
    def test_arrays_are_the_service_s_bit_for_bit(self, client: Client, base: str) -> None:
        client.models.create("bits", CLASSES)
        given = {"class_counts": {"legit": 800, "fraud": 200}}
        httpx.post(f"{base}/v1/models/bits/versions", json={"source": given})
        found = client.posteriors("bits", ROWS, target_priors=TARGET)
        plain = httpx.post(
            f"{base}/v1/models/bits/versions/latest/posteriors",
            json={"posteriors": ROWS.tolist(), "target_priors": TARGET},
        ).json()
        assert found.array.dtype == np.float64
        assert found.array.tobytes() == np.array(plain["posteriors"]).tobytes()
        assert found.columns == ("legit", "fraud")
        assert found.target_priors == TARGET
        assert found.method is None

    @pytest.mark.parametrize("kind", [np.float16, np.float32, ">f8"])
    def test_other_precisions_go_as_they_are(self, client: Client, cards: str, kind: str) -> None:
        rows = np.array([[0.75, 0.25], [0.5, 0.5]], dtype=kind)
        found = client.posteriors(cards, rows, target_priors=TARGET)
        same = client.posteriors(cards, rows.astype(float), target_priors=TARGET)
        assert found.array.tobytes() == same.array.tobytes()

    def test_what_the_headers_say(self, client: Client, cards: str) -> None:
        found = client.posteriors(cards, ROWS[:50])
        assert found.method == "mle"
        estimated = client.estimate(cards, ROWS[:50], keep=False)
        assert found.target_priors == estimated.prevalence.shares
        scaled = client.posteriors(cards, ROWS[:50] * 1.0005)
        assert "renormalised" in {warning.code for warning in scaled.warnings}
        np.testing.assert_array_equal(np.asarray(found), found.array)
        assert np.asarray(found, dtype=np.float32).dtype == np.float32

    def test_costs_bring_decisions(self, client: Client, cards: str) -> None:
        found = client.posteriors(cards, ROWS, costs=[[0, 1], [9, 0]], target_priors=TARGET)
        assert found.decisions is not None
        assert len(found.decisions) == 300
        assert found.threshold is not None
        assert found.source_priors is not None

    def test_counts_bring_their_outputs(self, client: Client, cards: str) -> None:
        found = client.posteriors(cards, {"legit": 90, "fraud": 10})
        assert found.outputs == ("legit", "fraud")
        assert found.array.shape == (2, 2)

    def test_options_too_long_for_an_address_go_into_the_body(self, client: Client) -> None:
        names = [f"{k:03d}-{'x' * 60}" for k in range(200)]
        client.models.create("many", names)
        even = dict.fromkeys(names, 1 / 200)
        client.versions.register("many", Source(priors=even))
        rows = np.full((3, 200), 1 / 200)
        found = client.posteriors("many", rows, target_priors=even)
        np.testing.assert_allclose(found.array, rows)
        assert found.columns is None
        assert found.target_priors is None
        assert "priors-not-in-header" in {w.code for w in found.warnings}


class Fitted:
    """A classifier that knows its posteriors already; classes in an order of its own."""

    classes_ = np.array(["fraud", "legit"])

    def predict_proba(self, X: list[int]) -> object:
        return ROWS[X][:, ::-1]


class TestAsSklearn:
    def test_columns_are_matched_by_name(self, client: Client, cards: str) -> None:
        adjusted = as_sklearn(Fitted(), client, cards)
        batch = list(range(300))
        assert adjusted.classes_ is Fitted.classes_
        found = adjusted.predict_proba(batch)
        expected = client.posteriors(cards, ROWS).array[:, ::-1]
        np.testing.assert_array_equal(found, expected)
        predicted = adjusted.predict(batch)
        truth = np.array(CLASSES)[LABELS]
        assert np.mean(predicted == truth) > np.mean(
            np.array(CLASSES)[ROWS.argmax(axis=1)] == truth
        )

    def test_stated_priors(self, client: Client, cards: str) -> None:
        found = as_sklearn(Fitted(), client, cards, 1, target_priors=TARGET).adjust([0, 1, 2])
        assert found.target_priors == TARGET
        assert found.method is None

    def test_numbers_as_classes(self, client: Client) -> None:
        class Numbered(Fitted):
            classes_ = np.array([1, 0])

        client.models.create("numbers", ["0", "1"])
        client.versions.register("numbers", Source(priors={"0": 0.8, "1": 0.2}))
        adjusted = as_sklearn(Numbered(), client, "numbers", target_priors={"0": 0.5, "1": 0.5})
        assert set(adjusted.predict([0, 1, 2, 3]).tolist()) <= {0, 1}
        assert adjusted.adjust([0]).columns == ("0", "1")

    def test_names_that_collide(self, client: Client) -> None:
        class Colliding(Fitted):
            classes_ = np.array([1, "1"], dtype=object)

        with pytest.raises(ValueError, match="same name"):
            as_sklearn(Colliding(), client, "cards")

    def test_a_real_classifier(self, client: Client) -> None:
        from sklearn.linear_model import LogisticRegression

        rng = np.random.default_rng(2)
        y = (rng.random(400) < 0.2).astype(int)
        x = rng.normal(y * 2.0, 1.0)[:, None]
        fitted = LogisticRegression().fit(x[:200], y[:200])
        client.models.create("real", ["0", "1"])
        client.versions.register("real", Source(y[200:].astype(str), fitted.predict_proba(x[200:])))
        adjusted = as_sklearn(fitted, client, "real")
        assert adjusted.predict_proba(x).shape == (400, 2)
        with pytest.raises(InvalidInput):
            as_sklearn(fitted, client, "real", target_priors={"0": 1.5}).predict(x)
