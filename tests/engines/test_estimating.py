import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.arrays import Floats
from app.core.errors import InvalidInput, MethodUnavailable
from app.core.prevalence.source import Source, derive
from app.engines import Piece, Read, engine
from app.engines.engine import Cancelled, Observer, Progress, TooManyGroups
from app.engines.estimation import DataChanged, DatasetEstimates, estimate_partitions
from app.engines.local import LocalEngine
from app.engines.tallies import Json
from app.estimation import Estimate, IntervalOptions, PosteriorBatch, Request, estimate
from tests.engines.data import ArrayPartition, cut, draw, matching, model
from tests.strategies import posterior_rows

TARGET = np.array([0.55, 0.2, 0.15, 0.08, 0.02])
MODEL = model(5)
ROWS = draw(np.random.default_rng(1), TARGET, 60_000)[1]
ENGINE = LocalEngine(threads=2)


def asked(method: str, kind: Literal["auto", "bootstrap"] = "auto") -> Request:
    return Request(method, interval=IntervalOptions(method=kind))


def same(found: Estimate, expected: Estimate, tolerance: float) -> None:
    np.testing.assert_allclose(found.prevalence, expected.prevalence, rtol=0, atol=tolerance)
    assert found.counted is not None
    assert expected.counted is not None
    np.testing.assert_allclose(found.counted, expected.counted, rtol=0, atol=1e-12)
    assert found.size == expected.size
    assert found.method == expected.method
    assert found.reason == expected.reason
    assert found.shift is not None
    assert expected.shift is not None
    assert found.shift.statistic == pytest.approx(expected.shift.statistic, rel=1e-6, abs=0.01)
    assert found.shift.degrees_of_freedom == expected.shift.degrees_of_freedom
    assert [w.code for w in found.warnings] == [w.code for w in expected.warnings]


class TestAgainstTheWholeInMemory:
    @pytest.mark.parametrize("method", ["cc", "pcc", "acc", "acc-qp", "pacc-qp"])
    def test_methods_of_one_round(self, method: str) -> None:
        expected = estimate(MODEL, PosteriorBatch(ROWS), asked(method))
        found = estimate_partitions(MODEL, cut(ROWS, 37), asked(method), ENGINE)
        same(found.estimates[()], expected, 1e-9)
        assert found.read.rows == len(ROWS)

    @pytest.mark.parametrize("method", ["cc", "pcc", "acc-qp"])
    def test_one_round_is_enough_without_a_shift_test(self, method: str) -> None:
        request = Request(method, shift=None)
        found = estimate_partitions(MODEL, cut(ROWS, 5), request, ENGINE)
        assert found.rounds == 1
        assert found.estimates[()].shift is None

    @pytest.mark.parametrize("soft", [True, False])
    def test_random_features(self, soft: bool) -> None:
        version, request = matching(3), Request("rffm", soft=soft, interval=IntervalOptions())
        rows = draw(np.random.default_rng(6), np.array([0.5, 0.3, 0.2]), 20_000)[1]
        whole = estimate(version, PosteriorBatch(rows), request)
        found = estimate_partitions(version, cut(rows, 9), request, ENGINE).estimates[()]
        np.testing.assert_allclose(found.prevalence, whole.prevalence, rtol=0, atol=1e-9)
        assert found.interval is not None
        assert whole.interval is not None
        np.testing.assert_allclose(found.interval.lower, whole.interval.lower, atol=2e-3)

    @pytest.mark.parametrize("classes", [2, 3, 5, 40])
    @pytest.mark.parametrize("calibration", ["bcts", "vector-scaling", "isotonic", "none"])
    def test_maximum_likelihood(self, classes: int, calibration: str) -> None:
        version = model(classes, 40 * classes + 500, calibration)
        shares = np.random.default_rng(3).dirichlet(np.ones(classes))
        rows = draw(np.random.default_rng(4), shares, 30_000)[1]
        expected = estimate(version, PosteriorBatch(rows), Request("mle"))
        found = estimate_partitions(version, cut(rows, 9), Request("mle"), ENGINE).estimates[()]
        same_maximum(found, expected)

    def test_the_interval_away_from_the_ends(self) -> None:
        expected = estimate(MODEL, PosteriorBatch(ROWS), asked("mle"))
        found = estimate_partitions(MODEL, cut(ROWS, 37), asked("mle"), ENGINE).estimates[()]
        assert found.interval is not None
        assert expected.interval is not None
        np.testing.assert_allclose(found.interval.lower, expected.interval.lower, atol=1e-5)
        np.testing.assert_allclose(found.interval.upper, expected.interval.upper, atol=1e-5)

    def test_single_precision_stays_what_it_is(self) -> None:
        rows = ROWS.astype(np.float32)
        expected = estimate(MODEL, PosteriorBatch(rows.astype(np.float64)), asked("mle"))
        found = estimate_partitions(MODEL, cut(rows, 7), asked("mle"), ENGINE)
        same_maximum(found.estimates[()], expected)
        assert found.read.bytes == rows.nbytes

    def test_a_class_that_is_not_there(self) -> None:
        shares = np.array([0.7, 0.3, 0.0, 0.0, 0.0])
        rows = draw(np.random.default_rng(5), shares, 40_000)[1]
        expected = estimate(MODEL, PosteriorBatch(rows), asked("mle"))
        found = estimate_partitions(MODEL, cut(rows, 9), asked("mle"), ENGINE).estimates[()]
        np.testing.assert_allclose(found.prevalence, expected.prevalence, rtol=0, atol=1e-6)
        assert "approximate-interval" in {w.code for w in found.warnings}
        assert found.interval is not None
        assert (found.interval.lower <= found.prevalence).all()
        assert (found.interval.upper >= shares - 1e-9).all()


def same_maximum(found: Estimate, expected: Estimate) -> None:
    np.testing.assert_allclose(found.prevalence, expected.prevalence, rtol=0, atol=1e-6)
    for answer in (found, expected):
        assert answer.diagnostics.status == "converged"
        assert answer.diagnostics.optimality_gap is not None
        assert answer.diagnostics.optimality_gap * answer.size <= 1e-3
    assert found.shift is not None
    assert expected.shift is not None
    assert found.shift.statistic == pytest.approx(expected.shift.statistic, rel=1e-6, abs=0.01)
    assert found.shift.degrees_of_freedom == expected.shift.degrees_of_freedom


class TestRounds:
    def test_are_few_and_do_not_depend_on_threads(self) -> None:
        parts = cut(ROWS, 37)
        one = estimate_partitions(MODEL, parts, asked("mle"), LocalEngine(threads=1))
        two = estimate_partitions(MODEL, parts, asked("mle"), LocalEngine(threads=2))
        assert one.rounds <= 8
        assert one.estimates[()].prevalence.tolist() == two.estimates[()].prevalence.tolist()

    def test_go_on_from_any_finished_one(self) -> None:
        parts, kept = cut(ROWS, 5), list[Json]()
        whole = estimate_partitions(MODEL, parts, asked("mle"), ENGINE, keep=kept.append)
        assert len(kept) == whole.rounds
        for done, state in enumerate(kept, 1):
            again: list[Progress] = []
            found = estimate_partitions(
                MODEL,
                parts,
                asked("mle"),
                ENGINE,
                state=json.loads(json.dumps(state, allow_nan=False)),
                observer=Observer(again.append),
            )
            assert {p.round for p in again} == set(range(done + 1, whole.rounds + 1))
            resumed, straight = found.estimates[()], whole.estimates[()]
            assert resumed.prevalence.tolist() == straight.prevalence.tolist()
            assert resumed.interval is not None
            assert straight.interval is not None
            assert resumed.interval.lower.tolist() == straight.interval.lower.tolist()

    def test_a_state_of_other_rows_is_not_gone_on_with(self) -> None:
        kept: list[Json] = []
        estimate_partitions(MODEL, cut(ROWS, 5), asked("mle"), ENGINE, keep=kept.append)
        found = estimate_partitions(MODEL, cut(ROWS, 6), asked("mle"), ENGINE, state=kept[0])
        assert found.rounds >= 3

    def test_progress_is_told(self) -> None:
        seen: list[Progress] = []
        found = estimate_partitions(
            MODEL, cut(ROWS, 7), asked("mle"), ENGINE, observer=Observer(seen.append)
        )
        assert len(seen) == 7 * found.rounds
        last = [p for p in seen if p.partitions == p.of]
        assert [p.rows for p in last] == [len(ROWS)] * found.rounds

    def test_cancelled_between_pieces(self) -> None:
        left = iter([False] * 4)
        observer = Observer(cancelled=lambda: next(left, True))
        with pytest.raises(Cancelled):
            estimate_partitions(MODEL, cut(ROWS, 7), asked("mle"), ENGINE, observer=observer)

    def test_rows_that_change_are_noticed(self) -> None:
        part = ArrayPartition("part", ROWS)

        def shorten(_: Json) -> None:
            object.__setattr__(part, "rows", ROWS[:100])

        with pytest.raises(DataChanged, match="round 2 read 100 rows"):
            estimate_partitions(MODEL, [part], asked("mle"), ENGINE, keep=shorten)


@dataclass(frozen=True, eq=False)
class Marked(ArrayPartition):
    """With rows that were rescaled, or left out."""

    def pieces(self) -> Iterator[Piece]:
        for piece in super().pieces():
            yield replace(piece, renormalised=2, skipped=3, messages=(f"{self.name}: NaN",))


def test_what_was_wrong_with_rows_is_counted_once_and_kept() -> None:
    parts, kept = [Marked("a", ROWS[:500]), Marked("b", ROWS[500:800])], list[Json]()
    whole = estimate_partitions(MODEL, parts, asked("mle"), ENGINE, keep=kept.append)
    assert whole.read == Read(800, ROWS[:800].nbytes, 4, 6, 0, ("a: NaN", "b: NaN"))
    assert "renormalised" in {w.code for w in whole.estimates[()].warnings}
    again = estimate_partitions(MODEL, parts, asked("mle"), ENGINE, state=kept[-1])
    assert again.read == whole.read


class TestRefusals:
    @pytest.mark.parametrize("method", ["em", "em-stop", "bayes", "kmm-gaussian"])
    def test_methods_that_go_through_the_rows_too_often(self, method: str) -> None:
        with pytest.raises(MethodUnavailable):
            estimate_partitions(MODEL, cut(ROWS, 3), asked(method), ENGINE)

    def test_posteriors(self) -> None:
        with pytest.raises(MethodUnavailable, match="a job of their own"):
            estimate_partitions(MODEL, cut(ROWS, 3), Request("cc", posteriors=True), ENGINE)

    def test_no_rows(self) -> None:
        with pytest.raises(InvalidInput, match="no rows"):
            estimate_partitions(MODEL, [ArrayPartition("e", ROWS[:0])], asked("mle"), ENGINE)
        with pytest.raises(InvalidInput, match="no rows"):
            estimate_partitions(MODEL, [], asked("mle"), ENGINE)


class TestGroups:
    NAMES = tuple((country, device) for country in ("BE", "FR", "NL") for device in ("a", "b"))
    CODES = np.random.default_rng(8).choice(6, len(ROWS), p=[0.5, 0.3, 0.1, 0.05, 0.049, 0.001])

    def found(self, method: str) -> DatasetEstimates:
        parts = cut(ROWS, 11, self.CODES, self.NAMES)
        return estimate_partitions(MODEL, parts, asked(method), ENGINE)

    @pytest.mark.parametrize("method", ["pcc", "acc-qp"])
    def test_each_as_if_alone(self, method: str) -> None:
        found = self.found(method)
        assert list(found.estimates) == sorted(self.NAMES)
        for code, name in enumerate(self.NAMES):
            batch = PosteriorBatch(ROWS[code == self.CODES])
            expected = estimate(MODEL, batch, asked(method))
            shares = found.estimates[name].prevalence
            np.testing.assert_allclose(shares, expected.prevalence, rtol=0, atol=1e-9)

    def test_share_their_rounds(self) -> None:
        found = self.found("mle")
        assert found.rounds <= 12
        for code, name in enumerate(self.NAMES):
            batch = PosteriorBatch(ROWS[code == self.CODES])
            same_maximum(found.estimates[name], estimate(MODEL, batch, asked("mle")))

    def test_too_many(self) -> None:
        codes = np.arange(len(ROWS)) % 100
        names = [(str(code),) for code in range(100)]
        parts = cut(ROWS, 3, codes, names)
        with pytest.raises(TooManyGroups, match="more than 60 groups"):
            estimate_partitions(MODEL, parts, asked("cc"), ENGINE, most_groups=60)
        found = estimate_partitions(MODEL, parts, asked("mle"), ENGINE, most_groups=100)
        assert len(found.estimates) == 100


def test_the_bootstrap_comes_from_the_same_sums() -> None:
    request = asked("mle", "bootstrap")
    few = ROWS[:4000]
    expected = estimate(MODEL, PosteriorBatch(few), request).interval
    found = estimate_partitions(MODEL, cut(few, 5), request, ENGINE).estimates[()].interval
    assert found is not None
    assert expected is not None
    assert found.method == expected.method == "bootstrap"
    width = _width(expected.upper - expected.lower)
    np.testing.assert_allclose(found.lower, expected.lower, atol=0.25 * width)
    np.testing.assert_allclose(found.upper, expected.upper, atol=0.25 * width)


def _width(reach: Floats) -> float:
    return float(reach.max())


def test_the_engine_of_the_settings() -> None:
    with engine(None, 1 << 20) as found:
        assert isinstance(found, LocalEngine)
        assert found.memory == 1 << 20


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_few_rows_whatever_they_are(data: st.DataObject) -> None:
    classes = data.draw(st.integers(2, 4))
    rows = data.draw(posterior_rows(classes, 8))
    even = np.full(classes, 1 / classes)
    names = tuple(f"class-{k}" for k in range(classes))
    absent = even.copy()
    absent[0], absent[1] = 0.0, absent[1] + absent[0]
    priors = data.draw(st.sampled_from([even, absent]))
    version = data.draw(
        st.sampled_from([model(classes), derive(Source(names, priors=priors))]), label="version"
    )
    method = data.draw(st.sampled_from(["cc", "pcc", "mle"]))
    kinds: tuple[Literal["auto", "bootstrap"], ...] = ("auto", "bootstrap")
    request = asked(method, data.draw(st.sampled_from(kinds)))
    parts = [ArrayPartition("first", rows[:2]), ArrayPartition("second", rows[2:])]
    with np.errstate(all="ignore"):
        expected = estimate(version, PosteriorBatch(rows), request)
        found = estimate_partitions(version, parts, request, LocalEngine(threads=1)).estimates[()]
    np.testing.assert_allclose(found.prevalence, expected.prevalence, rtol=0, atol=1e-6)
    assert found.diagnostics.status == expected.diagnostics.status
    assert found.shift is not None
    assert expected.shift is not None
    assert found.shift.p_value == pytest.approx(expected.shift.p_value, rel=1e-3, abs=1e-6)
    assert found.interval is not None
    assert (found.interval.lower <= found.prevalence).all()
    assert (found.interval.upper >= found.prevalence).all()


@pytest.mark.parametrize("tiny", [0.0, 5e-324, 5.6e-309, 1e-305, 1e-160, 1e-20])
@pytest.mark.parametrize("method", ["cc", "pcc", "mle"])
def test_rows_of_nearly_no_density_are_summed_without_a_warning(method: str, tiny: float) -> None:
    """The curvature of such a row is about 1 / tiny²; sums of it may be infinite."""
    version = derive(Source(("a", "b", "c", "d"), priors=np.full(4, 0.25)))
    rows = np.eye(4)[[3, 2, 2, 0]]
    rows[3] = [0.5, 0.5, tiny, 0.0]
    parts = [ArrayPartition("first", rows[:2]), ArrayPartition("second", rows[2:])]
    found = estimate_partitions(version, parts, asked(method), LocalEngine(threads=1)).estimates[()]
    expected = estimate(version, PosteriorBatch(rows), asked(method))
    np.testing.assert_allclose(found.prevalence, expected.prevalence, rtol=0, atol=1e-9)
