"""Calibrations of separable validation sets of very sure posteriors: extreme, and no trouble."""

import numpy as np
import pytest

from app.core.arrays import Codes, Floats
from app.core.prevalence.calibration.maps import Scaling
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.source import Source, ValidationSet, derive
from app.estimation import IntervalOptions, PosteriorBatch, Request, estimate

C = 4


def certain(rng: np.random.Generator, classes: Codes, tiny: float, right: float) -> Floats:
    """Rows with all but ``tiny`` on one class, which is the right one this often."""
    hit = np.where(rng.random(len(classes)) < right, classes, rng.integers(0, C, len(classes)))
    rows = np.full((len(classes), C), tiny)
    rows[np.arange(len(classes)), hit] = 1.0
    rows /= rows.sum(axis=1, keepdims=True)
    return rows


@pytest.mark.parametrize("method", ["vector-scaling", "bcts", "temperature"])
@pytest.mark.parametrize("seed", range(30))
def test_estimates_have_no_trouble_with_them(method: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(C), rng.integers(0, C, rng.integers(1, 20))])
    tiny = 10.0 ** -int(rng.integers(5, 305))
    validation = ValidationSet(labels, certain(rng, labels, tiny, rng.choice([0.7, 1.0])))
    model = derive(Source(tuple("abcd"), validation=validation, calibration=method))  # type: ignore[arg-type]
    batch = certain(rng, rng.integers(0, C, 6), tiny, 1.0)
    found = estimate(model, PosteriorBatch(batch), Request(interval=IntervalOptions()))
    assert found.prevalence.sum() == pytest.approx(1.0)
    assert found.interval is not None
    assert (found.interval.lower <= found.prevalence).all()
    assert (found.prevalence <= found.interval.upper).all()


def test_a_large_bias_is_the_same_inside_the_rows_as_outside() -> None:
    rng = np.random.default_rng(1)
    rows = rng.dirichlet(np.ones(3), 50)
    source = np.array([0.5, 0.3, 0.2])
    p = np.array([0.2, 0.5, 0.3])
    gentle = Scaling("bcts", np.full(3, 1.2), np.array([60.0, -40.0, -20.0]))
    steep = Scaling("bcts", np.full(3, 1.2), np.array([160.0, -40.0, -120.0]))
    for calibration in (gentle, steep):
        found = Likelihood.of(rows, source, calibration=calibration)
        plain = Likelihood.of(calibration.apply(rows), source)
        assert found.gain(p) == pytest.approx(plain.gain(p), rel=1e-12)
        np.testing.assert_allclose(found.hessian(p)[0], plain.hessian(p)[0], rtol=1e-10)
