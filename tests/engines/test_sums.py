import json
from typing import cast

import numpy as np
import pytest

from app.core.prevalence.matching.posterior_fit import Bins
from app.engines.engine import TooManyGroups
from app.engines.subsample import EVERY, FEW, BinCounter, Sample
from app.engines.tallies import MOST_JOINED, Read, Sums, Tally
from tests.engines.data import draw, model

BINS = cast(Bins, model(2).bins)


def sums(value: float) -> Sums:
    return Sums({"a": np.full((2, 2), value)}, {"rows": np.full((1, 2), value, np.float32)})


class TestSums:
    def test_merge_by_adding_and_joining(self) -> None:
        found = sums(1.0).merge(sums(2.0))
        np.testing.assert_array_equal(found.added["a"], np.full((2, 2), 3.0))
        np.testing.assert_array_equal(found.joined["rows"], [[1.0, 1.0], [2.0, 2.0]])

    @pytest.mark.parametrize("value", [1 / 3, np.inf, -np.inf, np.nan, 5e-324])
    def test_come_back_from_json_to_the_last_bit(self, value: float) -> None:
        kept = json.loads(json.dumps(sums(value).to_json(), allow_nan=False))
        found, expected = Sums.from_json(kept), sums(value)
        assert found.added["a"].tobytes() == expected.added["a"].tobytes()
        assert found.joined["rows"].tobytes() == expected.joined["rows"].tobytes()
        assert found.joined["rows"].dtype == np.float32

    def test_opposite_infinities_are_not_a_number_and_no_warning(self) -> None:
        assert np.isnan(sums(np.inf).merge(sums(-np.inf)).added["a"]).all()


class TestTallies:
    def test_have_the_groups_of_both(self) -> None:
        first = Tally({("a",): sums(1.0)}, 2, Read(3, 4, 1, 2, 0, ("a",) * 15))
        second = Tally({("a",): sums(1.0), ("b",): sums(5.0)}, 2, Read(1, 1, 0, 0, 1, ("b",) * 15))
        both = first.merge(second)
        assert both.answers[("a",)].added["a"][0, 0] == 2.0
        assert both.answers[("b",)].added["a"][0, 0] == 5.0
        assert (both.rows, both.bytes) == (4, 5)
        assert both.read == Read(4, 5, 1, 2, 1, ("a",) * 15 + ("b",) * 5)

    def test_have_no_more_than_allowed(self) -> None:
        with pytest.raises(TooManyGroups):
            Tally({("a",): sums(1.0)}, 1).merge(Tally({("b",): sums(1.0)}, 1))

    def test_keep_few_rows(self) -> None:
        def of(count: int) -> Tally:
            rows = np.arange(2.0 * count).reshape(count, 2)
            return Tally({("a",): Sums({}, {"sample": rows, "weights": np.full(count, 5.0)})}, 1)

        total = of(1000)
        for _ in range(400):
            total = total.merge(of(1000))
        joined = total.answers[("a",)].joined
        assert len(joined["sample"]) == len(joined["weights"]) <= MOST_JOINED / 3
        assert joined["weights"].sum() == pytest.approx(401 * 5000.0)


class TestSamples:
    @pytest.mark.parametrize("cuts", [1, 7, 100])
    @pytest.mark.parametrize("most", [8, 30, 1000])
    def test_are_evenly_spaced_however_the_rows_come(self, cuts: int, most: int) -> None:
        rows = np.arange(999.0)[:, None]
        sample = Sample(most)
        for piece in np.array_split(rows, cuts):
            sample.add(piece)
        found = sample.joined(1)
        assert most / 2 <= len(found["sample"]) <= most or most > 999
        assert len(set(np.diff(found["sample"][:, 0]))) == 1
        assert found["weights"].sum() == pytest.approx(999)


class TestRowsThatAreLookedAt:
    def test_are_all_of_few(self) -> None:
        rows = draw(np.random.default_rng(0), np.array([0.7, 0.3]), 3000)[1]
        looked = BinCounter(BINS)
        for piece in np.array_split(rows, 7):
            looked.add(piece)
        np.testing.assert_array_equal(looked.counted()["bins"], BINS.count(rows))

    @pytest.mark.parametrize("full", [1000, 1 << 17])
    def test_are_evenly_spaced_ones_of_many(
        self, full: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.engines.subsample.FULL", full)
        rows = draw(np.random.default_rng(0), np.array([0.7, 0.3]), 40 * EVERY * FEW // 32)[1]
        looked = BinCounter(BINS)
        pieces = [rows[: EVERY * FEW], rows[EVERY * FEW :]]
        for piece in pieces:
            looked.add(piece)
        few = len(pieces[1]) // FEW
        expected = BINS.count_all(pieces[0][::EVERY]) + BINS.count_all(pieces[1][::few])
        np.testing.assert_array_equal(looked.counted()["bins"], expected)

    def test_are_none_without_bins(self) -> None:
        looked = BinCounter(None)
        looked.add(np.ones((5, 2)))
        assert looked.counted() == {}
