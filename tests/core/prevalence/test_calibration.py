import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from app.core.prevalence.arrays import Codes, Floats
from app.core.prevalence.calibration import Calibration, _newton, bcts
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
        fit = bcts(posteriors, np.array(entry["inputs"]["labels"]))
        assert fit.scale == pytest.approx(expected["inverse_temperature"], abs=2e-4)
        np.testing.assert_allclose(fit.bias, expected["bias_centred"], rtol=0, atol=2e-5)
        calibrated = fit.apply(posteriors)
        np.testing.assert_allclose(calibrated, expected["calibrated"], rtol=0, atol=2e-5)
        np.testing.assert_allclose(calibrated.mean(axis=0), expected["class_frequency"], atol=1e-9)
        theta = np.concatenate([[fit.scale], fit.bias])
        ours = loss(theta, np.log(posteriors), np.array(entry["inputs"]["labels"]))
        assert 10 * ours <= expected["neg_loglik"] + 1e-9

    @given(st.integers(0, 10_000), st.integers(2, 5), st.sampled_from([0.3, 1.0, 4.0, 40.0]))
    @settings(max_examples=25, deadline=None)
    def test_optimum_against_scipy_and_the_mean_property(
        self, seed: int, classes: int, confidence: float
    ) -> None:
        posteriors, labels = sample(np.random.default_rng(seed), 200, classes, confidence)
        fit = bcts(posteriors, labels)
        assert not fit.regularised
        frequency = np.bincount(labels, minlength=classes) / len(labels)
        np.testing.assert_allclose(fit.apply(posteriors).mean(axis=0), frequency, atol=1e-9)
        logs = np.log(np.maximum(posteriors, fit.floor))
        start = np.concatenate([[1 / confidence], np.zeros(classes)])
        found = minimize(loss, start, args=(logs, labels), method="BFGS")
        ours = loss(np.concatenate([[fit.scale], fit.bias]), logs, labels)
        assert ours <= found.fun + 1e-6

    def test_exact_zeros_and_ones(self) -> None:
        rng = np.random.default_rng(3)
        labels = rng.integers(0, 3, 300)
        votes = np.array(
            [rng.multinomial(20, np.where(np.arange(3) == k, 0.8, 0.1)) for k in labels]
        )
        votes[:5] = np.eye(3, dtype=int)[labels[:5]] * 20
        posteriors = votes / 20
        fit = bcts(posteriors, labels)
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
        fit = bcts(rows, labels)
        assert fit.regularised
        assert 0 < fit.scale < 20
        calibrated = fit.apply(rows)
        np.testing.assert_allclose(calibrated.mean(axis=0), [0.6, 0.4], atol=1e-9)

    def test_useless_scores_are_flattened_not_flagged(self) -> None:
        rng = np.random.default_rng(5)
        posteriors = rng.dirichlet(np.ones(3), 400)
        labels = rng.integers(0, 3, 400)
        fit = bcts(posteriors, labels)
        assert not fit.regularised
        assert abs(fit.scale) < 0.3

    def test_few_steps_on_many_rows(self) -> None:
        rng = np.random.default_rng(0)
        logits = rng.normal(0, 2, (100_000, 4))
        labels = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
        fit = _newton(np.log(softmax(logits, axis=1)), labels, penalty=0.0)
        assert fit.iterations < 15
        assert fit.scale == pytest.approx(1, abs=0.02)

    def test_one_class(self) -> None:
        fit = bcts(np.ones((5, 1)), np.zeros(5, dtype=np.intp))
        np.testing.assert_array_equal(fit.apply(np.ones((2, 1))), [[1], [1]])

    def test_a_single_row_per_class(self) -> None:
        fit = bcts(np.array([[0.6, 0.4], [0.3, 0.7]]), np.array([0, 1]))
        assert fit.regularised
        assert np.isfinite(fit.apply(np.array([[0.0, 1.0]]))).all()


def test_identity_returns_the_rows_themselves() -> None:
    rows = np.array([[0.0, 1.0]])
    assert Calibration.identity(2).apply(rows) is rows


@pytest.mark.parametrize("scale", [-3.0, 0.0, 0.4, 1.7, 600.0])
def test_powers_are_the_calibrated_rows_but_for_bias_and_row_scale(scale: float) -> None:
    rows = np.random.default_rng(3).dirichlet(np.ones(4), 50)
    rows[0] = [1.0, 0.0, 0.0, 0.0]
    calibration = Calibration("bcts", scale, np.array([0.3, -0.1, -0.5, 0.3]), 1e-200)
    powers = calibration.powers(rows) * np.exp(calibration.bias)
    assert np.isfinite(powers).all()
    normalised = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(normalised, calibration.apply(rows), rtol=1e-9, atol=1e-300)
