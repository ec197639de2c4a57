import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from app.core.arrays import Floats
from app.core.prevalence.adjustment.posteriors import adjust
from app.core.prevalence.estimators.em import EmResult, em
from app.core.prevalence.likelihood.likelihood import Likelihood
from tests.golden import GOLDEN
from tests.strategies import posterior_rows, simplex


def solve(posteriors: Floats, source: Floats, tolerance: float = 1e-13) -> EmResult:
    return em(Likelihood.of(posteriors, source), tolerance, 200_000)


class TestGolden:
    @pytest.mark.parametrize(
        "name", ["L01_em_C2_N2_exact", "L02_em_C2_N2_boundary", "L04_em_C3_N6_interior"]
    )
    def test_maximum(self, name: str) -> None:
        entry = GOLDEN[name]
        expected = entry["expected"]
        posteriors = np.array(entry["inputs"]["posterior"])
        source = np.array(entry["inputs"]["prior_train"])
        result = solve(posteriors, source)
        tolerance = entry["tolerance"]
        assert result.status == "converged"
        assert result.optimality_gap < 1e-10
        np.testing.assert_allclose(result.prevalence, expected["prior_hat"], rtol=0, atol=tolerance)
        gain = result.gain * len(posteriors)
        assert gain == pytest.approx(expected["loglik_gain"], abs=tolerance)
        adjusted, _ = adjust(posteriors, source, result.prevalence)
        np.testing.assert_allclose(adjusted, expected["posterior_adjusted"], rtol=0, atol=tolerance)
        likelihood = Likelihood.of(posteriors, source)
        multipliers = likelihood.multipliers(result.prevalence)
        np.testing.assert_allclose(multipliers, expected["kkt_multipliers"], rtol=0, atol=1e-6)

    @pytest.mark.parametrize(
        "name", ["L01_em_C2_N2_exact", "L02_em_C2_N2_boundary", "L04_em_C3_N6_interior"]
    )
    def test_iterations(self, name: str) -> None:
        entry = GOLDEN[name]
        likelihood = Likelihood.of(
            np.array(entry["inputs"]["posterior"]), np.array(entry["inputs"]["prior_train"])
        )
        trace = em(likelihood, max_iterations=2, tolerance=1e-15, trace=True).trace
        assert trace is not None
        np.testing.assert_allclose(trace[0], entry["inputs"]["prior_train"])
        np.testing.assert_allclose(
            trace[1], entry["expected"]["prior_after_1_iteration"], rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(
            trace[2], entry["expected"]["prior_after_2_iterations"], rtol=0, atol=1e-12
        )

    def test_l09_a_small_step_is_not_the_maximum(self) -> None:
        entry = GOLDEN["L09_em_sublinear_boundary"]
        expected = entry["expected"]
        likelihood = Likelihood.of(
            np.array(entry["inputs"]["posterior"]), np.array(entry["inputs"]["prior_train"])
        )
        capped = em(likelihood, trace=True)
        assert capped.status == "max-iterations"
        assert capped.iterations == 1000
        assert capped.trace is not None
        for step in (10, 100, 1000):
            np.testing.assert_allclose(
                capped.trace[step], expected[f"prior_after_{step}"], rtol=0, atol=1e-9
            )
        stopped = em(likelihood, max_iterations=10_000)
        assert stopped.status == "converged"
        assert stopped.iterations == expected["first_iteration_with_AE_below_1e_6"]
        np.testing.assert_allclose(
            stopped.prevalence, expected["prior_at_that_iteration"], rtol=0, atol=1e-9
        )
        exact = likelihood.gain(np.array([1.0, 0.0]))
        assert 4 * exact == pytest.approx(expected["lr_statistic"], abs=1e-12)
        assert 0 < exact - stopped.gain <= stopped.optimality_gap

    def test_l10_mean_adjusted_posterior_is_the_estimate(self) -> None:
        entry = GOLDEN["L04_em_C3_N6_interior"]["inputs"]
        posteriors, source = np.array(entry["posterior"]), np.array(entry["prior_train"])
        result = solve(posteriors, source)
        adjusted, _ = adjust(posteriors, source, result.prevalence)
        np.testing.assert_allclose(adjusted.mean(axis=0), result.prevalence, rtol=0, atol=1e-9)

    def test_s12_all_priors_before_all_posteriors(self) -> None:
        entry = GOLDEN["S12_sld_update_order"]
        posteriors = np.array(entry["inputs"]["posterior"])
        source = np.array(entry["inputs"]["prior_train"])
        expected = entry["expected"]
        first, second = (
            em(Likelihood.of(posteriors, source), 1e-300, steps).prevalence for steps in (1, 2)
        )
        np.testing.assert_allclose(first, expected["prior_after_1"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(second, expected["prior_after_2"], rtol=0, atol=1e-12)
        adjusted, _ = adjust(posteriors, source, first)
        np.testing.assert_allclose(adjusted, expected["posterior_after_1"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(adjusted.sum(axis=1), 1, atol=1e-12)

    def test_l08_uninformative_rows_keep_the_source_priors(self) -> None:
        source = np.array(GOLDEN["L08_lr_uninformative"]["inputs"]["prior_train"])
        result = solve(np.tile(source, (20, 1)), source)
        np.testing.assert_allclose(result.prevalence, source, rtol=0, atol=1e-12)
        assert result.gain == pytest.approx(0, abs=1e-12)

    def test_published_five_rows(self) -> None:
        positive = np.array([0.1, 0.2, 0.7, 0.8, 0.95])
        result = solve(np.column_stack([1 - positive, positive]), np.array([0.5, 0.5]))
        assert result.prevalence[1] == pytest.approx(0.60725058, abs=1e-8)
        assert 2 * 5 * result.gain == pytest.approx(0.10773709, abs=1e-8)


class TestEdges:
    def test_one_class(self) -> None:
        result = solve(np.ones((3, 1)), np.ones(1))
        np.testing.assert_array_equal(result.prevalence, [1.0])
        assert result.gain == 0

    def test_one_row(self) -> None:
        result = solve(np.array([[0.2, 0.8]]), np.array([0.5, 0.5]))
        np.testing.assert_allclose(result.prevalence, [0, 1], atol=1e-9)

    def test_one_hot_rows_are_counted(self) -> None:
        result = solve(np.eye(3)[[0, 0, 1, 2, 2, 2, 2, 2]], np.array([0.2, 0.3, 0.5]))
        np.testing.assert_allclose(result.prevalence, [2 / 8, 1 / 8, 5 / 8], atol=1e-12)

    def test_zero_source_prior_stays_zero_and_its_rows_are_left_out(self) -> None:
        posteriors = np.array([[0.6, 0.4, 0.0], [0.3, 0.5, 0.2], [0.0, 0.0, 1.0]])
        likelihood = Likelihood.of(posteriors, np.array([0.5, 0.5, 0.0]))
        assert likelihood.unsupported == 1
        assert likelihood.size == 2
        result = em(likelihood, 1e-13, 100_000)
        assert result.prevalence[2] == 0
        two = solve(np.array([[0.6, 0.4], [0.375, 0.625]]), np.array([0.5, 0.5]))
        np.testing.assert_allclose(result.prevalence[:2], two.prevalence, atol=1e-9)

    def test_no_informative_row_at_all(self) -> None:
        source = np.array([0.4, 0.6, 0.0])
        result = em(Likelihood.of(np.array([[0.0, 0.0, 1.0]]), source), trace=True)
        assert result.status == "no-information"
        np.testing.assert_array_equal(result.prevalence, source)
        assert result.trace is not None

    def test_the_smallest_numbers(self) -> None:
        tiny = np.nextafter(0, 1)
        result = solve(np.array([[1.0, tiny], [tiny, 1.0]]), np.array([1 - 1e-12, 1e-12]))
        assert np.isfinite(result.prevalence).all()
        np.testing.assert_allclose(result.prevalence, [0.5, 0.5], atol=1e-6)

    def test_counts_go_through_the_confusion_matrix(self) -> None:
        conditional = np.array([[0.9, 0.2], [0.1, 0.8]])
        result = em(
            Likelihood.of_outputs(conditional, np.array([0.5, 0.5]), np.array([480.0, 520.0])),
            1e-14,
            100_000,
        )
        np.testing.assert_allclose(conditional @ result.prevalence, [0.48, 0.52], atol=1e-9)


class TestIndependentRoute:
    @given(st.data())
    @settings(max_examples=60, deadline=None)
    def test_against_slsqp(self, data: st.DataObject) -> None:
        classes = data.draw(st.integers(2, 4))
        posteriors = data.draw(posterior_rows(classes))
        source = data.draw(simplex(classes, smallest=0.05))
        likelihood = Likelihood.of(posteriors, source)
        result = em(likelihood, 1e-9, 5000)

        def loss(p: Floats) -> float:
            return -float(np.log(np.maximum(posteriors / source @ p, 1e-300)).mean())

        found = minimize(
            loss,
            source,
            method="SLSQP",
            bounds=[(0, 1)] * classes,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        best = -found.fun + loss(source) if found.success else -np.inf
        assert result.gain <= best + result.optimality_gap + 1e-6 or not found.success
        assert best - result.gain <= result.optimality_gap + 1e-9


class TestInvariances:
    @given(st.data())
    @settings(deadline=None)
    def test_order_and_duplication(self, data: st.DataObject) -> None:
        classes = data.draw(st.integers(2, 4))
        posteriors = data.draw(posterior_rows(classes))
        source = data.draw(simplex(classes, smallest=0.05))
        rows = np.array(data.draw(st.permutations(range(len(posteriors)))))
        columns = np.array(data.draw(st.permutations(range(classes))))
        plain = em(Likelihood.of(posteriors, source), 1e-300, 50)
        rearranged = em(Likelihood.of(posteriors[rows][:, columns], source[columns]), 1e-300, 50)
        np.testing.assert_allclose(rearranged.prevalence, plain.prevalence[columns], atol=1e-9)
        twice = em(Likelihood.of(np.repeat(posteriors, 2, axis=0), source), 1e-300, 50)
        np.testing.assert_allclose(twice.prevalence, plain.prevalence, atol=1e-9)
        weighted = em(Likelihood.of(posteriors, source, np.full(len(posteriors), 2.0)), 1e-300, 50)
        np.testing.assert_allclose(weighted.prevalence, twice.prevalence, atol=1e-9)
        assert weighted.gain == pytest.approx(twice.gain, abs=1e-9)
