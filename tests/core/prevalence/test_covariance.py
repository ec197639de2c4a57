"""The source's effect against finite differences, its covariance against simulation."""

import numpy as np
import pytest

from app.core.arrays import Floats
from app.core.prevalence.calibration import FAMILIES, Method, Scaling, scaling
from app.core.prevalence.estimators.confusion import ConfusionMatrix
from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.uncertainty.covariance import OutputError, SourceError, inverse_hessian
from app.core.prevalence.uncertainty.nuisance import nuisance_covariance
from benchmarks.coverage import Setting, draw

SETTING = Setting("", (0.5, 0.3, 0.2), (0.2, 0.3, 0.5), 400, 1.5, 0, overconfidence=2.0)


TWO = Setting("", (0.6, 0.4), (0.3, 0.7), 400, 1.5, 0, overconfidence=2.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("setting", [SETTING, TWO])
@pytest.mark.parametrize("method", ["bcts", "vector-scaling"])
def test_the_effect_of_calibration_and_priors(
    method: Method, setting: Setting, weighted: bool
) -> None:
    rng = np.random.default_rng(0)
    labels, rows = draw(rng, setting, setting.source, 500)
    _, batch = draw(rng, setting, setting.target, 400)
    weights = rng.uniform(0.5, 2.0, 400) if weighted else None
    calibration = scaling(method, rows, labels)
    priors, classes = np.bincount(labels) / 500, len(setting.source)

    def solve(scale: Floats, shift: Floats) -> Floats:
        moved = Scaling(method, calibration.scale + scale, calibration.bias + shift, 1e-300)
        return mle(Likelihood.of(batch, priors, weights, moved), 1e-14).prevalence

    likelihood = Likelihood.of(batch, priors, weights, calibration)
    top = mle(likelihood).prevalence
    assert (top > 0).all()
    hessian = likelihood.hessian(top)[0]
    scales = [np.ones(classes)] if method == "bcts" else list(np.eye(classes))
    error = SourceError(np.eye(len(scales) + classes), calibration)
    effect = inverse_hessian(hessian, top > 0) @ error.effect(likelihood, top, hessian)
    h, zero = 1e-5, np.zeros(classes)
    moves = [(h * s, zero) for s in scales] + [(zero, h * e) for e in np.eye(classes)]
    for column, (scale, shift) in enumerate(moves):
        numeric = (solve(scale, shift) - solve(-scale, -shift)) / (2 * h)
        np.testing.assert_allclose(effect[:, column], numeric, atol=1e-5)


@pytest.mark.parametrize("method", FAMILIES)
def test_the_covariance_of_calibration_and_priors(method: Method) -> None:
    fits, predicted = [], []
    rng = np.random.default_rng(1)
    family = FAMILIES[method]
    scales = 1 if family.shared else 3
    centre = np.eye(scales + 3)
    centre[scales:, scales:] -= 1 / 3
    for _ in range(800):
        labels, rows = draw(rng, SETTING, SETTING.source, 2000)
        calibration = scaling(method, rows, labels)
        priors = calibration.apply(rows).mean(axis=0)
        beta = calibration.bias - np.log(priors)
        fits.append(np.concatenate([calibration.scale[:scales], beta - beta.mean()]))
        covariance = nuisance_covariance(rows, labels, calibration, priors)
        predicted.append(centre @ covariance @ centre.T)
    simulated = np.cov(np.array(fits).T)
    scale = np.sqrt(np.outer(simulated.diagonal(), simulated.diagonal()))
    np.testing.assert_allclose(np.mean(predicted, axis=0) / scale, simulated / scale, atol=0.2)


def test_the_covariance_of_mean_posteriors() -> None:
    rng = np.random.default_rng(2)
    labels, rows = draw(rng, SETTING, SETTING.source, 5000)
    priors = rows.mean(axis=0)
    found = nuisance_covariance(rows, labels, Scaling.identity(3), priors)
    expected = np.cov(rows.T, bias=True) / 5000 / np.outer(priors, priors)
    np.testing.assert_allclose(found[1:, 1:], expected, rtol=1e-9)
    np.testing.assert_array_equal(found[0], 0)


def test_the_effect_of_the_confusion_matrix_against_simulation() -> None:
    counts = np.array([[400.0, 60, 40], [50, 300, 50], [30, 20, 150]])
    batch = np.array([500.0, 300, 400])
    confusion = ConfusionMatrix(counts)
    source = np.full(3, 1 / 3)
    likelihood = Likelihood.of_outputs(confusion.conditional, source, batch)
    top = mle(likelihood).prevalence
    inverse = inverse_hessian(likelihood.hessian(top)[0], top > 0)
    hessian = likelihood.hessian(top)[0]
    found = inverse @ OutputError(confusion, batch).of_multipliers(likelihood, top, hessian)
    found = found @ inverse
    rng = np.random.default_rng(3)
    drawn = []
    for _ in range(2000):
        rows = [rng.multinomial(int(row.sum()), row / row.sum()) for row in counts]
        M = ConfusionMatrix(np.array(rows, float)).conditional
        drawn.append(mle(Likelihood.of_outputs(M, source, batch)).prevalence)
    simulated = np.cov(np.array(drawn).T)
    scale = np.sqrt(np.outer(simulated.diagonal(), simulated.diagonal()))
    np.testing.assert_allclose(found / scale, simulated / scale, atol=0.12)


@pytest.mark.parametrize("trace", [0.0, 5e-324, 1e-308, 1e-200, 1e-160, 1e-100])
def test_a_class_that_hardly_a_row_resembles_has_no_bounds_but_numbers(trace: float) -> None:
    rows = np.tile([0.6, 0.4 - trace, trace], (5, 1))
    rows[0, :2] = rows[0, 1::-1]
    likelihood = Likelihood.of(rows, np.full(3, 1 / 3))
    hessian, _ = likelihood.hessian(np.array([0.5, 0.3, 0.2]))
    inverse = inverse_hessian(hessian, np.ones(3, bool))
    assert np.isfinite(inverse).all()
    np.testing.assert_allclose(inverse, inverse.T, rtol=1e-6)
