import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import chi2

from app.core.arrays import Floats
from app.core.errors import MethodUnavailable
from app.core.prevalence.calibration import Method as Calibrations
from app.core.prevalence.estimators.confusion import ConfusionMatrix
from app.core.prevalence.source import Source, SourceModel, ValidationSet, derive
from app.estimation import (
    EmOptions,
    OutputBatch,
    PosteriorBatch,
    Request,
    adjust_batch,
    compare_priors,
    estimate,
)
from tests.api.sources import scores

CLASSES = ("a", "b")
PLAIN = ("cc", "pcc", "acc", "acc-qp", "pacc-qp", "em", "mle")
"""Methods for any number of classes that need no validation rows at hand."""
EXACT = EmOptions(tolerance=1e-14, max_iterations=100_000)


def exactly(method: str) -> Request:
    """The method to the last digit; only em asks for it."""
    return Request(method, EXACT) if method == "em" else Request(method)


def calibrated(rows: int = 500, seed: int = 0) -> SourceModel:
    labels, posteriors = scores(np.random.default_rng(seed), rows, 0.2)
    return derive(Source(CLASSES, validation=ValidationSet(labels, posteriors)))


def batch(rows: int = 400, share: float = 0.4, seed: int = 1) -> PosteriorBatch:
    return PosteriorBatch(scores(np.random.default_rng(seed), rows, share)[1])


def codes(warnings: object) -> set[str]:
    assert isinstance(warnings, tuple)
    return {warning.code for warning in warnings}


class TestLikelihoodOfACalibratedVersion:
    def test_against_a_one_dimensional_search(self) -> None:
        model, rows = calibrated(), batch()
        result = estimate(model, rows, Request(method="em", em=EXACT))
        g, p0 = model.calibration.apply(rows.posteriors), model.priors
        logs = minimize_scalar(
            lambda p: -np.log(g @ (np.array([1 - p, p]) / p0)).sum(),
            bounds=(0, 1),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert result.prevalence[1] == pytest.approx(logs.x, abs=1e-6)
        assert result.shift is not None
        assert result.shift.statistic == pytest.approx(-2 * logs.fun, abs=1e-6)
        scaled = chi2.sf(-2 * logs.fun / (1 + 400 / 500), 1)
        assert result.shift.p_value == pytest.approx(scaled, abs=1e-9)

    def test_a_loose_tolerance_is_told(self) -> None:
        loose = Request(method="em", em=EmOptions(tolerance=0.5))
        result = estimate(calibrated(), batch(4000), loose)
        assert "stopped-short" in codes(result.warnings)
        exact = estimate(calibrated(), batch(4000), Request(method="em", em=EXACT))
        assert "stopped-short" not in codes(exact.warnings)

    def test_the_shift_of_every_method_is_that_of_the_likelihood(self) -> None:
        model, rows = calibrated(), batch()
        statistics = set()
        for method in PLAIN:
            result = estimate(model, rows, Request(method=method))
            assert result.shift is not None
            statistics.add(result.shift.statistic)
            effect = np.abs(result.prevalence - result.source).sum() / 2
            assert result.shift.effect_size == pytest.approx(effect)
        assert statistics == {compare_priors(model, rows, Request()).shift.statistic}


class TestOutputs:
    model = derive(
        Source(
            CLASSES,
            class_counts=np.array([60.0, 40.0]),
            confusion=ConfusionMatrix(np.array([[50.0, 8, 2], [5, 30, 5]])),
            outputs=("a", "b", "reject"),
        )
    )

    def test_likelihood_against_a_one_dimensional_search(self) -> None:
        counts = np.array([30.0, 50, 20])
        result = estimate(self.model, OutputBatch(counts), Request(method="em", em=EXACT))
        M = np.array([[50 / 60, 5 / 40], [8 / 60, 30 / 40], [2 / 60, 5 / 40]])
        found = minimize_scalar(
            lambda p: -float(counts @ np.log(M @ [1 - p, p])),
            bounds=(0, 1),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert result.prevalence[1] == pytest.approx(found.x, abs=1e-6)
        assert result.shift is not None
        base = -float(counts @ np.log(M @ [0.6, 0.4]))
        assert result.shift.statistic == pytest.approx(2 * (base - found.fun), abs=1e-8)
        assert result.shift.degrees_of_freedom == 1

    def test_degrees_of_freedom_do_not_depend_on_which_outputs_occurred(self) -> None:
        answer = compare_priors(self.model, OutputBatch(np.array([7.0, 0, 0])), Request())
        assert answer.shift.degrees_of_freedom == 1

    def test_posteriors_of_outputs_are_bayes_rule(self) -> None:
        target = np.array([0.5, 0.5])
        rows = adjust_batch(self.model, OutputBatch(np.ones(3)), target, Request()).posteriors
        joint = np.array([[50 / 60, 5 / 40], [8 / 60, 30 / 40], [2 / 60, 5 / 40]]) * target
        np.testing.assert_allclose(rows, joint / joint.sum(axis=1, keepdims=True))

    def test_counting_leaves_out_outputs_that_are_no_class(self) -> None:
        result = estimate(self.model, OutputBatch(np.array([1.0, 3, 6])), Request(method="cc"))
        np.testing.assert_allclose(result.prevalence, [0.25, 0.75])
        with pytest.raises(MethodUnavailable):
            estimate(self.model, OutputBatch(np.array([0.0, 0, 6])), Request(method="cc"))
        nothing = estimate(self.model, OutputBatch(np.array([0.0, 0, 6])), Request())
        assert nothing.counted is None

    def test_a_scaled_test_with_the_validation_set_behind_the_matrix(self) -> None:
        model = calibrated(500)
        answer = compare_priors(model, OutputBatch(np.array([100.0, 150])), Request())
        assert answer.shift.scale == 1.5


class TestClassesOfZeroSourcePrior:
    labels = np.array([0, 1, 2] * 20)
    posteriors = np.tile([[0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.5, 0.5, 0.0]], (20, 1))
    model = derive(
        Source(("a", "b", "c"), validation=ValidationSet(labels, posteriors), calibration="none")
    )

    def test_cannot_gain(self) -> None:
        rows = PosteriorBatch(np.array([[0.2, 0.8, 0.0], [0.0, 0.3, 0.7], [0.0, 0.0, 1.0]]))
        by_mean = estimate(self.model, rows, Request(method="pcc"))
        assert by_mean.prevalence[2] > 0
        assert by_mean.log_offsets is None
        assert by_mean.adjustment is None
        by_likelihood = estimate(self.model, rows, Request(method="em"))
        assert by_likelihood.prevalence[2] == 0
        assert "unsupported-rows" in codes(by_likelihood.warnings)
        with pytest.raises(MethodUnavailable):
            estimate(self.model, rows, Request(method="pcc", posteriors=True))

    def test_rows_of_such_a_class_get_the_target_priors(self) -> None:
        rows = PosteriorBatch(np.array([[0.0, 0.0, 1.0], [0.5, 0.5, 0.0]]))
        target = np.array([0.9, 0.1, 0.0])
        answer = adjust_batch(self.model, rows, target, Request())
        np.testing.assert_allclose(answer.posteriors[0], target)
        assert "impossible-rows" in codes(answer.warnings)


class TestNothingMoved:
    """The validation set itself as a batch: every method must say so, calibrated or not."""

    @pytest.mark.parametrize("calibration", ["bcts", "none"])
    @pytest.mark.parametrize("method", PLAIN)
    def test_weights_are_one_and_the_effect_is_zero(
        self, method: str, calibration: Calibrations
    ) -> None:
        labels, posteriors = scores(np.random.default_rng(4), 400, 0.2)
        posteriors = posteriors**0.5
        posteriors /= posteriors.sum(axis=1, keepdims=True)
        source = Source(
            CLASSES, validation=ValidationSet(labels, posteriors), calibration=calibration
        )
        result = estimate(derive(source), PosteriorBatch(posteriors), exactly(method))
        assert result.shift is not None
        assert result.shift.statistic == pytest.approx(0, abs=1e-6)
        if method == "cc":
            return
        assert result.shift.effect_size == pytest.approx(0, abs=1e-5)
        assert result.log_offsets is not None
        np.testing.assert_allclose(result.log_offsets, 0, atol=1e-4)


class TestInvariances:
    @given(st.integers(0, 1000), st.sampled_from(PLAIN))
    @settings(max_examples=25, deadline=None)
    def test_class_order(self, seed: int, method: str) -> None:
        rng = np.random.default_rng(seed)
        order = rng.permutation(3)
        labels = np.concatenate([np.arange(3), rng.integers(0, 3, 60)])
        noise = rng.normal(0, 1, (63, 3)) + 1.5 * np.eye(3)[labels]
        validation = np.exp(noise) / np.exp(noise).sum(axis=1, keepdims=True)
        rows = rng.dirichlet(np.ones(3), 30)
        names = np.array(["x", "y", "z"])
        position = np.argsort(order)

        def solve(columns: Floats, codes: Floats, classes: Floats, given: Floats) -> Floats:
            source = Source(
                tuple(classes.tolist()), validation=ValidationSet(codes.astype(np.intp), columns)
            )
            return estimate(derive(source), PosteriorBatch(given), exactly(method)).prevalence

        plain = solve(validation, labels.astype(float), names, rows)
        moved = solve(
            validation[:, order], position[labels].astype(float), names[order], rows[:, order]
        )
        np.testing.assert_allclose(moved, plain[order], atol=1e-6)
