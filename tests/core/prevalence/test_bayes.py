import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from app.core.prevalence.estimators import bayes
from app.core.prevalence.estimators.confusion import ConfusionMatrix
from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.likelihood.likelihood import Likelihood
from benchmarks.coverage import Setting, draw

EVEN = np.ones(2)


class TestRows:
    def test_one_hot_rows_give_the_beta_posterior(self) -> None:
        likelihood = Likelihood.of(np.eye(2)[[0] * 30 + [1] * 10], np.array([0.7, 0.3]))
        found = bayes.of_rows(likelihood, mle(likelihood), EVEN, 0.9, 0)
        exact = beta(11, 31)
        assert found.mean[1] == pytest.approx(exact.mean(), rel=1e-4)
        assert found.lower[1] == pytest.approx(exact.ppf(0.05), rel=1e-3)
        assert found.upper[1] == pytest.approx(exact.ppf(0.95), rel=1e-3)

    def test_none_of_n_is_honest(self) -> None:
        likelihood = Likelihood.of(np.tile([1.0, 0.0], (100, 1)), np.array([0.5, 0.5]))
        found = bayes.of_rows(likelihood, mle(likelihood), EVEN, 0.95, 0)
        assert found.mean[1] == pytest.approx(1 / 102, rel=1e-2)
        assert found.upper[1] == pytest.approx(beta(1, 101).ppf(0.975), rel=1e-2)

    def test_overlapping_rows_against_quadrature(self) -> None:
        setting = Setting("", (0.6, 0.4), (0.8, 0.2), 60, 1.0, 1)
        _, rows = draw(np.random.default_rng(0), setting, setting.target, 60)
        source, prior = np.array(setting.source), np.array([2.0, 3.0])
        likelihood = Likelihood.of(rows, source)
        found = bayes.of_rows(likelihood, mle(likelihood), prior, 0.95, 0)

        def density(t: float) -> float:
            logs = np.log(rows / source @ np.array([1 - t, t])).sum()
            return float(np.exp(logs) * t**2 * (1 - t))

        total = quad(density, 0, 1)[0]
        mean = quad(lambda t: t * density(t), 0, 1)[0] / total
        assert found.mean[1] == pytest.approx(mean, rel=1e-3)
        below = quad(density, 0, found.lower[1])[0] / total
        assert below == pytest.approx(0.025, abs=1e-3)

    def test_three_classes_sampled_against_the_dirichlet(self) -> None:
        likelihood = Likelihood.of(np.eye(3)[[0] * 20 + [1] * 10 + [2] * 5], np.full(3, 1 / 3))
        found = bayes.of_rows(likelihood, mle(likelihood), np.ones(3), 0.95, 1)
        np.testing.assert_allclose(found.mean, np.array([21, 11, 6]) / 38, atol=0.01)
        again = bayes.of_rows(likelihood, mle(likelihood), np.ones(3), 0.95, 1)
        np.testing.assert_array_equal(found.mean, again.mean)

    def test_the_grid_and_the_sampler_agree(self) -> None:
        setting = Setting("", (0.6, 0.4), (0.7, 0.3), 200, 1.5, 1)
        _, rows = draw(np.random.default_rng(2), setting, setting.target, 200)
        likelihood = Likelihood.of(rows, np.array(setting.source))
        top = mle(likelihood)
        grid = bayes.of_rows(likelihood, top, EVEN, 0.95, 0)
        sampled = bayes._sample(likelihood, top.prevalence, EVEN, 0.95, 0)
        np.testing.assert_allclose(grid.mean, sampled.mean, atol=0.01)
        np.testing.assert_allclose(grid.upper, sampled.upper, atol=0.02)

    def test_nothing_known_is_the_prior(self) -> None:
        source = np.array([0.5, 0.3, 0.2])
        likelihood = Likelihood.of(np.tile(source, (30, 1)), source)
        found = bayes.of_rows(likelihood, mle(likelihood), np.ones(3), 0.95, 0)
        np.testing.assert_allclose(found.mean, 1 / 3, atol=0.1)

    def test_zero_source_priors_and_one_class(self) -> None:
        likelihood = Likelihood.of(np.array([[0.4, 0.6, 0.0]]), np.array([0.5, 0.5, 0.0]))
        found = bayes.of_rows(likelihood, mle(likelihood), np.ones(3), 0.95, 0)
        assert found.mean[2] == found.upper[2] == 0
        alone = Likelihood.of(np.ones((3, 1)), np.ones(1))
        assert bayes.of_rows(alone, mle(alone), np.ones(1), 0.95, 0).mean[0] == 1


class TestCounts:
    def test_a_sure_confusion_matrix_gives_the_dirichlet(self) -> None:
        confusion = ConfusionMatrix(np.diag([1e9, 1e9]))
        found = bayes.of_counts(confusion, np.array([30.0, 10.0]), EVEN, 0.95, 0)
        np.testing.assert_allclose(found.mean, [31 / 42, 11 / 42], atol=0.01)

    def test_an_unsure_matrix_widens(self) -> None:
        counts = np.array([300.0, 200.0])
        widths = []
        for rows in (20.0, 2000.0):
            confusion = ConfusionMatrix(np.array([[0.8, 0.2], [0.25, 0.75]]) * rows)
            found = bayes.of_counts(confusion, counts, EVEN, 0.95, 0)
            widths.append(float(found.upper[1] - found.lower[1]))
        assert widths[0] > 2 * widths[1]

    def test_coverage_with_truth_drawn_from_the_prior(self) -> None:
        rng = np.random.default_rng(0)
        covered = 0
        for seed in range(60):
            p, M = rng.dirichlet(np.ones(2)), rng.dirichlet([4, 4], 2)
            confusion = ConfusionMatrix(np.array([rng.multinomial(60, row) for row in M]) + 0.0)
            counts = rng.multinomial(100, p @ M).astype(float)
            found = bayes.of_counts(confusion, counts, EVEN, 0.9, seed)
            covered += found.lower[0] <= p[0] <= found.upper[0]
        assert 45 <= covered <= 60
