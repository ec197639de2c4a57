import numpy as np
import pytest

from app.core.prevalence.likelihood import Likelihood
from app.core.prevalence.two_classes import maximise, moments

RNG = np.random.default_rng(29)
ROWS = RNG.dirichlet([0.8, 0.5], 3000)
SOURCE = np.array([0.7, 0.3])
WEIGHTS = RNG.integers(0, 3, 3000).astype(np.float64)


def likelihoods() -> list[Likelihood]:
    return [Likelihood.of(ROWS, SOURCE), Likelihood.of(ROWS, SOURCE, WEIGHTS)]


class TestMoments:
    @pytest.mark.parametrize("theta", [0.01, 0.3, 0.7, 0.99])
    def test_slope_curvature_and_gain_are_those_of_the_passes(self, theta: float) -> None:
        for likelihood in likelihoods():
            at, p = moments(likelihood, theta), np.array([1 - theta, theta])
            hessian, m = likelihood.hessian(p)
            assert at.slope(0) == pytest.approx(m[1] - m[0], rel=1e-9, abs=1e-12)
            assert at.gain_at(0) == pytest.approx(likelihood.gain(p), rel=1e-9)
            np.testing.assert_allclose(at.hessian_at(0), hessian, rtol=1e-9)

    @pytest.mark.parametrize("delta", [-0.1, -0.02, 0.003, 0.05])
    def test_elsewhere_within_the_bound(self, delta: float) -> None:
        for likelihood in likelihoods():
            at, there = moments(likelihood, 0.4), moments(likelihood, 0.4 + delta)
            assert abs(at.slope(delta) - there.slope(0)) <= at.error(delta) + 1e-14
            off = abs(at.gain_at(delta) - there.gain_at(0))
            assert off <= abs(delta) * at.error(delta) + 1e-14

    def test_no_bound_outside(self) -> None:
        assert moments(likelihoods()[0], 0.4).error(0.7) == np.inf


class TestMaximise:
    @pytest.mark.parametrize("start", [0.0, 1e-9, 0.5, 1 - 1e-9, 1.0])
    def test_from_anywhere(self, start: float) -> None:
        for likelihood in likelihoods():
            answer = maximise(likelihood, start, 1e-10, 50)
            m = likelihood.multipliers(np.array([1 - answer.theta, answer.theta]))
            assert answer.gap <= 1e-10
            assert m.max() - 1 <= 1e-10 + 1e-13

    def test_the_best_point_where_passes_run_out(self) -> None:
        answer = maximise(likelihoods()[0], 0.0, 1e-12, 2)
        assert answer.gap > 1e-12
        assert answer.gap == abs(answer.moments.S[0])
