import numpy as np
import pytest
from scipy.special import expit

from app.core.arrays import Floats
from app.core.prevalence.calibration import Scaling
from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.estimators.sketch import BINS, LogOddsSketch
from app.core.prevalence.likelihood.likelihood import Likelihood

RNG = np.random.default_rng(23)


def posteriors(rows: int, distance: float, share: float, source: float) -> Floats:
    """Exact posteriors under a source share of the second of two unit normals."""
    x = RNG.normal(size=rows) + distance * (RNG.random(rows) < share)
    odds = source / (1 - source) * np.exp(distance * x - distance**2 / 2)
    return np.column_stack([1 / (1 + odds), odds / (1 + odds)])


@pytest.mark.parametrize("distance", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("share", [0.002, 0.1, 0.6])
@pytest.mark.parametrize("source_share", [0.01, 0.5])
def test_the_estimate_of_the_rows_to_a_millionth(
    distance: float, share: float, source_share: float
) -> None:
    rows = posteriors(20_000, distance, share, source_share)
    source = np.array([1 - source_share, source_share])
    sketch = LogOddsSketch.of(rows)
    exact, sketched = mle(Likelihood.of(rows, source)), sketch.estimate(source)
    assert sketched.prevalence[1] == pytest.approx(exact.prevalence[1], abs=1e-6)
    assert sketched.gain == pytest.approx(exact.gain, abs=1e-7)
    assert abs(sketched.prevalence[1] - exact.prevalence[1]) <= sketch.error_bound(sketched) + 1e-9


@pytest.mark.parametrize("spread", [1e-6, 1e-3, 1.0])
def test_the_bound_holds_for_rows_at_the_worst_places_of_a_bin(spread: float) -> None:
    skewed = np.where(RNG.random(5000) < 0.2, 0.999, 0.001) / 64
    z = skewed + np.round(RNG.normal(size=5000) * spread * 64) / 64
    rows, source = (
        np.column_stack([1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))]),
        np.array([0.5, 0.5]),
    )
    sketch = LogOddsSketch.of(rows)
    exact, sketched = mle(Likelihood.of(rows, source)), sketch.estimate(source)
    assert abs(sketched.prevalence[1] - exact.prevalence[1]) <= sketch.error_bound(sketched) + 1e-9


def test_calibration_comes_after() -> None:
    rows, source = posteriors(20_000, 1.0, 0.3, 0.5), np.array([0.5, 0.5])
    calibration = Scaling("bcts", np.full(2, 1.4), np.array([0.2, -0.2]), 1e-300)
    exact = mle(Likelihood.of(rows, source, None, calibration))
    sketch = LogOddsSketch.of(rows)
    sketched = sketch.estimate(source, calibration)
    error = abs(sketched.prevalence[1] - exact.prevalence[1])
    assert error <= min(1e-6, sketch.error_bound(sketched, calibration) + 1e-9)


@pytest.mark.parametrize("sharpness", [5.0, 20.0, 60.0])
def test_scores_that_are_sure_of_everything_and_calibrated_down(sharpness: float) -> None:
    logits = RNG.normal(RNG.random(20_000) < 0.4, 1.0) * sharpness
    rows = np.column_stack([expit(-logits), expit(logits)])
    calibration = Scaling("bcts", np.full(2, 1 / sharpness), np.array([0.25, -0.25]), 1e-300)
    source = np.array([0.6, 0.4])
    exact = mle(Likelihood.of(rows, source, None, calibration))
    sketch = LogOddsSketch.of(rows)
    sketched = sketch.estimate(source, calibration)
    error = abs(sketched.prevalence[1] - exact.prevalence[1])
    assert error <= min(1e-6, sketch.error_bound(sketched, calibration) + 1e-9)


class TestMerge:
    def test_parts_are_the_whole_in_any_order(self) -> None:
        rows = posteriors(5000, 1.0, 0.3, 0.5)
        parts = [LogOddsSketch.of(part) for part in np.split(rows, [1, 700, 3000])]
        whole = LogOddsSketch.of(rows)
        forth = back = LogOddsSketch.empty()
        for part in parts:
            forth = forth.merge(part)
        for part in reversed(parts):
            back = part.merge(back)
        for merged in (forth, back):
            assert merged.size == whole.size == 5000
            np.testing.assert_array_equal(merged.weight, whole.weight)
            np.testing.assert_allclose(merged.first, whole.first, atol=1e-12)
            np.testing.assert_allclose(merged.second, whole.second, atol=1e-12)

    def test_chunks_and_weights(self) -> None:
        rows = posteriors(3000, 1.0, 0.3, 0.5)
        counts = RNG.integers(0, 4, 3000)
        weighted = LogOddsSketch.of(np.array_split(rows, 4), counts.astype(np.float64))
        repeated = LogOddsSketch.of(np.repeat(rows, counts, axis=0))
        np.testing.assert_allclose(weighted.weight, repeated.weight)
        np.testing.assert_allclose(weighted.second, repeated.second, atol=1e-12)

    def test_nothing_has_no_information(self) -> None:
        source = np.array([0.7, 0.3])
        result = LogOddsSketch.empty().estimate(source)
        assert result.status == "no-information"
        np.testing.assert_array_equal(result.prevalence, source)


class TestEdges:
    def test_certain_rows_are_exact(self) -> None:
        rows = np.array([[1.0, 0.0]] * 7 + [[0.0, 1.0]] * 3 + [[0.0, 0.0]] * 2)
        sketch = LogOddsSketch.of(rows)
        assert sketch.certain.tolist() == [7, 3]
        assert sketch.unsupported == 2
        assert sketch.size == 12
        np.testing.assert_allclose(sketch.estimate(np.array([0.5, 0.5])).prevalence, [0.7, 0.3])

    def test_far_beyond_the_bins(self) -> None:
        positive = np.array([1e-300, 1e-30, 1e-20, 1 - 1e-16, 0.5])
        rows = np.column_stack([1 - positive, positive])
        rows[3] = [1e-200, 1.0]
        sketch = LogOddsSketch.of(rows)
        assert len(sketch.weight) == BINS
        source = np.array([0.5, 0.5])
        exact = mle(Likelihood.of(rows, source)).prevalence
        np.testing.assert_allclose(sketch.estimate(source).prevalence, exact, atol=1e-6)

    def test_single_precision(self) -> None:
        rows, source = posteriors(5000, 1.0, 0.3, 0.5).astype(np.float32), np.array([0.5, 0.5])
        sketched = LogOddsSketch.of(rows).estimate(source)
        exact = mle(Likelihood.of(rows, source))
        np.testing.assert_allclose(sketched.prevalence, exact.prevalence, atol=1e-6)

    def test_no_bound_at_the_ends(self) -> None:
        sketch = LogOddsSketch.of(np.array([[0.9, 0.1], [0.8, 0.2]]))
        result = sketch.estimate(np.array([0.5, 0.5]))
        assert result.prevalence.tolist() == [1.0, 0.0]
        assert sketch.error_bound(result) == np.inf
