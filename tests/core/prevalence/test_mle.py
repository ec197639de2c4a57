import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from app.core.arrays import AnyFloats, Floats
from app.core.prevalence.adjustment.posteriors import adjust
from app.core.prevalence.calibration import Scaling
from app.core.prevalence.estimators.em import em
from app.core.prevalence.estimators.mle import MleResult, mle
from app.core.prevalence.likelihood.likelihood import Likelihood
from tests.golden import GOLDEN
from tests.strategies import posterior_rows, simplex


def solve(posteriors: AnyFloats, source: Floats, weights: Floats | None = None) -> MleResult:
    """The maximum, after a look at the certificate with the ratio matrix in hand."""
    result = mle(Likelihood.of(posteriors, source, weights))
    assert result.status == "converged"
    assert_maximum(result, posteriors, source, weights)
    return result


def assert_maximum(
    result: MleResult, posteriors: AnyFloats, source: Floats, weights: Floats | None = None
) -> None:
    ratios = posteriors.astype(np.float64) / source
    m = np.average(ratios / (ratios @ result.prevalence)[:, None], axis=0, weights=weights)
    size = len(ratios) if weights is None else weights.sum()
    promised = min(1e-8, 1e-3 / size)
    assert result.optimality_gap <= promised
    assert m.max() - 1 <= promised + 1e-12
    assert result.prevalence.min() >= 0
    assert result.prevalence.sum() == pytest.approx(1, abs=1e-12)


def gaussian(seed: int, rows: int, distances: Floats, source: Floats, target: Floats) -> Floats:
    """Exact posteriors under ``source`` of unit normals sampled under ``target``."""
    rng = np.random.default_rng(seed)
    x = distances[rng.choice(len(target), rows, p=target)] + rng.normal(size=rows)
    density = source * np.exp(x[:, None] * distances - 0.5 * distances**2)
    posteriors: Floats = density / density.sum(axis=1, keepdims=True)
    return posteriors


class TestGolden:
    @pytest.mark.parametrize(
        "name", ["L01_em_C2_N2_exact", "L02_em_C2_N2_boundary", "L04_em_C3_N6_interior"]
    )
    def test_maximum(self, name: str) -> None:
        entry = GOLDEN[name]
        expected, tolerance = entry["expected"], entry["tolerance"]
        posteriors = np.array(entry["inputs"]["posterior"])
        source = np.array(entry["inputs"]["prior_train"])
        result = solve(posteriors, source)
        np.testing.assert_allclose(result.prevalence, expected["prior_hat"], rtol=0, atol=tolerance)
        assert 2 * len(posteriors) * result.gain == pytest.approx(
            expected["lr_statistic"], abs=tolerance
        )
        adjusted, _ = adjust(posteriors, source, result.prevalence)
        np.testing.assert_allclose(adjusted, expected["posterior_adjusted"], rtol=0, atol=tolerance)

    def test_l02_the_boundary_is_exact(self) -> None:
        entry = GOLDEN["L02_em_C2_N2_boundary"]["inputs"]
        result = solve(np.array(entry["posterior"]), np.array(entry["prior_train"]))
        assert result.prevalence.tolist() == [1.0, 0.0]

    def test_l07_one_hot_rows_give_the_g_statistic(self) -> None:
        entry = GOLDEN["L07_lr_onehot_is_G_test"]
        posteriors = np.eye(3)[[0] * 5 + [1] * 3 + [2] * 2]
        result = solve(posteriors, np.array(entry["inputs"]["prior_train"]))
        np.testing.assert_allclose(result.prevalence, entry["expected"]["prior_hat"], atol=1e-10)
        assert 20 * result.gain == pytest.approx(entry["expected"]["lr_statistic"], abs=1e-10)

    def test_l08_uninformative_rows_keep_the_source_priors(self) -> None:
        source = np.array(GOLDEN["L08_lr_uninformative"]["inputs"]["prior_train"])
        result = solve(np.tile(source, (20, 1)), source)
        np.testing.assert_allclose(result.prevalence, source, rtol=0, atol=1e-12)
        assert result.gain == pytest.approx(0, abs=1e-12)
        assert result.undetermined == (0, 1, 2)

    def test_l09_where_em_is_sublinear(self) -> None:
        entry = GOLDEN["L09_em_sublinear_boundary"]
        posteriors = np.array(entry["inputs"]["posterior"])
        result = solve(posteriors, np.array(entry["inputs"]["prior_train"]))
        assert result.prevalence.tolist() == entry["expected"]["prior_hat_exact"]
        assert 4 * result.gain == pytest.approx(entry["expected"]["lr_statistic"], abs=1e-9)

    def test_l10_mean_adjusted_posterior_is_the_estimate(self) -> None:
        entry = GOLDEN["L04_em_C3_N6_interior"]["inputs"]
        posteriors, source = np.array(entry["posterior"]), np.array(entry["prior_train"])
        result = solve(posteriors, source)
        adjusted, _ = adjust(posteriors, source, result.prevalence)
        np.testing.assert_allclose(adjusted.mean(axis=0), result.prevalence, rtol=0, atol=1e-9)

    def test_published_two_by_two(self) -> None:
        result = solve(np.array([[1, 1e-8], [1e-8, 1]]), np.full(2, 0.5))
        np.testing.assert_allclose(result.prevalence, [0.5, 0.5], atol=1e-8)

    def test_published_zero_column(self) -> None:
        rows = np.random.default_rng(1).dirichlet(np.ones(4), 100)
        rows[:, 2] = 0
        assert solve(rows, np.full(4, 0.25)).prevalence[2] == 0


class TestKnownWaysToFail:
    def test_start_with_zeros(self) -> None:
        rng = np.random.default_rng(2)
        rows, source = rng.dirichlet(np.full(9, 0.3), 60_000), np.full(9, 1 / 9)
        rows[:300, 8] = 0
        rows /= rows.sum(axis=1, keepdims=True)
        result = mle(Likelihood.of(rows, source), start=np.eye(9)[8])
        assert_maximum(result, rows, source)
        np.testing.assert_allclose(result.prevalence, solve(rows, source).prevalence, atol=1e-6)

    def test_start_at_a_corner_that_excludes_a_row(self) -> None:
        rows, source = (
            np.array([[0.5, 0.5, 0.0], [0.2, 0.2, 0.6], [0.1, 0.8, 0.1]]),
            np.full(3, 1 / 3),
        )
        result = mle(Likelihood.of(rows, source), start=np.array([0.0, 0.0, 1.0]))
        assert_maximum(result, rows, source)

    def test_twin_columns_split_in_the_proportion_of_their_source_priors(self) -> None:
        source = np.array([0.3, 0.1, 0.6])
        pair = gaussian(3, 5000, np.array([0.0, 1.0]), np.array([0.3, 0.7]), np.array([0.5, 0.5]))
        twins = np.column_stack([pair[:, 0], pair[:, 1] / 7, pair[:, 1] * 6 / 7])
        result = solve(twins, source)
        assert result.undetermined == (1, 2)
        assert result.prevalence[2] / result.prevalence[1] == pytest.approx(6, rel=1e-9)
        merged = solve(pair, np.array([0.3, 0.7]))
        assert result.prevalence[0] == pytest.approx(merged.prevalence[0], abs=1e-6)
        limit = em(Likelihood.of(twins, source), 1e-12, 5000)
        np.testing.assert_allclose(result.prevalence, limit.prevalence, atol=1e-6)

    def test_twins_from_a_start_that_starves_one(self) -> None:
        source, pair = np.array([0.3, 0.1, 0.6]), np.random.default_rng(4).dirichlet([1, 1], 200)
        twins = np.column_stack([pair[:, 0], pair[:, 1] / 7, pair[:, 1] * 6 / 7])
        result = mle(Likelihood.of(twins, source), start=np.array([0.3, 0.7, 0.0]))
        assert result.prevalence[2] / result.prevalence[1] == pytest.approx(6, rel=1e-9)

    def test_a_mixture_of_two_classes_is_told_from_neither(self) -> None:
        rng = np.random.default_rng(5)
        densities = rng.gamma(1.0, size=(400, 2)) + 0.05
        source = np.array([0.4, 0.4, 0.2])
        joint = np.column_stack([densities, densities.mean(axis=1)]) * source
        result = solve(joint / joint.sum(axis=1, keepdims=True), source)
        assert result.undetermined == (0, 1, 2)
        exchange = np.array([0.5, 0.5, -1.0])
        slope = exchange @ np.log(result.prevalence / source)
        assert slope == pytest.approx(0, abs=1e-6)

    def test_one_hot_rows(self) -> None:
        result = solve(np.eye(4)[[0, 0, 0, 1, 2, 2]], np.array([0.97, 0.01, 0.01, 0.01]))
        np.testing.assert_allclose(result.prevalence, [1 / 2, 1 / 6, 1 / 3, 0], atol=1e-7)
        assert result.prevalence[3] == 0

    def test_rows_rounded_to_two_decimals(self) -> None:
        source = np.array([0.9, 0.07, 0.03])
        exact = gaussian(
            6, 20_000, np.array([0.0, 2.5, 5.0]), source, np.array([0.97, 0.001, 0.029])
        )
        rounded = np.round(exact, 2)
        solve(rounded / rounded.sum(axis=1, keepdims=True), source)

    def test_one_row(self) -> None:
        result = solve(np.array([[0.2, 0.5, 0.3]]), np.array([0.2, 0.6, 0.2]))
        np.testing.assert_array_equal(result.prevalence, [0, 0, 1])
        assert solve(np.array([[0.2, 0.8]]), np.full(2, 0.5)).prevalence.tolist() == [0, 1]

    def test_one_class(self) -> None:
        result = solve(np.ones((3, 1)), np.ones(1))
        assert result.prevalence.tolist() == [1.0]
        assert result.gain == 0

    def test_fewer_rows_than_classes(self) -> None:
        rng = np.random.default_rng(7)
        solve(rng.dirichlet(np.ones(30), 5), rng.dirichlet(np.ones(30)))

    @pytest.mark.parametrize("classes", [2, 5])
    def test_constant_rows(self, classes: int) -> None:
        rng = np.random.default_rng(8)
        source = rng.dirichlet(np.ones(classes))
        flat = solve(np.tile(source, (1000, 1)), source)
        np.testing.assert_allclose(flat.prevalence, source, atol=1e-12)
        assert len(flat.undetermined) == classes
        tilted = rng.dirichlet(np.ones(classes))
        result = solve(np.tile(tilted, (1000, 1)), source)
        assert result.prevalence[np.argmax(tilted / source)] == 1

    @pytest.mark.parametrize("classes", [2, 3])
    def test_three_certain_rows_among_very_many(self, classes: int) -> None:
        rows = np.tile(np.array([[0.98] + [0.02 / (classes - 1)] * (classes - 1)]), (200_000, 1))
        rows[:3] = np.eye(classes)[-1]
        source = np.array([0.9] + [0.1 / (classes - 1)] * (classes - 1))
        result = solve(rows, source)
        assert 0 < result.prevalence[-1] < 1e-4

    def test_four_hundred_classes(self) -> None:
        rng = np.random.default_rng(9)
        scores = rng.normal(size=(4000, 400)) * 2
        rows = np.exp(scores)
        rows /= rows.sum(axis=1, keepdims=True)
        result = solve(rows, rng.dirichlet(np.full(400, 5.0)))
        assert result.hessian_passes <= 20

    @pytest.mark.parametrize("classes", [2, 6])
    def test_logits_times_a_hundred(self, classes: int) -> None:
        scores = np.random.default_rng(10).normal(size=(3000, classes)) * 100
        rows = np.exp(scores - scores.max(axis=1, keepdims=True))
        solve(rows / rows.sum(axis=1, keepdims=True), np.full(classes, 1 / classes))

    @pytest.mark.parametrize("classes", [2, 5])
    def test_rare_source_classes(self, classes: int) -> None:
        source: Floats = np.full(classes, 2e-5)
        source[0] = 1 - source[1:].sum()
        target = np.full(classes, 1 / classes)
        distances = np.linspace(0.0, 3.0 * (classes - 1), classes)
        rows = gaussian(11, 5000, distances, source, target)
        np.testing.assert_allclose(solve(rows, source).prevalence, target, atol=0.05)

    def test_the_smallest_numbers(self) -> None:
        tiny = np.nextafter(0, 1)
        rows, source = np.array([[1.0, tiny], [tiny, 1.0]]), np.array([1 - 1e-12, 1e-12])
        result = mle(Likelihood.of(rows, source))
        assert result.status == "converged"
        np.testing.assert_allclose(result.prevalence, [0.5, 0.5], atol=1e-7)

    def test_no_dust_on_classes_that_are_pushed_out(self) -> None:
        rng = np.random.default_rng(12)
        source = np.full(12, 1 / 12)
        rows = gaussian(12, 3000, np.linspace(-4, 4, 12), source, rng.dirichlet(np.full(12, 0.2)))
        result = solve(rows, source)
        below = Likelihood.of(rows, source).multipliers(result.prevalence) < 1 - 1e-6
        assert below.any()
        assert (result.prevalence[below] == 0).all()

    def test_a_class_can_leave_zero(self) -> None:
        rng = np.random.default_rng(13)
        rows, source = rng.dirichlet(np.ones(5), 2000), np.full(5, 0.2)
        start = np.array([0.5, 0.5, 0.0, 0.0, 0.0])
        result = mle(Likelihood.of(rows, source), start=start)
        assert_maximum(result, rows, source)

    def test_overlapping_classes_where_em_stops_short(self) -> None:
        rows = gaussian(14, 2000, np.array([0.0, 0.3]), np.full(2, 0.5), np.array([0.945, 0.055]))
        result, stopped = solve(rows, np.full(2, 0.5)), em(Likelihood.of(rows, np.full(2, 0.5)))
        assert stopped.optimality_gap > 100 * result.optimality_gap
        assert stopped.gain < result.gain


class TestStatuses:
    def test_no_informative_row(self) -> None:
        source = np.array([0.4, 0.6, 0.0])
        result = mle(Likelihood.of(np.array([[0.0, 0.0, 1.0]]), source))
        assert result.status == "no-information"
        np.testing.assert_array_equal(result.prevalence, source)

    @pytest.mark.parametrize("classes", [2, 4])
    def test_too_few_iterations(self, classes: int) -> None:
        rows = np.random.default_rng(15).dirichlet(np.full(classes, 0.3), 500)
        rows[:, 0] *= 0.01
        source = np.full(classes, 1 / classes)
        likelihood = Likelihood.of(rows / rows.sum(axis=1, keepdims=True), source)
        result = mle(likelihood, max_iterations=1)
        assert result.status == "max-iterations"
        best = mle(likelihood)
        assert 0 <= best.gain - result.gain <= result.optimality_gap

    @pytest.mark.parametrize("classes", [2, 4])
    def test_more_than_rounding_allows(self, classes: int) -> None:
        rows = np.random.default_rng(20).dirichlet(np.full(classes, 0.7), 1000)
        source = np.full(classes, 1 / classes)
        result = mle(Likelihood.of(rows, source), tolerance=1e-30)
        assert result.status in ("stalled", "converged")
        assert result.optimality_gap < 1e-13
        assert result.gradient_passes + result.hessian_passes < 30

    def test_excluded_classes(self) -> None:
        posteriors = np.array([[0.6, 0.4, 0.0], [0.3, 0.5, 0.2], [0.0, 0.0, 1.0]])
        result = mle(Likelihood.of(posteriors, np.array([0.5, 0.5, 0.0])))
        two = solve(np.array([[0.6, 0.4], [0.375, 0.625]]), np.array([0.5, 0.5]))
        np.testing.assert_allclose(result.prevalence, [*two.prevalence, 0.0], atol=1e-9)

    def test_only_one_class_left(self) -> None:
        result = mle(Likelihood.of(np.array([[0.6, 0.4]]), np.array([1.0, 0.0])))
        assert result.prevalence.tolist() == [1.0, 0.0]


class TestHessian:
    @pytest.mark.parametrize("classes", [2, 4])
    def test_is_that_of_the_maximum(self, classes: int) -> None:
        rng = np.random.default_rng(16)
        rows, source = rng.dirichlet(np.ones(classes), 300), rng.dirichlet(np.full(classes, 5.0))
        result = solve(rows, source)
        ratios = rows / source / (rows / source @ result.prevalence)[:, None]
        assert result.hessian is not None
        np.testing.assert_allclose(result.hessian, ratios.T @ ratios / len(rows), rtol=3e-3)


class TestOtherEntrances:
    @pytest.mark.parametrize(
        ("classes", "rows"),
        [(3, 1000), (20, 2000), (20, 4000), (50, 1000), (100, 1000), (50, 3000)],
    )
    def test_a_start_that_is_good_enough(self, classes: int, rows: int) -> None:
        """Few rows with their Hessian, one block without, and several blocks."""
        rng = np.random.default_rng([classes, rows])
        posteriors, source = (
            rng.dirichlet(np.full(classes, 0.2), rows),
            np.full(classes, 1 / classes),
        )
        likelihood = Likelihood.of(posteriors, source)
        top = mle(likelihood).prevalence
        start = top * np.exp(1e-3 * rng.normal(size=classes))
        start /= start.sum()
        enough = 2 * float(likelihood.multipliers(start).max() - 1)
        for tolerance in (enough, 1.0):
            result = mle(likelihood, tolerance, start=start)
            assert result.status == "converged"
            assert likelihood.multipliers(result.prevalence).max() - 1 <= tolerance
            assert result.prevalence.sum() == pytest.approx(1, abs=1e-12)

    @pytest.mark.parametrize("classes", [2, 3, 8])
    @pytest.mark.parametrize("factor", [1e-9, 0.3, 7.0, 1e9])
    def test_tilted_priors_need_not_sum_to_one(self, classes: int, factor: float) -> None:
        rng = np.random.default_rng(classes)
        posteriors, source = rng.dirichlet(np.ones(classes), 50), np.full(classes, 1 / classes)
        tilt = np.ones(classes)
        tilt[1] = factor
        tilted = Likelihood.of(posteriors, source).under(source * tilt)
        for tolerance in (None, 1e-3, 1e3):
            result = mle(tilted, tolerance)
            assert result.prevalence.sum() == pytest.approx(1, abs=1e-12)
            assert (result.prevalence >= 0).all()
        priors = source * tilt / float((source * tilt).sum())
        assert_maximum(mle(tilted), posteriors, priors)
        assert mle(tilted).gain == pytest.approx(solve(posteriors, priors).gain, abs=1e-8)

    @pytest.mark.parametrize("count", [1, 50, 100, 649, 1000, 5000])
    @pytest.mark.parametrize("others", [1e6, 1e9])
    def test_an_output_that_is_hardly_ever_predicted(self, count: int, others: float) -> None:
        """A share too large by a ten thousandth leaves no gap, and must not pass for rounding."""
        rows = np.array([[1, 0, 0.3], [0, 1, 0]]) / [[1.3], [1.0]]
        result = solve(rows, np.full(3, 1 / 3), np.array([others, count]))
        share = count / (count + others)
        # 2N(ℓ̂ − ℓ) is about count times the square of the relative error, and promised to 0.002.
        assert result.prevalence[1] == pytest.approx(share, rel=(2e-3 / count) ** 0.5)

    def test_no_row_says_anything(self) -> None:
        likelihood = Likelihood.of(np.array([[1.0, 0.0, 0.0]]), np.array([0.0, 0.4, 0.6]))
        priors = np.array([0.0, 0.5, 0.5])
        assert likelihood.gain(priors) == 0
        np.testing.assert_array_equal(likelihood.multipliers(priors), 0)
        np.testing.assert_array_equal(likelihood.gains_along(priors, priors, [1.0]), 0)


class TestIndependentRoute:
    @pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
    def test_two_hundred_problems(self, method: str) -> None:
        problems = 180 if method == "SLSQP" else 20
        for seed in range(problems):
            rng = np.random.default_rng([seed, problems])
            classes, rows = int(rng.integers(2, 6)), int(rng.integers(2, 40))
            posteriors = rng.dirichlet(np.full(classes, 0.7), rows)
            source = rng.dirichlet(np.full(classes, 4.0))
            result = solve(posteriors, source)
            best = peer(posteriors, source, method)
            assert best - 1e-12 <= result.gain <= best + 1e-8


def peer(posteriors: Floats, source: Floats, method: str) -> float:
    """The gain that a general-purpose solver finds, polished by restarts."""
    ratios = posteriors / source

    def loss(p: Floats) -> float:
        return -float(np.log(np.maximum(ratios @ p, 1e-300)).mean())

    def slope(p: Floats) -> Floats:
        downhill: Floats = -(ratios / np.maximum(ratios @ p, 1e-300)[:, None]).mean(axis=0)
        return downhill

    def curvature(p: Floats) -> Floats:
        tilted = ratios / np.maximum(ratios @ p, 1e-300)[:, None]
        matrix: Floats = tilted.T @ tilted / len(ratios)
        return matrix

    options: dict[str, dict[str, float]] = {
        "SLSQP": {"ftol": 1e-16, "maxiter": 1000},
        "trust-constr": {"gtol": 1e-10, "xtol": 1e-12, "barrier_tol": 1e-10, "maxiter": 1000},
    }
    p = source
    for step in (method, "SLSQP", "SLSQP"):
        found = minimize(
            loss,
            np.maximum(p, 1e-9),
            jac=slope,
            hess=curvature if step == "trust-constr" else None,
            method=step,
            bounds=[(0, 1)] * len(source),
            constraints=LinearConstraint(np.ones((1, len(source))), 1, 1),
            options=options[step],
        )
        p = np.maximum(found.x, 0)
        p = p / p.sum()
    return -loss(p)


class TestInvariances:
    @given(st.data())
    @settings(deadline=None)
    def test_order_duplication_and_weights(self, data: st.DataObject) -> None:
        classes = data.draw(st.integers(2, 4))
        posteriors = data.draw(posterior_rows(classes))
        source = data.draw(simplex(classes, smallest=0.05))
        rows = np.array(data.draw(st.permutations(range(len(posteriors)))))
        columns = np.array(data.draw(st.permutations(range(classes))))
        plain = solve(posteriors, source)
        rearranged = solve(posteriors[rows][:, columns], source[columns])
        assert rearranged.gain == pytest.approx(plain.gain, abs=2e-8)
        twice = solve(np.repeat(posteriors, 2, axis=0), source)
        assert twice.gain == pytest.approx(plain.gain, abs=2e-8)
        weighted = solve(posteriors, source, np.full(len(posteriors), 2.0))
        assert weighted.gain == pytest.approx(twice.gain, abs=2e-8)

    def test_the_estimate_itself_where_it_is_determined(self) -> None:
        rng = np.random.default_rng(18)
        posteriors, source = rng.dirichlet(np.ones(4), 300), np.array([0.4, 0.3, 0.2, 0.1])
        plain = solve(posteriors, source).prevalence
        order = rng.permutation(4)
        np.testing.assert_allclose(
            solve(rng.permutation(posteriors)[:, order], source[order]).prevalence,
            plain[order],
            atol=1e-6,
        )
        counts = rng.integers(1, 4, 300)
        np.testing.assert_allclose(
            solve(posteriors, source, counts.astype(np.float64)).prevalence,
            solve(np.repeat(posteriors, counts, axis=0), source).prevalence,
            atol=1e-6,
        )


class TestWhatComesIn:
    SOURCE = np.array([0.5, 0.3, 0.2])
    ROWS = gaussian(19, 70_000, np.array([0.0, 1.0, 2.0]), SOURCE, np.array([0.1, 0.2, 0.7]))

    @pytest.mark.parametrize("kind", [np.float16, np.float32])
    @pytest.mark.parametrize("classes", [2, 3])
    def test_smaller_floats(self, kind: type[np.floating], classes: int) -> None:
        rows = self.ROWS[:, :classes].astype(kind)
        source = self.SOURCE[:classes] / self.SOURCE[:classes].sum()
        cast = solve(rows.astype(np.float64), source)
        np.testing.assert_allclose(solve(rows, source).prevalence, cast.prevalence, atol=1e-8)

    def test_fortran_order(self) -> None:
        result = solve(np.asfortranarray(self.ROWS), self.SOURCE)
        np.testing.assert_allclose(
            result.prevalence, solve(self.ROWS, self.SOURCE).prevalence, atol=1e-7
        )

    @pytest.mark.parametrize("classes", [2, 3])
    def test_chunks(self, classes: int) -> None:
        rows, source = self.ROWS[:, :classes].copy(), self.SOURCE[:classes]
        source = source / source.sum()
        whole = solve(rows, source)
        parts = mle(Likelihood.of(np.array_split(rows, 7), source))
        assert_maximum(parts, rows, source)
        np.testing.assert_allclose(parts.prevalence, whole.prevalence, atol=1e-7)

    def test_chunks_larger_than_memory(self) -> None:
        class Endless:
            def __iter__(self) -> Iterator[Floats]:
                for _ in range(60):
                    yield part

        part = self.ROWS[:50_000]
        tracemalloc.start()
        result = mle(Likelihood.of(Endless(), self.SOURCE))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 10e6
        np.testing.assert_allclose(
            result.prevalence, solve(part, self.SOURCE).prevalence, atol=1e-6
        )

    @pytest.mark.parametrize("count", [500, 70_000])
    def test_calibration_on_the_way(self, count: int) -> None:
        calibration = Scaling("bcts", np.full(3, 1.3), np.array([0.2, -0.3, 0.1]), 1e-300)
        rows = self.ROWS[:count]
        inside = mle(Likelihood.of(rows, self.SOURCE, None, calibration))
        before = solve(calibration.apply(rows), self.SOURCE)
        np.testing.assert_allclose(inside.prevalence, before.prevalence, atol=1e-7)

    @pytest.mark.parametrize("classes", [2, 3])
    def test_memory_stays_small(self, classes: int) -> None:
        rows = np.tile(self.ROWS[:, :classes], (20, 1)).astype(np.float32)
        source = self.SOURCE[:classes] / self.SOURCE[:classes].sum()
        tracemalloc.start()
        result = mle(Likelihood.of(rows, source))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert result.status == "converged"
        assert peak < 10e6 < rows.nbytes

    def test_counts_go_through_the_confusion_matrix(self) -> None:
        conditional = np.array([[0.9, 0.2], [0.1, 0.8]])
        likelihood = Likelihood.of_outputs(conditional, np.full(2, 0.5), np.array([480.0, 520.0]))
        np.testing.assert_allclose(
            conditional @ mle(likelihood).prevalence, [0.48, 0.52], atol=1e-9
        )
