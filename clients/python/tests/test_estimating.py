from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import numpy as np
import pytest

from priorshift_client import Client, Features, Source, Training
from tests.api.sources import CLASSES, scores
from tests.api.trained import NAMES, rows

LABELS, ROWS = scores(np.random.default_rng(3), 500, 0.5)
NAMED = [CLASSES[k] for k in LABELS]


class TestEstimate:
    def test_posteriors(self, client: Client, cards: str) -> None:
        found = client.estimate(
            cards,
            ROWS,
            method="em",
            interval={"level": 0.9},
            shift={"significance": 0.01},
            options={"tolerance": 1e-9, "max_iterations": 5000},
            segment={"country": "BE", "channel.kind": "web"},
            observed_at=datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=1))),
            include=["posteriors", "trace"],
        )
        assert (found.model, found.version, found.method, found.size) == (cards, 1, "em", 500)
        assert found.observed_at == datetime(2026, 1, 31, 11, tzinfo=UTC)
        assert found.segment == {"country": "BE", "channel.kind": "web"}
        assert found.interval is not None
        assert found.interval.level == 0.9
        assert found.shift is not None
        assert found.shift.detected
        assert found.shift.significance == 0.01
        assert found.posteriors is not None
        assert found.posteriors.shape == (500, 2)
        assert found.trace is not None
        assert found.diagnostics.status == "converged"

    def test_prevalence_is_a_table(self, client: Client, cards: str) -> None:
        found = client.estimate(cards, ROWS, keep=False).prevalence
        assert [share.name for share in found] == CLASSES
        assert found[1] == found["fraud"] == found[-1]
        assert found[:1] == (found["legit"],)
        assert found.shares["fraud"] == found[1].estimate
        np.testing.assert_array_equal(found.array, list(found.shares.values()))
        lower, upper = found["fraud"].lower, found["fraud"].upper
        assert lower is not None
        assert upper is not None
        assert lower < 0.5 < upper
        with pytest.raises(KeyError):
            found["other"]

    def test_the_ways_to_say_a_batch_agree(self, client: Client, cards: str) -> None:
        kept = client.estimate(cards, ROWS, keep=False).prevalence
        for same in (
            ROWS.tolist(),
            [tuple(row) for row in ROWS],
            list(ROWS),
            np.asfortranarray(ROWS),
            {"fraud": ROWS[:, 1], "legit": ROWS[:, 0].tolist()},
        ):
            assert client.estimate(cards, same, keep=False).prevalence == kept
        swapped = client.estimate(cards, ROWS[:, ::-1], keep=False, columns=CLASSES[::-1])
        assert swapped.prevalence == kept

    def test_labels_and_counts(self, client: Client, cards: str) -> None:
        predicted = np.array(CLASSES)[ROWS.argmax(axis=1)]
        kept = client.estimate(cards, predicted, keep=False)
        assert kept.size == 500
        counts = {name: np.count_nonzero(predicted == name) for name in CLASSES}
        for same in (predicted.tolist(), iter(predicted.tolist()), counts):
            found = client.estimate(cards, same, keep=False)
            np.testing.assert_allclose(found.prevalence.array, kept.prevalence.array)

    def test_some_labels_of_the_batch(self, client: Client, cards: str) -> None:
        some = [name if row % 10 == 0 else None for row, name in enumerate(NAMED)]
        assert client.estimate(cards, ROWS, labels=some, keep=False).labelled == 50

    def test_nothing_is_kept_unless_asked(self, client: Client, cards: str) -> None:
        assert client.estimate(cards, ROWS, keep=False).id is None
        kept = client.estimate(cards, ROWS)
        assert kept.id is not None
        assert client.estimates.get(kept.id).prevalence == kept.prevalence

    def test_features(self, client: Client) -> None:
        features, labels = rows(60, CLASSES)
        training = Training(features, labels, "logistic-regression", NAMES, ["country"])
        client.models.create("orders", CLASSES, Source(training=training))
        kept = client.estimate("orders", Features(features), keep=False)
        turned = Features([row[::-1] for row in features], NAMES[::-1])
        assert client.estimate("orders", turned, keep=False).prevalence == kept.prevalence
        columns = {"country": [row[1] for row in features], "amount": [r[0] for r in features]}
        found = client.estimate("orders", Features(columns), keep=False)
        assert found.prevalence == kept.prevalence
        adjusted = client.posteriors("orders", Features(features))
        assert adjusted.array.shape == (60, 2)
        fitted = client.versions.parameters("orders")
        assert [column.name for column in fitted.columns] == NAMES
        moved = client.adjusted_model("orders", Features(features))
        assert moved.target_priors == adjusted.target_priors
        assert moved.columns[1].levels is not None
        assert {level.level for level in moved.columns[1].levels} == {"BE", "NL", "FR"}


class TestOptions:
    def test_a_prior_does_not_fit_into_an_address(self, client: Client, cards: str) -> None:
        prior = {"legit": 9.0, "fraud": 1.0}
        found = client.estimate(
            cards, ROWS, method="bayes", options={"prior": prior, "seed": 3}, keep=False
        )
        flat = client.estimate(cards, ROWS, method="bayes", options={"seed": 3}, keep=False)
        assert found.method == flat.method == "bayes"
        assert found.prevalence != flat.prevalence

    def test_numbers_of_numpy(self, client: Client, cards: str) -> None:
        wanted: Any = {"level": np.float64(0.8), "seed": np.int64(3), "method": "bootstrap"}
        found = client.estimate(cards, ROWS, interval=wanted, keep=False)
        assert found.interval is not None
        assert (found.interval.level, found.interval.seed) == (0.8, 3)

    def test_names_that_addresses_and_headers_escape(self, client: Client) -> None:
        names = ["a&b=c", "x.y ä", "欺诈%41+", "columns"]
        client.models.create("odd", names, Source(priors=dict.fromkeys(names, 0.25)))
        rows = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4]])
        target = dict(zip(names, [0.4, 0.3, 0.2, 0.1], strict=True))
        found = client.posteriors("odd", rows[:, ::-1], columns=names[::-1], target_priors=target)
        assert found.columns == tuple(names)
        assert found.target_priors == pytest.approx(target)
        weighted = rows * [0.4, 0.3, 0.2, 0.1]
        expected = weighted / weighted.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found.array, expected, rtol=1e-12)
        kept = client.estimate("odd", rows, segment={"where": "ä&=+ %"})
        assert kept.segment == {"where": "ä&=+ %"}
        found_again = client.history("odd", segment={"where": "ä&=+ %"})
        assert [estimate.id for estimate in found_again] == [kept.id]


@pytest.mark.parametrize("compress", [None, "gzip"])
def test_a_body_compressed_is_the_same_body(
    base: str, cards: str, compress: Literal["gzip"] | None
) -> None:
    with Client(base, compress=compress) as squeezed:
        found = squeezed.estimate(cards, ROWS, idempotency_key="squeezed")
        again = squeezed.estimate(cards, ROWS, idempotency_key="squeezed")
    assert found.id == again.id


def test_history_by_filters_and_pages(client: Client) -> None:
    client.models.create("past", CLASSES, Source(confusion_matrix=[[900, 90], [10, 100]]))
    for day in range(1, 6):
        client.estimate(
            "past",
            {"legit": 90, "fraud": 10 + day},
            observed_at=f"2026-01-0{day}T00:00:00Z",
            segment={"country": "BE" if day % 2 else "NL"},
        )
    everything = list(client.history("past", limit=2))
    days = [e.observed_at.day for e in everything if e.observed_at is not None]
    assert days == [5, 4, 3, 2, 1]
    since = datetime(2026, 1, 2, tzinfo=UTC)
    until = datetime(2026, 1, 5, tzinfo=UTC)
    some = client.history("past", 1, since=since, until=until, segment={"country": "BE"})
    assert [e.size for e in some] == [103]


def test_shift_test(client: Client, cards: str) -> None:
    found = client.shift_test(cards, ROWS, shift={"significance": 0.01, "minimum_effect": 0.05})
    assert found.detected
    assert found.shift.minimum_effect == 0.05
    assert found.size == 500


def test_region_test(client: Client, cards: str) -> None:
    inside = client.region_test(cards, ROWS, {"legit": 0.5, "fraud": 0.5}, level=0.99)
    assert inside.inside
    assert inside.level == 0.99
    outside = client.region_test(cards, ROWS, {"legit": 0.99, "fraud": 0.01})
    assert not outside.inside


def test_bias_adjustment(client: Client, cards: str) -> None:
    stated = client.bias_adjustment(
        cards, {"fraud": -2.0}, reference="legit", target_priors={"legit": 0.5, "fraud": 0.5}
    )
    assert stated.intercepts["legit"] == 0.0
    assert stated.method is None
    estimated = client.bias_adjustment(cards, {"legit": 0.0, "fraud": -2.0}, ROWS)
    assert estimated.method == "mle"


class TestEvaluate:
    def test_a_batch(self, client: Client, cards: str) -> None:
        found = client.evaluate(cards, NAMED, ROWS)
        assert found.size == 500
        assert found.counted is not None
        assert found.before is not None
        assert found.after is not None
        assert found.estimate.total_variation < found.counted.total_variation + 0.1
        assert client.evaluations.get(found.id) == found

    def test_a_kept_estimate(self, client: Client, cards: str) -> None:
        kept = client.estimate(cards, ROWS)
        found = client.evaluate(cards, np.array(NAMED), estimate=kept)
        assert found.estimate_id == kept.id
        listed = list(client.evaluations.list(cards, estimate=kept))
        assert listed == [found]


def test_health(client: Client) -> None:
    assert client.health() == "ready"
    assert client.release().name == "priorshift"
