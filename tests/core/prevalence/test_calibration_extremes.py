"""No calibration lets a NaN or an infinity out, whatever scores it was fitted on or is given."""

import warnings
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax

from app.core.arrays import Codes, Floats
from app.core.prevalence.calibration import (
    METHODS,
    Calibration,
    Folds,
    Isotonic,
    Method,
    OneVersusRest,
    Quality,
    Scaling,
    cross_calibrated,
    fit,
)
from app.core.prevalence.source import Source, ValidationSet, derive

EXTREMES = (0.0, 5e-324, 1e-320, 1e-308, 2.3e-308, 1e-300, 1e-150, 1e-17, 2.0**-53, 1e-9, 0.5)
SCORES = st.sampled_from(EXTREMES) | st.floats(0, 0.5)
WIDTHS = st.sampled_from([1, 2, 3, 5, 17])


@st.composite
def extreme_rows(draw: st.DrawFn, classes: int, least: int = 1, most: int = 12) -> Floats:
    """Rows of probabilities; one cell of each has what the others leave, up to 1 − 2⁻⁵³ and 1."""
    rows = np.zeros((draw(st.integers(least, most)), classes))
    for row in rows:
        row[:] = draw(st.lists(SCORES, min_size=classes, max_size=classes))
        large = draw(st.integers(0, classes - 1))
        row[large] = 0.0
        while row.sum() > 1:
            row /= 2
        row[large] = 1.0 - row.sum()
    return rows


@st.composite
def validation(draw: st.DrawFn) -> tuple[Floats, Codes]:
    """Such rows, some of them many times, and labels among which every class occurs."""
    classes = draw(WIDTHS)
    rows = draw(extreme_rows(classes, classes, classes + 8))
    others = st.lists(
        st.integers(0, classes - 1), min_size=len(rows) - classes, max_size=len(rows) - classes
    )
    labels = np.array([*range(classes), *draw(others)], dtype=np.intp)
    times = draw(st.sampled_from([1, 2, 7]))
    return np.tile(rows, (times, 1)), np.tile(labels, times)


def assert_sound(calibration: Calibration, rows: Floats) -> None:
    """Probabilities come out, and powers that are the same but for e^bias and a factor per row."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Batches may be of single precision, and stay so where nothing is calibrated.
        single = cast(Floats, rows.astype(np.float32))
        for scores, rounding in ((rows, 1e-12), (single, 1e-6)):
            calibrated = calibration.apply(scores)
            assert np.isfinite(calibrated).all()
            assert (calibrated >= 0).all()
            np.testing.assert_allclose(calibrated.sum(axis=1), 1, atol=rounding)
        assert np.isfinite(calibration.left_out).all()
        for given_rows in (rows, np.asfortranarray(rows), rows.astype(np.float32)):
            powers = calibration.powers(given_rows)
            assert np.isfinite(powers).all()
            assert (powers >= 0).all()
            assert (powers.max(axis=1) > 0).all()
        with np.errstate(divide="ignore"):
            logs = np.log(calibration.powers(rows)) + calibration.left_out
        composed = np.exp(log_softmax(logs, axis=1))
        np.testing.assert_allclose(composed, calibration.apply(rows), atol=1e-9)


def edges(classes: int) -> Floats:
    """Every extreme score in every place, the next class having the rest."""
    rows = np.zeros((2 * len(EXTREMES) * classes, classes))
    scores = [*EXTREMES, *(1.0 - score for score in EXTREMES)]
    for place, row in enumerate(rows):
        k, score = divmod(place, len(scores))
        row[(k + 1) % classes] = 1.0 - scores[score]
        row[k] = scores[score] if classes > 1 else 1.0
    return rows


class TestFitted:
    @pytest.mark.parametrize("method", METHODS)
    @given(validation(), st.data())
    @settings(max_examples=25, deadline=None)
    def test_on_extreme_scores(
        self, method: Method, fitted: tuple[Floats, Codes], data: st.DataObject
    ) -> None:
        rows, labels = fitted
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            calibration = fit(method, rows, labels)
        classes = rows.shape[1]
        for given_rows in (rows, edges(classes), data.draw(extreme_rows(classes))):
            assert_sound(calibration, given_rows)

    @pytest.mark.parametrize("method", METHODS)
    @given(validation())
    @settings(max_examples=10, deadline=None)
    def test_across_folds(self, method: Method, fitted: tuple[Floats, Codes]) -> None:
        rows, labels = fitted
        folds = Folds.of(labels, rows.shape[1])
        if folds is None:
            return
        held = cross_calibrated(method, rows, labels, folds)
        assert np.isfinite(held).all()
        quality = Quality.of(held, labels[folds.rows])
        assert np.isfinite([quality.brier, quality.raw_false_alarm_rate]).all()
        assert np.isfinite([*quality.gap, *quality.z]).all()

    @given(validation())
    @settings(max_examples=10, deadline=None)
    def test_chosen_automatically(self, fitted: tuple[Floats, Codes]) -> None:
        rows, labels = fitted
        names = tuple(f"c{k}" for k in range(rows.shape[1]))
        held = ValidationSet(labels, rows)
        model = derive(Source(names, validation=held, calibration="auto"))
        assert np.isfinite(model.priors).all()
        assert model.nuisance is not None
        assert np.isfinite(model.nuisance).all()
        assert_sound(model.calibration, edges(len(names)))


class TestAnyMap:
    @given(WIDTHS, st.data())
    @settings(max_examples=50, deadline=None)
    def test_isotonic_between_any_knots(self, classes: int, data: st.DataObject) -> None:
        """Values within (0, 1) as fitted; the curve keeps between those of its neighbours."""
        scores = st.sampled_from([*EXTREMES, 1.0, 1 - 2.0**-53]) | st.floats(0, 1)
        levels = st.floats(1e-9, 1 - 1e-9)
        knots, values = [], []
        for _ in range(classes):
            x = np.unique(data.draw(st.lists(scores, min_size=1, max_size=6)))
            some = st.lists(levels, min_size=len(x), max_size=len(x))
            knots.append(x)
            values.append(np.sort(data.draw(some)))
        calibration = Isotonic(tuple(knots), tuple(values))
        rows = np.vstack([data.draw(extreme_rows(classes)), edges(classes)])
        assert_sound(calibration, rows)

    def test_isotonic_between_subnormal_neighbours(self) -> None:
        least = np.finfo(float).smallest_subnormal
        x, y = np.array([0.0, least, 3 * least, 0.5]), np.array([0.1, 0.2, 0.6, 0.9])
        calibration = Isotonic((x, np.array([0.0])), (y, np.array([0.5])))
        rows = np.column_stack([[0.0, least, 2 * least, 3 * least, 0.25, 1.0], np.ones(6)])
        odds = calibration.apply(rows)
        levels = 0.5 * odds[:, 0] / odds[:, 1]
        np.testing.assert_allclose(levels, [0.1, 0.2, 0.4, 0.6, 0.75, 0.9], rtol=1e-12)

    @given(WIDTHS, st.data())
    @settings(max_examples=50, deadline=None)
    def test_any_scales_and_biases(self, classes: int, data: st.DataObject) -> None:
        size = data.draw(st.sampled_from([1.0, 100.0, 1e4]))
        some = st.lists(st.floats(-size, size), min_size=classes, max_size=classes)
        scale, bias = np.array(data.draw(some)), np.array(data.draw(some))
        floor = data.draw(st.sampled_from([1e-300, 1e-9, 0.025]))
        rows = np.vstack([data.draw(extreme_rows(classes)), edges(classes)])
        bias -= bias.mean()
        assert_sound(Scaling("vector-scaling", scale, bias, floor), rows)
        assert_sound(Scaling("bcts", np.full(classes, scale[0]), bias, floor), rows)
        assert_sound(OneVersusRest("platt", scale, bias, floor), rows)
