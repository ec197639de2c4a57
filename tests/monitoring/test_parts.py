"""The parts that need no server: durations, levels, kept rows, the course of an alert, thinning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.clock import duration
from app.core.prevalence.estimators.sketch import LogOddsSketch
from app.estimation import OutputBatch, PosteriorBatch, Request, estimate
from app.monitoring import levels, window_rows
from app.monitoring.alert_course import Course
from app.monitoring.specification import AlertSpec, ByDuration, ByRows
from app.monitoring.thinning import thinned
from app.monitoring.window_rows import Sketched, WindowRows
from models_store import arrays
from models_store.series import Columns
from models_store.windows import RowsRecord
from tests.monitoring.streams import rows as drawn
from tests.test_estimation import calibrated

DAY = 86_400


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("PT1H", 3600), ("P30D", 30 * DAY), ("P1W", 7 * DAY), ("P1DT2H3M4S", 93_784), ("PT0S", 0)],
)
def test_durations(text: str, seconds: int) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1M", "P1Y", "1H", "PT1.5H", "P-1D", "pt1h", "P1DT"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="ISO 8601"):
        duration(text)


def alert(**given: float) -> AlertSpec:
    return AlertSpec(**{**vars(AlertSpec(1.0, 30 * DAY, 0.0, 1, 3, "window")), **given})


def test_the_levels_of_a_period_add_up_to_the_budget() -> None:
    hourly = ByDuration(3600 * 1_000_000, 0, 1)
    found = levels.of(alert(), hourly, segments=10)
    assert found.value == pytest.approx(1 / 7200)
    assert found.windows == 720


def test_windows_of_rows_are_levelled_by_their_pace() -> None:
    assert levels.of(alert(), ByRows(1000), 1).value is None
    spans = [(k * 7200_000_000, (k + 1) * 7200_000_000) for k in reversed(range(5))]
    assert levels.of(alert(), ByRows(1000), 2, spans).value == pytest.approx(1 / 720)


def test_an_alert_needs_windows_in_a_row_and_recovers_by_calm_ones() -> None:
    spec, course = alert(consecutive=2, recovery=2), Course()
    told = [(True, 0), (False, 0), (True, 0), (True, 0), (False, 1), (True, 0)]
    told += [(False, 1), (False, 1)]
    under_way, events = False, []
    for detected, quiet in told:
        course = course.after(detected, bool(quiet))
        event = course.event(spec, under_way)
        under_way = (under_way or event == "open") and event != "close"
        events.append(event)
    assert events == [None, None, None, "open", None, None, None, "close"]


def kept(kind: str, content: np.ndarray) -> RowsRecord:
    return RowsRecord(1, kind, len(content), arrays.encode(content))


def test_no_possible_class_becomes_impossible_in_single_precision() -> None:
    narrow = window_rows.narrowed(np.array([[1.0, 0.0], [1 - 1e-60, 1e-60]]))
    assert narrow.dtype == np.float32
    assert narrow[0, 1] == 0
    assert narrow[1, 1] > 0


def test_a_histogram_estimates_as_its_rows_do() -> None:
    _, posteriors = drawn(np.random.default_rng(1), 5000, 0.2)
    model = calibrated()
    exact = estimate(model, PosteriorBatch(posteriors), Request())
    whole = Sketched.of(posteriors[:3000].astype(np.float32))
    pieces = [
        RowsRecord(1, "sketch", 3000, whole.encoded()),
        kept("rows", posteriors[3000:].astype(np.float32)),
    ]
    batch = WindowRows.of(pieces).batch()
    assert batch.size == 5000
    for method in ("mle", "cc", "pcc"):
        exact = estimate(model, PosteriorBatch(posteriors), Request(method=method))
        found = estimate(model, batch, Request(method=method))
        np.testing.assert_allclose(found.prevalence, exact.prevalence, atol=2e-7)
        assert found.size == 5000
    assert exact.shift is not None
    assert found.shift is not None
    assert found.shift.statistic == pytest.approx(exact.shift.statistic, rel=1e-5)


def test_a_histogram_survives_its_bytes() -> None:
    _, posteriors = drawn(np.random.default_rng(2), 500, 0.2)
    posteriors[:3] = [[1, 0], [0, 1], [1, 0]]
    whole = Sketched.of(posteriors.astype(np.float32))
    again = Sketched.decoded(whole.encoded())
    for name in vars(LogOddsSketch.empty()):
        np.testing.assert_array_equal(getattr(again.sketch, name), getattr(whole.sketch, name))
    np.testing.assert_array_equal(again.decided, whole.decided)


def test_counts_add_up() -> None:
    pieces = [kept("counts", np.array([3.0, 4.0])), kept("counts", np.array([1.0, 0.0]))]
    batch = WindowRows.of(pieces).batch()
    assert isinstance(batch, OutputBatch)
    np.testing.assert_array_equal(batch.counts, [4, 4])


@given(st.integers(1, 200), st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_a_shorter_series_hides_nothing(count: int, most: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = np.sort(rng.random((count, 3, 4)), axis=2)[:, :, [1, 0, 2, 3]]
    shares[rng.random(count) < 0.2] = np.nan
    silent = np.isnan(shares[:, 0, 0])
    p_value = np.where(silent, np.nan, rng.random(count))
    start = np.arange(count)
    detected = np.where(silent, np.nan, rng.random(count) < 0.1)
    size = rng.integers(1, 100, count)
    full = Columns("", start, start + 1, size, p_value, p_value, p_value, detected, shares)
    thin, counts = thinned(full, most)
    assert len(thin.start) <= most
    assert counts.sum() == count
    assert thin.size.sum() == size.sum()
    assert np.nansum(thin.detected) > 0 or np.nansum(detected) == 0
    if not silent.all():
        assert np.nanmin(thin.p_value) == np.nanmin(p_value)
        assert np.nanmin(thin.shares[:, :, 1]) == np.nanmin(shares[:, :, 1])
        said = ~np.isnan(thin.shares[:, 0, 0])
        weight = np.add.reduceat(np.where(silent, 0, size), np.searchsorted(start, thin.start))
        whole = np.average(shares[~silent], axis=0, weights=size[~silent])[:, 0]
        again = np.average(thin.shares[said], axis=0, weights=weight[said])[:, 0]
        np.testing.assert_allclose(again, whole)
