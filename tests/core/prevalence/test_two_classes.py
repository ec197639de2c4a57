import numpy as np
import pytest

from app.core.prevalence.estimators.two_classes import maximise
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.likelihood.moments import moments

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

    @pytest.mark.parametrize("theta", [1e-9, 0.1, 0.9, 1.0])
    def test_no_curvature_below_zero(self, theta: float) -> None:
        """A class that no row resembles has none, whatever rounding says."""
        for first in (0.0, 1e-17, 1e-9):
            likelihood = Likelihood.of(np.tile([first, 1 - first], (7, 1)), SOURCE)
            assert (moments(likelihood, theta).hessian_at(0) >= 0).all()

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
            answer = maximise(likelihood, moments(likelihood, start), 1e-10, 50)
            m = likelihood.multipliers(np.array([1 - answer.theta, answer.theta]))
            assert answer.gap <= 1e-10
            assert m.max() - 1 <= 1e-10 + 1e-13

    def test_one_pass_next_to_the_end(self) -> None:
        w = np.expm1(2.5 * np.random.default_rng(7).normal(size=50_000) - 3.125)
        weights = np.ones(len(w))
        heaviest = int(w.argmax())
        # With this weight the slope at zero is what leads to a share of about 3e-5.
        weights[heaviest] += (8e-5 * (w @ w) - w.sum()) / w[heaviest]
        rows = np.stack([np.ones(len(w)), 1.0 + w], axis=1)
        likelihood = Likelihood.of(rows, np.array([0.5, 0.5]), weights)
        at = moments(likelihood, 0.0)
        assert at.error(at.zero()) > 1e-9
        answer = maximise(likelihood, at, 1e-9, 50)
        exact = maximise(likelihood, moments(likelihood, answer.theta), 1e-14, 50)
        m = likelihood.multipliers(np.array([1 - answer.theta, answer.theta]))
        assert (answer.passes, exact.passes) == (1, 1)
        assert answer.theta == pytest.approx(exact.theta, rel=2e-3)
        assert answer.theta > exact.theta
        assert m.max() - 1 <= answer.gap <= 1e-9

    def test_the_best_point_where_passes_run_out(self) -> None:
        likelihood = likelihoods()[0]
        answer = maximise(likelihood, moments(likelihood, 0.0), 1e-12, 2)
        assert answer.gap > 1e-12
        assert answer.gap == abs(answer.moments.S[0])
