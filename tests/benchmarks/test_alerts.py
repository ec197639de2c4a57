import numpy as np
import pytest
from scipy.special import expit

from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.watching.window import window_test
from benchmarks.alerts.delays import delays
from benchmarks.alerts.looking import looking
from benchmarks.alerts.months import LEVEL, decisions, months
from benchmarks.alerts.rates import Tilted, rate, tail
from benchmarks.alerts.stream import Population, Registered, statistics, threshold
from benchmarks.alerts.three import three


def test_many_windows_at_once_are_the_services_own_test() -> None:
    rng = np.random.default_rng(1)
    population = Population(0.05, 2.0)
    registered = Registered.of(population, rng, 2000, 0.1)
    scores = np.concatenate(
        [population.scores(rng, (20, 100), share) for share in (0.0, 0.05, 0.3)]
    )
    found, model = statistics(registered.excess(scores), registered), registered.model
    for i, positive in enumerate(expit(scores)):
        rows = np.column_stack([1 - positive, positive])
        likelihood = Likelihood.of(rows, model.priors, calibration=model.calibration)
        test = window_test(likelihood, mle(likelihood), registered.sources, LEVEL)
        assert found.composite[i] == pytest.approx(test.statistic, abs=1e-6)
        assert found.point[i] == pytest.approx(test.point_statistic, abs=1e-6)


def test_tilted_windows_tell_the_rate_of_plain_ones() -> None:
    rng = np.random.default_rng(2)
    population = Population(0.2, 2.0)
    registered = Registered.of(population, rng, 1000, 0.1)
    limit = threshold(0.02)
    plain = population.scores(rng, (20_000, 50), 0.2)
    counted = (statistics(registered.excess(plain), registered).point > limit).mean()
    drawn, weights = Tilted.of(population, 50, limit, rng).sample(rng, registered, 8000)
    error = np.sqrt(0.02 / 20_000)
    assert rate((drawn.point > limit).astype(float), weights) == pytest.approx(
        counted, abs=4 * error
    )


@pytest.mark.parametrize("level", [1e-2, 1e-4, 1e-8])
def test_the_chi_square_tail_holds_far_out(level: float) -> None:
    ratio, error = tail(Population(0.2, 2.0), 100, level, 2000, 1)
    assert error < 0.15
    # So far out, windows without the class do not reach the threshold: one side is left.
    assert (0.3 if level < 1e-6 else 0.8) < ratio < 1.6


def test_nine_sources_in_ten_are_within_the_budget() -> None:
    """Eight months each: a source in ten more or less is one of them."""
    for found in (months(Population(0.2, 2.0), 8, 3), decisions(Population(0.2, 2.0), 8, 3)):
        ours, point = found.expected["confidence set"], found.expected["point"]
        assert (ours <= 1).mean() >= 0.75
        assert 0.3 < ours.mean() <= 1.14
        assert point.mean() > ours.mean()
        assert found.alarms["confidence set"].mean() <= 1.14 + 3 * np.sqrt(1.14 / 8)


def test_three_classes_are_within_the_budget() -> None:
    found = three(100, 10_000, 3, 200, LEVEL)
    assert (found[:, 0] < 1).all()
    assert (found[:, 1] > found[:, 0]).all()


def test_delays_at_equal_false_alarms() -> None:
    ours, naive, _, same_level = delays(4.0, 12, 4)
    assert ours.expected.mean() == pytest.approx(naive.expected.mean(), rel=0.05)
    assert ours.expected.mean() <= 1.14
    assert naive.threshold > ours.threshold
    assert np.median(same_level.delays) <= np.median(ours.delays) < 24


def test_looking_after_every_batch() -> None:
    found = looking(Population(0.05, 2.0), 12, 100, 5)
    assert found.always_valid <= 1 / 12
    assert found.repeated > 0.1
