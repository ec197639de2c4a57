import numpy as np
import pytest

from app.core.prevalence.calibration import Scaling
from app.core.prevalence.estimators.confusion import (
    ConfusionMatrix,
    acc,
    acc_many,
    acc_qp,
    acc_qp_many,
)
from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.uncertainty import bootstrap
from app.core.prevalence.uncertainty.intervals import likelihood_intervals
from benchmarks.coverage import Setting, draw

SETTING = Setting("", (0.4, 0.3, 0.3), (0.5, 0.3, 0.2), 400, 1.5, 0)
COUNTS = ConfusionMatrix(np.array([[80.0, 15, 5], [10, 60, 30], [5, 20, 75]]))


class TestMany:
    def test_one_by_one_is_the_same(self) -> None:
        rng = np.random.default_rng(0)
        M = rng.dirichlet(np.ones(4), (30, 3)).transpose(0, 2, 1)
        v, source = rng.dirichlet(np.ones(4), 30), np.array([0.2, 0.3, 0.5])
        linear = acc_many(M, v, source)
        constrained = acc_qp_many(M, v, source)
        for b in range(30):
            np.testing.assert_allclose(linear[b], acc(M[b], v[b], source).prevalence, atol=1e-9)
            np.testing.assert_allclose(constrained[b], acc_qp(M[b], v[b], source).prevalence)


class TestMaximised:
    def test_weighted_replicates_are_maxima(self) -> None:
        _, rows = draw(np.random.default_rng(1), SETTING, SETTING.target, 300)
        source = np.array(SETTING.source)
        likelihood = Likelihood.of(rows, source)
        top = mle(likelihood)
        weights = np.random.default_rng(2).multinomial(300, np.full(300, 1 / 300), 20)
        found = bootstrap._newton(rows / source, weights.astype(float), top.prevalence)
        for shares, w in zip(found, weights, strict=True):
            exact = mle(Likelihood.of(rows, source, w.astype(float))).prevalence
            np.testing.assert_allclose(shares, exact, atol=1e-5)

    def test_agrees_with_wald_away_from_the_boundary(self) -> None:
        _, rows = draw(np.random.default_rng(3), SETTING, SETTING.target, 2000)
        likelihood = Likelihood.of(rows, np.array(SETTING.source))
        top = mle(likelihood)
        found = bootstrap.resample_maximum(likelihood, top, seed=0, replicates=2000).intervals(0.95)
        wald = likelihood_intervals(likelihood, top)
        np.testing.assert_allclose(found.lower, wald.lower, atol=0.006)
        np.testing.assert_allclose(found.upper, wald.upper, atol=0.006)

    def test_calibrated_on_the_way_or_before_is_the_same(self) -> None:
        _, rows = draw(np.random.default_rng(5), SETTING, SETTING.target, 300)
        source = np.array(SETTING.source)
        calibration = Scaling("bcts", np.full(3, 1.3), np.array([0.4, -0.1, -0.3]), 1e-300)
        inside = Likelihood.of(rows, source, calibration=calibration)
        before = Likelihood.of(calibration.apply(rows), source)
        found = bootstrap.resample_maximum(inside, mle(inside), seed=1, replicates=20).shares
        expected = bootstrap.resample_maximum(before, mle(before), seed=1, replicates=20).shares
        np.testing.assert_allclose(found, expected, atol=1e-7)

    def test_a_class_at_zero_can_come_back(self) -> None:
        rows = np.array([[0.9, 0.1], [0.8, 0.2], [0.45, 0.55]])
        likelihood = Likelihood.of(rows, np.array([0.5, 0.5]))
        top = mle(likelihood)
        assert top.prevalence[1] == 0
        found = bootstrap.resample_maximum(likelihood, top, seed=0).shares
        assert found[:, 1].max() > 0.5

    def test_the_seed_repeats_it(self) -> None:
        _, rows = draw(np.random.default_rng(4), SETTING, SETTING.target, 100)
        likelihood = Likelihood.of(rows, np.array(SETTING.source))
        one, again, other = (
            bootstrap.resample_maximum(likelihood, mle(likelihood), seed).shares
            for seed in (7, 7, 8)
        )
        np.testing.assert_array_equal(one, again)
        assert not np.array_equal(one, other)


class TestCounts:
    def test_none_of_n_is_not_certain(self) -> None:
        found = bootstrap.resample_counts(np.array([100.0, 0.0]), seed=0).intervals(0.95)
        assert 0.015 < found.upper[1] < 0.04

    def test_adjusted_counts_against_the_delta_method(self) -> None:
        counts = np.array([300.0, 400, 300])
        source = np.full(3, 1 / 3)
        found = bootstrap.resample_inversion(
            acc_many, COUNTS, counts, source, seed=0, replicates=4000
        ).shares
        M, v = COUNTS.conditional, counts / counts.sum()
        inverse, p = np.linalg.inv(M), np.linalg.solve(M, v)
        spread = (np.diag(v) - np.outer(v, v)) / 1000
        for k in range(3):
            column = M[:, k]
            spread += p[k] ** 2 * (np.diag(column) - np.outer(column, column)) / 100
        expected = np.sqrt((inverse @ spread @ inverse.T).diagonal())
        np.testing.assert_allclose(found.std(axis=0), expected, rtol=0.1)

    @pytest.mark.parametrize("rows", [50, 50_000])
    def test_means(self, rows: int) -> None:
        posteriors = np.random.default_rng(0).dirichlet(np.ones(3), rows)
        found = bootstrap.resample_mean(posteriors, seed=0).shares
        np.testing.assert_allclose(
            found.std(axis=0), posteriors.std(axis=0) / np.sqrt(rows), rtol=0.15
        )


class TestLinearised:
    def test_spreads_as_resampled_rows_do(self) -> None:
        _, rows = draw(np.random.default_rng(1), SETTING, SETTING.target, 4000)
        likelihood = Likelihood.of(rows, np.array(SETTING.source))
        top = mle(likelihood)
        resampled = bootstrap.resample_maximum(likelihood, top, seed=0, replicates=1000).shares
        found = bootstrap.draw_expansion(likelihood, top, seed=0, replicates=1000).shares
        np.testing.assert_allclose(found.mean(axis=0), top.prevalence, atol=2e-3)
        np.testing.assert_allclose(np.cov(found.T), np.cov(resampled.T), atol=1e-5)

    def test_stays_on_the_simplex_at_its_boundary(self) -> None:
        rows = np.array([[0.7, 0.3, 0.0], [0.6, 0.39, 0.01], [0.2, 0.8, 0.0]] * 30)
        likelihood = Likelihood.of(rows, np.full(3, 1 / 3))
        top = mle(likelihood)
        assert top.prevalence[2] == 0
        found = bootstrap.draw_expansion(likelihood, top, seed=1).shares
        assert (found >= 0).all()
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
