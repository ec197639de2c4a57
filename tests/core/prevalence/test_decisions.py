"""Costs, CDE, the stopped EM and adjusted intercepts."""

import numpy as np
import pytest
from scipy.special import softmax

from app.core.prevalence.adjustment.costs import least_cost, score_threshold
from app.core.prevalence.adjustment.intercepts import adjusted_intercepts
from app.core.prevalence.adjustment.posteriors import adjust, log_weights
from app.core.prevalence.calibration import Scaling, scaling
from app.core.prevalence.estimators.cde import cde_iterate, cost_ratio
from app.core.prevalence.estimators.em_stop import stop, weighted_precision
from tests.golden import GOLDEN


class TestCosts:
    def test_against_brute_force(self) -> None:
        rng = np.random.default_rng(0)
        rows, costs = rng.dirichlet(np.ones(4), 50), rng.random((4, 4))
        decided = least_cost(rows, costs)
        for row, code in zip(rows, decided, strict=True):
            expected = [sum(row[k] * costs[k, d] for k in range(4)) for d in range(4)]
            assert expected[code] == min(expected)

    def test_equal_costs_are_the_largest_posterior_the_first_on_ties(self) -> None:
        rows = np.array([[0.2, 0.8], [0.5, 0.5]])
        np.testing.assert_array_equal(least_cost(rows, 1 - np.eye(2)), [1, 0])

    @pytest.mark.parametrize("scale", [0.3, 1.0, 2.5])
    def test_the_threshold_decides_like_the_costs(self, scale: float) -> None:
        rng = np.random.default_rng(1)
        positive = rng.random(400)
        raw = np.column_stack([1 - positive, positive])
        costs, offsets = np.array([[0.0, 1.0], [7.0, 0.5]]), np.array([0.3, -0.9])
        adjusted = softmax(scale * np.log(raw) + offsets, axis=1)
        calibration = Scaling("bcts", np.full(2, scale), np.zeros(2), 1e-300)
        threshold = score_threshold(costs, calibration, offsets)
        assert threshold is not None
        np.testing.assert_array_equal(positive > threshold, least_cost(adjusted, costs) == 1)

    def test_what_is_always_or_never_decided(self) -> None:
        offsets, none = np.zeros(2), Scaling.identity(2)
        assert score_threshold(np.array([[0.0, 1], [0, 0]]), none, offsets) == 1
        assert score_threshold(np.array([[1.0, 0], [1, 0]]), none, offsets) == 0
        assert score_threshold(1 - np.eye(2), none, np.array([0.0, -np.inf])) == 1
        assert score_threshold(1 - np.eye(2), none, np.array([-np.inf, 0.0])) == 0
        reversed_ = Scaling("bcts", -np.ones(2), np.zeros(2), 1e-300)
        assert score_threshold(1 - np.eye(2), reversed_, offsets) is None

    @pytest.mark.parametrize("scale", [5e-324, 1e-300, 1.0, 1e150, 1.7e308])
    def test_any_finite_costs(self, scale: float) -> None:
        """Sums and ratios of costs stay numbers, and their unit does not matter."""
        rng = np.random.default_rng(2)
        rows, none = rng.dirichlet(np.ones(2), 20), Scaling.identity(2)
        costs = np.array([[-1.0, 1.0], [1.0, -1.0]]) * scale
        np.testing.assert_array_equal(least_cost(rows, costs), rows.argmax(axis=1))
        assert score_threshold(costs, none, np.zeros(2)) == pytest.approx(0.5)

    @pytest.mark.parametrize(("false_alarm", "miss"), [(1e-308, 1e308), (1e308, 1e-308)])
    def test_costs_beyond_comparison(self, false_alarm: float, miss: float) -> None:
        costs = np.array([[0.0, false_alarm], [miss, 0.0]])
        threshold = score_threshold(costs, Scaling.identity(2), np.zeros(2))
        assert threshold == pytest.approx(float(false_alarm > miss), abs=1e-12)


class TestCde:
    def test_golden_t13_cost_ratio(self) -> None:
        entry = GOLDEN["T13_cde_cost_ratio"]
        ratio = cost_ratio(0.9, 0.2)
        assert ratio == pytest.approx(entry["expected"]["cost_FP_over_cost_FN"], abs=1e-12)
        threshold = entry["expected"]["positive_if_posterior_above"]
        assert ratio / (1 + ratio) == pytest.approx(threshold, abs=1e-12)
        adjusted, _ = adjust(
            np.array([[1 - threshold, threshold]]), np.array([0.1, 0.9]), np.array([0.8, 0.2])
        )
        np.testing.assert_allclose(adjusted, [[0.5, 0.5]])

    def test_golden_t14_iterations(self) -> None:
        entry = GOLDEN["T14_cde_iterate"]
        found = cde_iterate(
            np.array(entry["inputs"]["posterior_pos_on_test"]), entry["inputs"]["train_prevalence"]
        )
        expected = [step["prevalence"] for step in entry["expected"]["iterations"]]
        np.testing.assert_allclose(found.trace[:4], expected, atol=1e-12)
        assert found.status == "converged"
        assert found.prevalence == entry["expected"]["fixed_point_prevalence"]

    def test_none_and_all_are_clamped(self) -> None:
        assert cde_iterate(np.full(10, 0.01), 0.5).prevalence == 0.05
        assert cde_iterate(np.full(10, 0.99), 0.5).prevalence == 0.95
        assert cde_iterate(np.array([0.3]), 0.5).prevalence == 0.5

    def test_it_always_ends(self) -> None:
        rng = np.random.default_rng(2)
        for seed in range(200):
            found = cde_iterate(rng.beta(0.7, 0.7, 30), 0.1 + 0.8 * (seed / 200))
            assert found.status in ("converged", "cycle")
            assert 0 < found.prevalence < 1


class TestStop:
    def test_golden_t15_weighted_precision(self) -> None:
        entry = GOLDEN["T15_weighted_precision"]
        given = entry["inputs"]
        found = stop(
            np.array(given["prior_new_candidates"]),
            np.array(given["prior_train"]),
            np.array(given["posterior_train"]),
            np.array(given["labels"]),
        )
        np.testing.assert_allclose(
            found.precision, entry["expected"]["P_W_never_predicted_counts_0"], atol=1e-12
        )
        assert found.step == 2

    def test_perfect_decisions_stop_at_once(self) -> None:
        labels = np.array([0, 1, 1])
        assert weighted_precision(labels, labels, 2) == 1
        path = np.array([[0.5, 0.5], [0.4, 0.6]])
        assert stop(path, path[0], np.eye(2)[labels], labels).step == 0


class TestIntercepts:
    def test_golden_t04_reference_coding(self) -> None:
        entry = GOLDEN["T04_binary_intercept_shift"]
        counts = np.array([1007.0, 99.0])
        offsets = log_weights(counts / counts.sum(), np.array([0.5035, 0.4965]))
        found = adjusted_intercepts(np.array([0.0, 0.2]), 1.0, offsets, reference=0)
        assert found.intercepts[0] == 0
        shift = found.intercepts[1] - 0.2
        assert shift == pytest.approx(entry["expected"]["intercept_shift_of_w1"], abs=1e-12)

    @pytest.mark.parametrize("reference", [None, 2])
    @pytest.mark.parametrize("calibrated", [False, True])
    def test_equals_adjusting_the_posteriors(self, calibrated: bool, reference: int | None) -> None:
        rng = np.random.default_rng(3)
        weights, intercepts = rng.normal(size=(2, 3)), np.array([0.4, -0.3, 0.0])
        x = rng.normal(size=(200, 2))
        raw = softmax(x @ weights + intercepts, axis=1)
        labels = np.concatenate([np.arange(3), rng.integers(0, 3, 197)])
        source, target = np.bincount(labels) / 200, np.array([0.1, 0.3, 0.6])
        scale, bias, rows = 1.0, np.zeros(3), raw
        if calibrated:
            fit = scaling("bcts", raw, labels)
            assert fit.common is not None
            scale, bias, rows = fit.common, fit.bias, fit.apply(raw)
        expected, _ = adjust(rows, source, target)
        offsets = bias + log_weights(source, target)
        model = adjusted_intercepts(intercepts, scale, offsets, reference)
        found = softmax(model.scale * (x @ weights) + model.intercepts, axis=1)
        np.testing.assert_allclose(found, expected, atol=1e-12)
