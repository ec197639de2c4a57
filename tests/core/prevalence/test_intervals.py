import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from scipy.stats import chi2, norm

from app.core.arrays import Floats
from app.core.prevalence.calibration import Scaling
from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.replicates import Intervals
from app.core.prevalence.uncertainty.covariance import Of, SourceError, covariance
from app.core.prevalence.uncertainty.intervals import Kind, likelihood_intervals
from benchmarks.coverage import SETTINGS, coverage

LIMIT = float(chi2.ppf(0.95, 1))


def batch(seed: int, rows: int, shares: list[float], distance: float) -> tuple[Floats, Floats]:
    """Posteriors of normal classes, and their even source priors."""
    rng = np.random.default_rng(seed)
    classes = len(shares)
    means = np.eye(classes) * distance
    x = means[rng.choice(classes, rows, p=shares)] + rng.normal(size=(rows, classes))
    densities = np.exp(x @ means.T)
    return densities / densities.sum(axis=1, keepdims=True), np.full(classes, 1 / classes)


def intervals(posteriors: Floats, source: Floats, kind: Kind = "auto") -> Intervals:
    likelihood = Likelihood.of(posteriors, source)
    return likelihood_intervals(likelihood, mle(likelihood), kind=kind)


def profile_by_slsqp(posteriors: Floats, source: Floats, k: int, u: float) -> float:
    """2N times what the best p with p_k = u lacks, by a general optimiser."""
    ratios = posteriors / source
    classes = len(source)

    def loss(p: Floats) -> float:
        return -float(np.log(np.maximum(ratios @ p, 1e-300)).sum())

    start = np.full(classes, (1 - u) / (classes - 1))
    start[k] = u
    fixed = {"type": "eq", "fun": lambda p: p[k] - u}
    whole = {"type": "eq", "fun": lambda p: p.sum() - 1}
    options = {"ftol": 1e-13, "maxiter": 1000}
    bounds = [(0.0, 1.0)] * classes
    best = minimize(
        loss,
        np.full(classes, 1 / classes),
        method="SLSQP",
        bounds=bounds,
        constraints=[whole],
        options=options,
    ).fun
    there = minimize(
        loss, start, method="SLSQP", bounds=bounds, constraints=[whole, fixed], options=options
    ).fun
    return float(2 * (there - best))


class TestProfile:
    @pytest.mark.parametrize("shares", [[0.6, 0.3, 0.1], [0.7, 0.3, 0.0], [0.5, 0.5, 0.0]])
    def test_ends_lie_on_the_profile(self, shares: list[float]) -> None:
        posteriors, source = batch(1, 150, shares, 1.2)
        found = intervals(posteriors, source, "profile")
        top = mle(Likelihood.of(posteriors, source)).prevalence
        for k in range(3):
            if top[k] > 0:
                deviance = profile_by_slsqp(posteriors, source, k, found.upper[k])
                assert deviance == pytest.approx(LIMIT, rel=0.01)
            if found.lower[k] > 0:
                deviance = profile_by_slsqp(posteriors, source, k, found.lower[k])
                assert deviance == pytest.approx(LIMIT, rel=0.01)
            else:
                assert profile_by_slsqp(posteriors, source, k, 0.0) <= LIMIT * 1.01

    def test_two_classes_against_a_root_finder(self) -> None:
        posteriors, source = batch(2, 80, [0.9, 0.1], 1.0)
        found = intervals(posteriors, source, "profile")
        ratios = posteriors / source
        top = float(mle(Likelihood.of(posteriors, source)).prevalence[1])

        def lack(u: float) -> float:
            rows = ratios @ np.array([[1 - u, 1 - top], [u, top]])
            return float(-2 * np.log(rows[:, 0] / rows[:, 1]).sum()) - LIMIT

        assert found.upper[1] == pytest.approx(float(brentq(lack, top, 0.999)), rel=2e-3)
        assert found.lower[0] == pytest.approx(1 - found.upper[1], abs=1e-3)

    @pytest.mark.parametrize("classes", [2, 3, 5])
    def test_none_of_n_gets_the_exact_bound(self, classes: int) -> None:
        posteriors = np.zeros((200, classes))
        posteriors[:, 0] = 1.0
        found = intervals(posteriors, np.full(classes, 1 / classes))
        exact = 1 - 0.025 ** (1 / 200)
        np.testing.assert_allclose(found.upper[1:], exact, rtol=2e-3)
        np.testing.assert_array_equal(found.lower[1:], 0)
        assert found.upper[0] == 1
        assert found.lower[0] == pytest.approx(1 - exact, rel=1e-3)

    def test_twins_may_be_anything_up_to_their_sum(self) -> None:
        pair, _ = batch(3, 300, [0.5, 0.5], 2.0)
        split = np.column_stack([pair[:, 0], pair[:, 1] / 2, pair[:, 1] / 2])
        source = np.array([0.5, 0.25, 0.25])
        found = intervals(split, source)
        both = intervals(pair, np.array([0.5, 0.5]))
        np.testing.assert_array_equal(found.lower[1:], 0)
        np.testing.assert_allclose(found.upper[1:], both.upper[1], rtol=5e-3)


class TestWald:
    def test_one_hot_rows_give_the_binomial_log_odds_interval(self) -> None:
        posteriors = np.eye(3)[[0] * 50 + [1] * 30 + [2] * 20]
        found = intervals(posteriors, np.full(3, 1 / 3))
        for k, count in enumerate((50, 30, 20)):
            p = count / 100
            reach = norm.ppf(0.975) / np.sqrt(100 * p * (1 - p))
            odds = p / (1 - p) * np.exp([-reach, reach])
            np.testing.assert_allclose(
                [found.lower[k], found.upper[k]], odds / (1 + odds), rtol=1e-6
            )

    def test_realised_shares_of_one_hot_rows_are_certain(self) -> None:
        likelihood = Likelihood.of(np.eye(3)[[0] * 50 + [1] * 30 + [2] * 20], np.full(3, 1 / 3))
        found = likelihood_intervals(likelihood, mle(likelihood), of="batch")
        np.testing.assert_allclose(found.upper - found.lower, 0, atol=1e-5)

    def test_profile_and_wald_agree_on_long_batches(self) -> None:
        posteriors, source = batch(4, 20_000, [0.5, 0.3, 0.2], 1.5)
        by_wald, by_profile = (intervals(posteriors, source, kind) for kind in ("wald", "profile"))
        np.testing.assert_allclose(by_wald.lower, by_profile.lower, atol=3e-4)
        np.testing.assert_allclose(by_wald.upper, by_profile.upper, atol=3e-4)


class TestInvariances:
    def test_duplicating_the_batch_halves_the_covariance(self) -> None:
        posteriors, source = batch(5, 200, [0.5, 0.3, 0.2], 1.5)
        found = []
        for rows in (posteriors, np.repeat(posteriors, 2, axis=0)):
            likelihood = Likelihood.of(rows, source)
            top = mle(likelihood)
            hessian, _ = likelihood.hessian(top.prevalence)
            found.append(covariance(likelihood, top.prevalence, hessian, top.prevalence > 0).target)
        np.testing.assert_allclose(found[1], found[0] / 2, rtol=1e-6)

    def test_order_of_rows_and_classes(self) -> None:
        posteriors, source = batch(6, 120, [0.6, 0.35, 0.05], 1.2)
        plain = intervals(posteriors, source)
        order = np.array([2, 0, 1])
        moved = intervals(posteriors[::-1][:, order], source[order])
        np.testing.assert_allclose(moved.lower, plain.lower[order], atol=1e-4)
        np.testing.assert_allclose(moved.upper, plain.upper[order], atol=1e-4)


class TestOneShare:
    """Of two classes there is one share, and one interval, told twice."""

    @given(st.integers(0, 10_000), st.sampled_from(["auto", "wald", "profile"]), st.data())
    @settings(max_examples=60, deadline=None)
    def test_ends_mirror_whichever_class_is_named_first(
        self, seed: int, kind: Kind, data: st.DataObject
    ) -> None:
        rng = np.random.default_rng(seed)
        shares = data.draw(st.sampled_from([[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]]))
        rows = data.draw(st.sampled_from([1, 5, 40, 400]))
        distance = data.draw(st.sampled_from([0.0, 0.5, 2.0, 6.0]))
        posteriors, source = batch(seed, rows, shares, distance)
        level = data.draw(st.sampled_from([0.5, 0.9, 0.95, 0.999]))
        of: Of = data.draw(st.sampled_from(["population", "batch"]))
        root = rng.normal(size=(3, 2)) * data.draw(st.sampled_from([0.0, 0.05, 0.5]))
        found = []
        for order in ([0, 1], [1, 0]):
            moved = root[[0, *(1 + k for k in order)]]
            error = SourceError(moved @ moved.T, Scaling.identity(2))
            likelihood = Likelihood.of(posteriors[:, order], source[order])
            top = mle(likelihood)
            ends = likelihood_intervals(likelihood, top, level, of, kind, error)
            assert (ends.lower <= top.prevalence).all()
            assert (top.prevalence <= ends.upper).all()
            np.testing.assert_allclose(ends.lower, 1 - ends.upper[::-1], rtol=0, atol=1e-9)
            found.append(ends.lower[order])
        # Either order may start the search of an end, which is found to 0.002 of its deviance.
        np.testing.assert_allclose(found[0], found[1], rtol=2e-3, atol=2e-3)

    @pytest.mark.parametrize(("seed", "shares"), [(4, [0.5, 0.5]), (9, [0.9, 0.1])])
    def test_a_pivot_that_is_rounding_decides_nothing(self, seed: int, shares: list[float]) -> None:
        """One row has a Hessian of rank one, whose second pivot is a few ulps of either sign."""
        posteriors, source = batch(seed, 1, shares, 0.5)
        error = SourceError(0.01 * np.eye(3), Scaling.identity(2))
        lower = []
        for order in ([0, 1], [1, 0]):
            likelihood = Likelihood.of(posteriors[:, order], source[order])
            ends = likelihood_intervals(likelihood, mle(likelihood), 0.5, source=error)
            lower.append(ends.lower[order])
        np.testing.assert_allclose(lower[0], lower[1], rtol=2e-3, atol=2e-3)
        assert max(lower[0]) > 0.05

    def test_a_class_at_one_is_as_uncertain_as_the_one_at_zero(self) -> None:
        """The source's error widens both ends; of more classes that of the nearest one counts."""
        root = np.random.default_rng(0).normal(size=(4, 4)) * 0.3
        for rows in ([0.7, 0.3], [0.5, 0.3, 0.2]):
            classes = len(rows)
            likelihood = Likelihood.of(np.tile(rows, (30, 1)), np.full(classes, 1 / classes))
            top = mle(likelihood)
            assert top.prevalence[0] == 1
            part = root[: 1 + classes]
            error = SourceError(part @ part.T, Scaling.identity(classes))
            found = likelihood_intervals(likelihood, top, source=error)
            exact = likelihood_intervals(likelihood, top)
            assert 1 - found.lower[0] > 1.1 * (1 - exact.lower[0])
            assert 1 - found.lower[0] >= found.upper[1] * (1 - 2e-3)

    def test_a_third_class_that_the_source_lacks_changes_nothing(self) -> None:
        posteriors, source = batch(9, 60, [0.9, 0.1], 1.0)
        two = intervals(posteriors, source)
        three = intervals(np.insert(posteriors, 1, 0.0, axis=1), np.array([0.5, 0.0, 0.5]))
        np.testing.assert_allclose(three.lower, np.insert(two.lower, 1, 0.0), rtol=1e-12)
        np.testing.assert_allclose(three.upper, np.insert(two.upper, 1, 0.0), rtol=1e-12)


class TestDegenerate:
    def test_many_classes_and_few_rows_say_next_to_nothing(self) -> None:
        """Some variances are so large that a count of their size is hardly one at all."""
        rows = np.random.default_rng(0).dirichlet(np.full(400, 0.05), 30)
        likelihood = Likelihood.of(rows, np.full(400, 1 / 400))
        top = mle(likelihood)
        found = likelihood_intervals(likelihood, top)
        assert (found.lower >= 0).all()
        assert (found.lower <= top.prevalence).all()
        assert (found.upper >= top.prevalence).all()

    def test_variances_of_nothing_and_beyond_all_numbers(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The expansion about a share that is certain, or of which nothing at all is known."""
        monkeypatch.setattr("app.core.prevalence.uncertainty.intervals.MOST_WORK", 0)
        posteriors = np.eye(3)[[0] * 50 + [1] * 30 + [2] * 2]
        likelihood = Likelihood.of(posteriors, np.full(3, 1 / 3))
        top = mle(likelihood)
        certain = likelihood_intervals(likelihood, top, of="batch", kind="profile")
        np.testing.assert_allclose(certain.upper - certain.lower, 0, atol=1e-6)
        posteriors, source = batch(10, 80, [0.5, 0.3, 0.2], 1.5)
        likelihood = Likelihood.of(posteriors, source)
        endless = SourceError(np.eye(4) * 1e300, Scaling.identity(3))
        unknown = likelihood_intervals(likelihood, mle(likelihood), kind="profile", source=endless)
        assert (unknown.lower <= 1e-6).all()
        np.testing.assert_array_equal(unknown.upper, 1)

    def test_one_class(self) -> None:
        found = intervals(np.ones((4, 1)), np.ones(1))
        assert (found.lower[0], found.upper[0]) == (1, 1)

    def test_no_information(self) -> None:
        found = intervals(np.tile([0.4, 0.6], (30, 1)), np.array([0.4, 0.6]))
        np.testing.assert_array_equal(found.lower, 0)
        np.testing.assert_array_equal(found.upper, 1)

    def test_one_row(self) -> None:
        found = intervals(np.array([[0.3, 0.7]]), np.array([0.5, 0.5]))
        assert (found.lower >= 0).all()
        assert (found.upper <= 1).all()
        assert found.upper[0] > 0.9

    def test_large_problems_get_the_expansion(self, monkeypatch: pytest.MonkeyPatch) -> None:
        posteriors, source = batch(7, 50_000, [0.6, 0.399, 0.001, 0.0], 2.0)
        likelihood = Likelihood.of(posteriors, source)
        top = mle(likelihood)
        exact = likelihood_intervals(likelihood, top)
        monkeypatch.setattr("app.core.prevalence.uncertainty.intervals.MOST_WORK", 0)
        found = likelihood_intervals(likelihood, top)
        assert found.approximate
        assert not exact.approximate
        np.testing.assert_allclose(found.upper, exact.upper, rtol=0.1)
        np.testing.assert_allclose(found.lower, exact.lower, atol=2e-4)


@pytest.mark.parametrize(
    "name", ["interior, three classes", "estimated source, strong shift", "at the boundary"]
)
def test_coverage_in_small(name: str) -> None:
    """A seeded small version of the benchmark: 400 runs, bounds of about three standard errors."""
    setting = next(s for s in SETTINGS if s.name == name)
    rate, _ = coverage(setting, "population", 0.95, runs=400, seed=3)
    assert rate >= 0.915
    if "boundary" not in name:
        assert rate <= 0.985
