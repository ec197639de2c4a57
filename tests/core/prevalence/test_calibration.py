from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from app.core.arrays import Codes, Floats
from app.core.prevalence.calibration import (
    FAMILIES,
    METHODS,
    Folds,
    Isotonic,
    Method,
    OneVersusRest,
    Quality,
    Scaling,
    cross_calibrated,
    fit,
    log_scores,
    losses,
    scaling,
)
from app.core.prevalence.calibration.platt import sigmoid
from app.core.prevalence.calibration.scaling import ScalingProblem, minimise
from tests.golden import GOLDEN


def loss(theta: Floats, logs: Floats, labels: Codes) -> float:
    fitted = log_softmax(theta[0] * logs + theta[1:], axis=1)
    return -float(fitted[np.arange(len(labels)), labels].mean())


def sample(
    rng: np.random.Generator, rows: int, classes: int, confidence: float
) -> tuple[Floats, Codes]:
    """Posteriors that are ``confidence`` times too sure of calibrated scores."""
    logits = rng.normal(0, 1.5, (rows, classes))
    labels = np.array([rng.choice(classes, p=row) for row in softmax(logits, axis=1)])
    labels[:classes] = np.arange(classes)
    return softmax(confidence * logits + rng.normal(0, 1, classes), axis=1), labels


class TestBcts:
    def test_golden_s09(self) -> None:
        entry = GOLDEN["S09_bcts"]
        expected = entry["expected"]
        posteriors = softmax(np.array(entry["inputs"]["logits"]), axis=1)
        fit = scaling("bcts", posteriors, np.array(entry["inputs"]["labels"]))
        assert fit.common == pytest.approx(expected["inverse_temperature"], abs=2e-4)
        np.testing.assert_allclose(fit.bias, expected["bias_centred"], rtol=0, atol=2e-5)
        calibrated = fit.apply(posteriors)
        np.testing.assert_allclose(calibrated, expected["calibrated"], rtol=0, atol=2e-5)
        np.testing.assert_allclose(calibrated.mean(axis=0), expected["class_frequency"], atol=1e-9)
        theta = np.concatenate([fit.scale[:1], fit.bias])
        ours = loss(theta, np.log(posteriors), np.array(entry["inputs"]["labels"]))
        assert 10 * ours <= expected["neg_loglik"] + 1e-9

    @given(st.integers(0, 10_000), st.integers(2, 5), st.sampled_from([0.3, 1.0, 4.0, 40.0]))
    @settings(max_examples=25, deadline=None)
    def test_optimum_against_scipy_and_the_mean_property(
        self, seed: int, classes: int, confidence: float
    ) -> None:
        posteriors, labels = sample(np.random.default_rng(seed), 200, classes, confidence)
        fit = scaling("bcts", posteriors, labels)
        assert not fit.regularised
        frequency = np.bincount(labels, minlength=classes) / len(labels)
        np.testing.assert_allclose(fit.apply(posteriors).mean(axis=0), frequency, atol=1e-9)
        logs = np.log(np.maximum(posteriors, fit.floor))
        start = np.concatenate([[1 / confidence], np.zeros(classes)])
        found = minimize(loss, start, args=(logs, labels), method="BFGS")
        ours = loss(np.concatenate([fit.scale[:1], fit.bias]), logs, labels)
        assert ours <= found.fun + 1e-6

    def test_exact_zeros_and_ones(self) -> None:
        rng = np.random.default_rng(3)
        labels = rng.integers(0, 3, 300)
        votes = np.array(
            [rng.multinomial(20, np.where(np.arange(3) == k, 0.8, 0.1)) for k in labels]
        )
        votes[:5] = np.eye(3, dtype=int)[labels[:5]] * 20
        posteriors = votes / 20
        fit = scaling("bcts", posteriors, labels)
        assert fit.floor == 0.025
        calibrated = fit.apply(posteriors)
        assert np.isfinite(calibrated).all()
        assert (calibrated > 0).all()
        np.testing.assert_allclose(calibrated.mean(axis=0), np.bincount(labels) / 300, atol=1e-9)

    @pytest.mark.parametrize("posteriors", ["separable", "one-hot", "constant"])
    def test_undetermined_scale_is_drawn_to_one_and_flagged(self, posteriors: str) -> None:
        labels = np.array([0] * 30 + [1] * 20)
        positive = {
            "separable": np.where(labels == 1, 0.9, 0.1),
            "one-hot": labels.astype(float),
            "constant": np.full(50, 0.3),
        }[posteriors]
        rows = np.column_stack([1 - positive, positive])
        fit = scaling("bcts", rows, labels)
        assert fit.regularised
        assert 0 < fit.scale[0] < 20
        calibrated = fit.apply(rows)
        np.testing.assert_allclose(calibrated.mean(axis=0), [0.6, 0.4], atol=1e-9)

    def test_useless_scores_are_flattened_not_flagged(self) -> None:
        rng = np.random.default_rng(5)
        posteriors = rng.dirichlet(np.ones(3), 400)
        labels = rng.integers(0, 3, 400)
        fit = scaling("bcts", posteriors, labels)
        assert not fit.regularised
        assert abs(fit.scale[0]) < 0.3

    def test_few_steps_on_many_rows(self) -> None:
        rng = np.random.default_rng(0)
        logits = rng.normal(0, 2, (100_000, 4))
        labels = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
        problem = ScalingProblem.of(np.log(softmax(logits, axis=1)), labels, FAMILIES["bcts"])
        fit = minimise(problem)
        assert fit.iterations < 15
        assert fit.scale[0] == pytest.approx(1, abs=0.02)

    def test_one_class(self) -> None:
        fit = scaling("bcts", np.ones((5, 1)), np.zeros(5, dtype=np.intp))
        np.testing.assert_array_equal(fit.apply(np.ones((2, 1))), [[1], [1]])

    def test_a_single_row_per_class(self) -> None:
        fit = scaling("bcts", np.array([[0.6, 0.4], [0.3, 0.7]]), np.array([0, 1]))
        assert fit.regularised
        assert np.isfinite(fit.apply(np.array([[0.0, 1.0]]))).all()


def test_identity_returns_the_rows_themselves() -> None:
    rows = np.array([[0.0, 1.0]])
    assert Scaling.identity(2).apply(rows) is rows


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("floor", [1e-200, 1e-5])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("scale", [-3.0, 0.0, 0.4, 1.7, 600.0])
@pytest.mark.parametrize("apart", [0.0, 0.3])
def test_powers_are_the_calibrated_rows_but_for_bias_and_row_scale(
    scale: float, apart: float, classes: int, floor: float, kind: type[np.floating[Any]]
) -> None:
    rows = np.random.default_rng(3).dirichlet(np.ones(classes), 50).astype(kind)
    rows[0] = np.eye(classes)[0]
    bias = np.array([0.3, -0.1, -0.5, 0.3])[:classes]
    scales = np.full(classes, scale) + apart * np.arange(classes)
    calibration = Scaling("bcts", scales, bias, floor)
    powers = calibration.powers(rows) * np.exp(calibration.bias)
    assert powers.dtype == np.float64
    assert np.isfinite(powers).all()
    normalised = powers / powers.sum(axis=1, keepdims=True)
    expected = calibration.apply(rows.astype(np.float64))
    np.testing.assert_allclose(normalised, expected, rtol=1e-9, atol=1e-300)


def family_loss(method: Method, theta: Floats, logs: Floats, labels: Codes) -> float:
    """The definition of each map, written out."""
    classes = logs.shape[1]
    scales, biases = {
        "temperature": (theta[:1], np.zeros(classes)),
        "bcts": (theta[:1], theta[1:]),
        "no-bias-vector-scaling": (theta, np.zeros(classes)),
        "vector-scaling": (theta[:classes], theta[classes:]),
    }[method]
    fitted = log_softmax(scales * logs + biases, axis=1)
    return -float(fitted[np.arange(len(labels)), labels].mean())


class TestFamilies:
    @given(st.integers(0, 10_000), st.integers(2, 5), st.sampled_from([0.5, 1.0, 3.0]))
    @settings(max_examples=15, deadline=None)
    @pytest.mark.parametrize("method", FAMILIES)
    def test_optimum_against_scipy(
        self, method: Method, seed: int, classes: int, confidence: float
    ) -> None:
        posteriors, labels = sample(np.random.default_rng(seed), 250, classes, confidence)
        found = scaling(method, posteriors, labels)
        logs = np.log(posteriors)
        family = FAMILIES[method]
        theta = found.scale[:1] if family.shared else found.scale
        if family.biased:
            theta = np.concatenate([theta, found.bias])
        start = np.zeros(len(theta))
        peer = minimize(
            lambda t: family_loss(method, t, logs, labels), start, method="BFGS", tol=1e-9
        )
        ours = family_loss(method, theta, logs, labels)
        assert ours <= peer.fun + 1e-9
        assert ours >= peer.fun - 1e-6
        if family.biased:
            frequency = np.bincount(labels, minlength=classes) / len(labels)
            np.testing.assert_allclose(found.apply(posteriors).mean(axis=0), frequency, atol=1e-9)

    @pytest.mark.parametrize("method", FAMILIES)
    @pytest.mark.parametrize("scores", ["separable", "one-hot", "constant"])
    def test_undetermined_scales_are_drawn_to_one(self, method: Method, scores: str) -> None:
        labels = np.array([0] * 30 + [1] * 20)
        positive = {
            "separable": np.where(labels == 1, 0.9, 0.1),
            "one-hot": labels.astype(float),
            "constant": np.full(50, 0.3),
        }[scores]
        found = scaling(method, np.column_stack([1 - positive, positive]), labels)
        calibrated = found.apply(np.column_stack([1 - positive, positive]))
        assert np.isfinite(calibrated).all()
        assert np.abs(found.scale).max() < 20
        # Constant scores do tell a temperature where there are no biases to do it.
        assert found.regularised or (scores == "constant" and not FAMILIES[method].biased)

    def test_a_class_with_one_row(self) -> None:
        rng = np.random.default_rng(0)
        posteriors, labels = sample(rng, 100, 3, 1.0)
        labels[labels == 2] = 0
        labels[7] = 2
        for method in METHODS:
            assert np.isfinite(fit(method, posteriors, labels).apply(posteriors)).all()


class TestPlatt:
    def test_golden_s08(self) -> None:
        entry = GOLDEN["S08_platt"]
        scores = np.array(entry["inputs"]["scores"])
        positive = np.array(entry["inputs"]["labels"]) == 1
        expected = entry["expected"]
        slope, intercept = sigmoid(scores, positive)
        likely = expected["max_likelihood"]
        assert -slope == pytest.approx(likely["alpha"], abs=2e-6)
        assert -intercept == pytest.approx(likely["beta"], abs=2e-6)
        slope, intercept = sigmoid(scores, positive, "smoothed")
        smoothed = expected["platt_smoothed_targets"]
        assert -slope == pytest.approx(smoothed["alpha"], abs=2e-6)
        assert -intercept == pytest.approx(smoothed["beta"], abs=2e-6)

    @pytest.mark.parametrize("method", ["platt", "platt-targets"])
    def test_each_class_against_scipy(self, method: Method) -> None:
        posteriors, labels = sample(np.random.default_rng(4), 300, 3, 2.0)
        found = fit(method, posteriors, labels)
        assert isinstance(found, OneVersusRest)
        odds = np.log(posteriors) - np.log1p(-posteriors)
        for k in range(3):
            n = np.count_nonzero(labels == k)
            high, low = (1.0, 0.0) if method == "platt" else ((n + 1) / (n + 2), 1 / (302 - n))
            target = np.where(labels == k, high, low)

            def loss_of(t: Floats, k: int = k, target: Floats = target) -> float:
                z = t[0] * odds[:, k] + t[1]
                return float((np.logaddexp(0, z) - target * z).mean())

            peer = minimize(loss_of, np.zeros(2), method="BFGS", tol=1e-10)
            ours = loss_of(np.array([found.slopes[k], found.intercepts[k]]))
            assert peer.fun - 1e-6 <= ours <= peer.fun + 1e-10

    def test_two_classes_are_bias_corrected_temperature_scaling(self) -> None:
        posteriors, labels = sample(np.random.default_rng(1), 300, 2, 1.5)
        np.testing.assert_allclose(
            fit("platt", posteriors, labels).apply(posteriors),
            fit("bcts", posteriors, labels).apply(posteriors),
            atol=1e-9,
        )

    def test_zeros_and_ones(self) -> None:
        posteriors = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0]] * 10)
        labels = np.array([0, 1, 2, 0, 1, 1, 2, 0] * 5)
        calibrated = fit("platt", posteriors, labels).apply(posteriors)
        assert np.isfinite(calibrated).all()
        np.testing.assert_allclose(calibrated.sum(axis=1), 1)


class TestIsotonic:
    @given(st.integers(0, 10_000))
    @settings(max_examples=20, deadline=None)
    def test_two_classes_against_scikit_learn(self, seed: int) -> None:
        from sklearn.isotonic import IsotonicRegression

        rng = np.random.default_rng(seed)
        positive = np.round(rng.random(120), 2)
        labels = (rng.random(120) < positive).astype(np.intp)
        labels[:2] = [0, 1]
        rows = np.column_stack([1 - positive, positive])
        peer = IsotonicRegression(y_min=1 / 122, y_max=121 / 122).fit(positive, labels)
        np.testing.assert_allclose(
            fit("isotonic", rows, labels).apply(rows)[:, 1], peer.predict(positive), atol=1e-9
        )

    def test_curves_rise_and_no_row_is_impossible(self) -> None:
        posteriors, labels = sample(np.random.default_rng(0), 500, 4, 2.0)
        found = fit("isotonic", posteriors, labels)
        assert isinstance(found, Isotonic)
        assert all(
            (np.diff(y) >= 0).all() and (np.diff(x) > 0).all()
            for x, y in zip(found.knots, found.values, strict=True)
        )
        assert (found.apply(np.eye(4)) > 0).all()


class TestChoice:
    def test_no_row_calibrates_itself(self) -> None:
        posteriors, labels = sample(np.random.default_rng(2), 200, 3, 1.0)
        folds = Folds.of(labels, 3)
        assert folds is not None
        held = cross_calibrated("isotonic", posteriors, labels, folds)
        for f in range(folds.count):
            others = folds.rows[folds.fold != f]
            these = folds.rows[folds.fold == f]
            expected = fit("isotonic", posteriors[others], labels[others]).apply(posteriors[these])
            np.testing.assert_array_equal(held[folds.fold == f], expected)

    def test_folds_hold_every_class(self) -> None:
        labels = np.array([0] * 50 + [1] * 3 + [2] * 30)
        folds = Folds.of(labels, 3)
        assert folds is not None
        assert folds.count == 3
        for f in range(3):
            assert set(labels[folds.rows[folds.fold == f]]) == {0, 1, 2}
        assert Folds.of(np.array([0, 0, 1]), 2) is None

    def test_large_sets_are_thinned_evenly(self) -> None:
        labels = np.repeat([0, 1], [900_000, 100_000])
        folds = Folds.of(labels, 2)
        assert folds is not None
        assert len(folds.rows) <= 200_000
        assert np.mean(labels[folds.rows]) == pytest.approx(0.1, abs=1e-3)

    def test_the_right_family_has_the_least_loss(self) -> None:
        rng = np.random.default_rng(3)
        logits = rng.normal(0, 2, (20_000, 3))
        labels = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
        bent = softmax(logits * 2 + np.array([1.0, -1, 0]), axis=1)
        folds = Folds.of(labels, 3)
        assert folds is not None
        found = losses(bent, labels, folds)
        assert set(found) == set(METHODS)
        best = min(found.values())
        assert found["bcts"] - best < 2e-4
        for worse in ("none", "temperature", "isotonic"):
            assert found[worse] > found["bcts"]


def test_quality_of_posteriors_that_lean() -> None:
    rng = np.random.default_rng(0)
    positive = rng.random(4000)
    labels = (rng.random(4000) < positive).astype(np.intp)
    good = Quality.of(np.column_stack([1 - positive, positive]), labels)
    assert good.misses is None
    assert good.raw_false_alarm_rate < 0.15
    leaning = Quality.of(np.column_stack([1 - positive**2, positive**2]), labels)
    assert leaning.misses is not None
    assert leaning.raw_false_alarm_rate > 0.9
    assert leaning.log_loss > good.log_loss
    assert leaning.gap[0] == pytest.approx(-leaning.gap[1])


def test_scores_are_floored_logs() -> None:
    np.testing.assert_allclose(log_scores(np.array([[0.0, 1.0]]), 0.5), [[np.log(0.5), 0.0]])
