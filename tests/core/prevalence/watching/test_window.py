import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import chi2

from app.core.arrays import Codes, Floats
from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.estimators.sketch import LogOddsSketch
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.source import Source, SourceModel, ValidationSet, derive
from app.core.prevalence.watching.eprocess import EProcess
from app.core.prevalence.watching.source_set import SourceSet
from app.core.prevalence.watching.window import WindowTest, _search, window_test
from tests.core.prevalence.watching.examples import draw, registered

TWO, THREE = np.array([0.9, 0.1]), np.array([0.7, 0.2, 0.1])


def judged(model: SourceModel, rows: Floats, level: float = 1e-3, effect: float = 0) -> WindowTest:
    likelihood = Likelihood.of(rows, model.priors, calibration=model.calibration)
    return window_test(likelihood, mle(likelihood), SourceSet.of(model), level, effect)


class TestTwoClasses:
    def test_is_the_least_statistic_of_a_grid(self) -> None:
        rng = np.random.default_rng(1)
        model, _, _ = registered(rng, 1000, TWO, 2.0)
        _, rows = draw(rng, 300, np.array([0.7, 0.3]), 2.0, TWO)
        found = judged(model, rows)
        likelihood = Likelihood.of(rows, model.priors, calibration=model.calibration)
        top = mle(likelihood)
        low, high = SourceSet.of(model).interval
        grid = [
            2 * 300 * (top.gain - likelihood.gain(np.array([1 - t, t])))
            for t in np.linspace(low, high, 201)
        ]
        assert found.statistic == pytest.approx(min(grid), abs=1e-6)
        assert found.nearest[1] == pytest.approx(high)
        assert found.p_value == pytest.approx(chi2.sf(min(grid), 1), rel=1e-6)
        assert found.statistic < found.point_statistic
        assert found.detected

    def test_an_estimate_inside_the_set_says_nothing(self) -> None:
        rng = np.random.default_rng(2)
        model, _, _ = registered(rng, 200, TWO, 2.0)
        _, rows = draw(rng, 20_000, model.priors, 2.0, TWO)
        found = judged(model, rows)
        assert (found.statistic, found.p_value, found.detected) == (0, 1, False)

    def test_a_sketch_says_the_same(self) -> None:
        rng = np.random.default_rng(3)
        model, _, _ = registered(rng, 5000, TWO, 2.0)
        _, rows = draw(rng, 2000, np.array([0.85, 0.15]), 2.0, TWO)
        likelihood = LogOddsSketch.of(rows).likelihood(model.priors, model.calibration)
        sketched = window_test(likelihood, mle(likelihood), SourceSet.of(model), 1e-3)
        exact = judged(model, rows)
        assert sketched.statistic == pytest.approx(exact.statistic, rel=1e-4)
        assert sketched.detected == exact.detected

    def test_priors_without_rows_are_a_point(self) -> None:
        model = derive(Source(("a", "b"), priors=TWO))
        _, rows = draw(np.random.default_rng(4), 500, np.array([0.8, 0.2]), 2.0, TWO)
        found = judged(model, rows)
        assert found.statistic == found.point_statistic > 0
        assert found.source_level == 0
        np.testing.assert_array_equal(found.nearest, TWO)

    def test_needs_the_minimum_effect_too(self) -> None:
        rng = np.random.default_rng(5)
        model, _, _ = registered(rng, 5000, TWO, 3.0)
        _, rows = draw(rng, 3000, np.array([0.8, 0.2]), 3.0, TWO)
        assert judged(model, rows, effect=0.05).detected
        assert not judged(model, rows, effect=0.2).detected

    def test_no_rows(self) -> None:
        model, _, _ = registered(np.random.default_rng(6), 500, TWO, 2.0)
        empty = LogOddsSketch.empty().likelihood(model.priors, model.calibration)
        found = window_test(empty, mle(empty), SourceSet.of(model), 0.01)
        assert (found.statistic, found.p_value) == (0, 1)


class TestWrongCalibration:
    def test_moves_the_null_and_does_not_widen_the_statistic(self) -> None:
        """Scores twice too sure, never calibrated: chi-square holds at the priors they lead to."""
        rng = np.random.default_rng(7)

        def scored(rows: int) -> Floats:
            _, g = draw(rng, rows, TWO, 2.0, TWO)
            return np.asarray(g**2 / (g**2).sum(axis=1, keepdims=True))

        population = scored(400_000)
        effective = mle(Likelihood.of(population, TWO)).prevalence
        assert abs(effective[1] - 0.1) > 0.01
        statistics = []
        for rows in np.split(population, 2000):
            window = Likelihood.of(rows, TWO)
            statistics.append(400 * (mle(window).gain - window.gain(effective)))
        rejected = np.mean(np.array(statistics) > chi2.ppf(0.95, 1))
        # Three standard errors of 2000 windows.
        assert rejected == pytest.approx(0.05, abs=0.015)


class TestMoreClasses:
    @settings(max_examples=15, deadline=None)
    @given(st.integers(0, 10_000), st.sampled_from([(200, 50), (1000, 300), (300, 2000)]))
    def test_is_the_least_statistic_by_another_solver(
        self, seed: int, sizes: tuple[int, int]
    ) -> None:
        rng = np.random.default_rng(seed)
        model, _, _ = registered(rng, sizes[0], THREE, 2.0)
        _, rows = draw(rng, sizes[1], rng.dirichlet([2, 2, 2]), 2.0, THREE)
        likelihood = Likelihood.of(rows, model.priors, calibration=model.calibration)
        top, sources = mle(likelihood), SourceSet.of(model)
        found = window_test(likelihood, top, sources, 1e-3)

        def deviance(p: Floats) -> float:
            return 2 * sizes[1] * (top.gain - likelihood.gain(np.maximum(p, 1e-12)))

        inside = {"type": "ineq", "fun": lambda p: sources.limit - sources.distance(p)}
        simplex = {"type": "eq", "fun": lambda p: p.sum() - 1}
        other = minimize(
            deviance,
            model.priors,
            method="SLSQP",
            bounds=[(1e-9, 1)] * 3,
            constraints=[inside, simplex],
            options={"maxiter": 500, "ftol": 1e-10},
        )
        assert found.statistic == pytest.approx(other.fun, abs=0.02, rel=2e-3)
        assert found.statistic <= deviance(found.nearest) + 5e-3
        assert sources.distance(found.nearest) <= sources.limit * 1.01 + 1e-9

    def test_two_classes_by_the_search_agree_with_the_interval(self) -> None:
        """A third class of nothing makes two classes of three, whose ends are at hand."""
        rng = np.random.default_rng(8)
        model, _, _ = registered(rng, 2000, TWO, 2.0)
        _, rows = draw(rng, 500, np.array([0.7, 0.3]), 2.0, TWO)
        likelihood = Likelihood.of(rows, model.priors, calibration=model.calibration)
        top, sources = mle(likelihood), SourceSet.of(model)
        nearest, statistic = _search(likelihood, top, sources)
        exact = window_test(likelihood, top, sources, 0.01)
        assert statistic == pytest.approx(exact.statistic, abs=5e-3)
        np.testing.assert_allclose(nearest, exact.nearest, atol=1e-4)


class TestOutputs:
    def test_counts_of_outputs(self) -> None:
        model, _, _ = registered(np.random.default_rng(9), 5000, THREE, 2.0)
        sources = SourceSet.of(model, outputs=True)
        assert model.confusion is not None
        conditional = model.confusion.conditional
        unchanged, moved = conditional @ THREE * 400, conditional @ np.array([0.4, 0.5, 0.1]) * 400
        for counts, detected in ((unchanged, False), (moved, True)):
            likelihood = Likelihood.of_outputs(conditional, model.output_priors, counts)
            found = window_test(likelihood, mle(likelihood), sources, 1e-4)
            assert found.detected == detected
            assert found.degrees_of_freedom == 2


class TestOddSources:
    @pytest.mark.parametrize("kind", ["certain", "constant", "twins", "coarse", "one of each"])
    @pytest.mark.parametrize("classes", [2, 3, 4])
    @pytest.mark.parametrize("outputs", [False, True])
    def test_an_answer_between_nothing_and_the_point(
        self, kind: str, classes: int, outputs: bool
    ) -> None:
        rng = np.random.default_rng(classes)
        n = classes if kind == "one of each" else 200

        def scored(labels: Codes) -> Floats:
            if kind == "certain":
                g = 1e-9 + np.eye(classes)[labels]
            elif kind == "constant":
                g = np.tile(np.arange(1.0, classes + 1), (len(labels), 1))
            else:
                g = rng.dirichlet(np.full(classes, 0.5), len(labels)) + 1e-9
            if kind == "twins":
                g[:, 0] = g[:, -1]
            if kind == "coarse":
                g = np.round(g, 1) + 1e-9
            return np.asarray(g / g.sum(axis=1, keepdims=True))

        labels = np.concatenate([np.arange(classes), rng.integers(classes, size=n - classes)])
        given = Source(tuple("abcd"[:classes]), validation=ValidationSet(labels, scored(labels)))
        model = derive(given, reporting=False)
        rows = scored(np.zeros(80, np.intp))
        likelihood = Likelihood.of(rows, model.priors, calibration=model.calibration)
        if outputs:
            assert model.confusion is not None
            counts = np.bincount(rows.argmax(axis=1), minlength=classes).astype(np.float64)
            likelihood = Likelihood.of_outputs(
                model.confusion.conditional, model.output_priors, counts
            )
        top, sources = mle(likelihood), SourceSet.of(model, outputs)
        found = window_test(likelihood, top, sources, 0.01)
        assert 0 <= found.statistic <= found.point_statistic + 5e-3
        assert 0 <= found.p_value <= 1
        if likelihood.size and not sources.exact:
            assert sources.distance(found.nearest) <= sources.limit * (1 + 1e-6)
            gain = top.gain - likelihood.gain(found.nearest)
            assert 2 * likelihood.size * gain == pytest.approx(found.statistic, abs=0.1, rel=0.01)
        process = EProcess(sources)
        state = process.update(process.start(), likelihood)
        assert np.isfinite(state.log_e)
