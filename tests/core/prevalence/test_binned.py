import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.arrays import Codes, Floats
from app.core.prevalence.matching import posterior_fit
from app.core.prevalence.matching.posterior_fit import Bins

SOURCE = np.array([0.8, 0.2])


def draw(seed: int, rows: int, share: float) -> tuple[Codes, Floats]:
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < share).astype(np.intp)
    odds = np.exp(2 * rng.normal(2.0 * labels, 1.0) - 2.0 + np.log(0.25))
    positive = odds / (1 + odds)
    return labels, np.column_stack([1 - positive, positive])


def bins() -> Bins:
    labels, posteriors = draw(1, 2000, 0.2)
    found = Bins.of(posteriors, labels)
    assert found is not None
    return found


class TestBins:
    def test_hold_every_validation_row_and_about_as_many(self) -> None:
        found = bins()
        assert found.counts.shape == (2, 10)
        assert found.counts.sum() == 2000
        for decision in (found.counts[:, :5], found.counts[:, 5:]):
            total = decision.sum(axis=0)
            assert total.max() <= total.min() + 1
        labels, posteriors = draw(1, 2000, 0.2)
        by_class = [found.count(posteriors[labels == k]) for k in range(2)]
        np.testing.assert_array_equal(by_class, found.counts)

    @pytest.mark.parametrize(("rows", "classes"), [(300, 2), (50, 1), (1000, 100)])
    def test_too_few_rows_have_none(self, rows: int, classes: int) -> None:
        rng = np.random.default_rng(0)
        posteriors = rng.dirichlet(np.ones(classes), rows)
        assert Bins.of(posteriors, np.arange(rows) % classes) is None

    def test_of_a_long_batch_some_rows_are_looked_at(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(posterior_fit, "MOST_ROWS", 100)
        assert bins().count(draw(2, 1000, 0.5)[1]).sum() == 100


class TestFit:
    @given(st.floats(0.0, 1.0), st.integers(0, 100))
    @settings(deadline=None, max_examples=20)
    def test_prior_shift_fits_and_a_changed_classifier_does_not(
        self, share: float, seed: int
    ) -> None:
        found = bins()
        pure = found.fit(found.count(draw(seed, 1000, share)[1]), SOURCE, seed)
        assert pure is not None
        assert pure.residual < 0.12
        middling = np.random.default_rng(seed).uniform(0.4, 0.6, 1000)
        changed = found.count(np.column_stack([1 - middling, middling]))
        other = found.fit(changed, SOURCE, seed)
        assert other is not None
        assert other.p_value == pytest.approx(1 / 200)
        assert other.statistic > pure.statistic

    def test_repeats_by_its_seed(self) -> None:
        found = bins()
        counts = found.count(draw(3, 500, 0.4)[1])
        assert found.fit(counts, SOURCE, 5) == found.fit(counts, SOURCE, 5)
        other = found.fit(counts, SOURCE, 6)
        assert other is not None
        assert other.seed == 6

    def test_of_no_rows_there_is_none(self) -> None:
        assert bins().fit(np.zeros(10), SOURCE) is None

    def test_its_statistic_is_about_chi_square(self) -> None:
        statistics = []
        for seed in range(150):
            labels, posteriors = draw(seed, 2000, 0.2)
            found = Bins.of(posteriors, labels)
            assert found is not None
            fit = found.fit(found.count(draw(1000 + seed, 1500, 0.6)[1]), SOURCE, seed, 1)
            assert fit is not None
            statistics.append(fit.statistic)
        assert np.mean(statistics) == pytest.approx(8.0, abs=1.2)


class TestThinned:
    def test_leaves_few_rows_alone(self) -> None:
        counts = np.array([3.0, 5.0, 0.0])
        assert bins().thinned(counts) is counts

    @pytest.mark.parametrize("factor", [1, 10_000])
    def test_draws_as_many_as_are_looked_at(self, factor: int) -> None:
        counts = factor * np.array([600_000.0, 300_000, 100_000, 0])
        found = bins().thinned(counts)
        assert found.sum() == posterior_fit.MOST_ROWS
        expected = counts / counts.sum() * posterior_fit.MOST_ROWS
        assert (np.abs(found - expected) <= 5 * np.sqrt(expected)).all()
        assert found.tolist() == bins().thinned(counts).tolist()
