"""Links between a source and a target: golden values, brute force, the promise never to fall."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from app.core.errors import InvalidInput
from app.core.mixtures.adapt import adapt, prepare
from app.core.mixtures.cross import LARGEST
from app.core.mixtures.em import beginning, run
from app.core.mixtures.links import LINKS, NAMES, link_named, structure
from app.core.mixtures.mixture import RegressionMixture, check_mixture, log_density, log_joint
from app.core.mixtures.mstep import maximise
from tests.golden import GOLDEN


def source_of(inputs: dict[str, Any]) -> RegressionMixture:
    count = len(inputs["beta_source"])
    return check_mixture(
        inputs.get("pi", np.full(count, 1 / count)), inputs["beta_source"], inputs["sigma_source"]
    )


@pytest.mark.parametrize("name", ["M2a", "M2b", "M2c", "M2d", "M3a", "M3b", "M3c"])
def test_one_step_finds_the_golden_link(name: str) -> None:
    golden = GOLDEN[f"A01_mstep_{name}"]
    inputs = golden["inputs"]
    rows, y = np.array(inputs["x"]), np.array(inputs["y"])
    source, whole = prepare(source_of(inputs), rows, y, name)
    t = np.array(inputs["responsibilities"])
    state = maximise(whole, t[None], beginning(whole, source.proportions, 1))
    expected = list(golden["expected"]["link"].values())
    assert state.theta[0].ravel() == pytest.approx(expected, abs=golden["tolerance"])
    joint = log_joint(y, whole.means(state.theta), state.sigmas, np.ones((1, 2)))[0]
    q = golden["expected"]["Q_without_pi_term"]
    assert (t * joint).sum() == pytest.approx(q, abs=golden["tolerance"])


def test_the_printed_alternation_for_two_numbers_creeps_to_the_joint_maximum() -> None:
    golden = GOLDEN["A02_gem_pass_M2d"]
    inputs = golden["inputs"]
    rows, y, t = (np.array(inputs[key]) for key in ("x", "y", "responsibilities"))
    betas, sigmas = np.array(inputs["beta_source"]), np.array(inputs["sigma_source"])
    weights, b0, u = t / sigmas**2, betas[:, 0], rows[:, 1:] @ betas[:, 1:].T
    level = slope = 1.0
    passes = []
    for _ in range(60):
        level = float((weights * b0 * (y[:, None] - slope * u)).sum() / (weights * b0**2).sum())
        r = y[:, None] - level * b0
        cross, squares = (weights * u * r).sum(), (weights * r * r).sum()
        slope = float((-cross + np.sqrt(cross**2 + 4 * len(y) * squares)) / (2 * len(y)))
        passes.append((level, slope))
    expected = golden["expected"]
    assert passes[0] == pytest.approx((expected["lambda_0"], expected["lambda_1"]), abs=1e-9)
    source, whole = prepare(source_of(inputs), rows, y, "M2d")
    joint = maximise(whole, t[None], beginning(whole, source.proportions, 1)).theta[0, 0]
    assert joint == pytest.approx(passes[-1], abs=1e-9)


@pytest.mark.parametrize("name", ["M4a", "M4b"])
def test_given_sigma_the_link_of_m4_is_weighted_least_squares(name: str) -> None:
    golden = GOLDEN[f"A03_mstep_{name}"]
    inputs, expected = golden["inputs"], golden["expected"]
    rows, y = np.array(inputs["x"]), np.array(inputs["y"])
    source, whole = prepare(source_of(inputs), rows, y, name)
    t = np.array(inputs["responsibilities"])
    state = maximise(whole, t[None], beginning(whole, source.proportions, 1))
    links = list(expected["lambda_exact_given_sigma"].values())
    assert state.theta[0, 0] == pytest.approx(links, abs=golden["tolerance"])
    assert state.sigmas[0] == pytest.approx(expected["sigma_star_given_that_lambda"], abs=1e-7)


def test_parameters_are_counted_as_in_the_table() -> None:
    golden = GOLDEN["A04_parameter_counts"]
    source = check_mixture([0.5, 0.5], [[1.0, 2.0, -0.5], [-0.8, -1.5, 1.2]], [0.6, 0.9])
    rows = np.random.default_rng(0).normal(size=(9, 3))
    counts = {name: structure(LINKS[name], source, rows).parameters for name in LINKS}
    for name, expected in golden["expected"].items():
        if name in counts:
            assert (counts[name], counts[f"p{name}"]) == (expected, expected + 1), name
    single = adapt(source, rows[:, 1:], rows[:, 0], "single").chosen
    assert single.parameters == golden["expected"]["single_regression"]
    assert len(NAMES) == 27


def test_the_likelihood_of_a_mixture_is_the_golden_one() -> None:
    golden = GOLDEN["A06_loglik_bic"]
    inputs, expected = golden["inputs"], golden["expected"]
    source = source_of(inputs)
    betas = source.coefficients * [1, 1.5, 1.5]
    scaled = RegressionMixture(source.proportions, betas, 1.5 * source.sigmas)
    joint = scaled.log_joint(np.array(inputs["x"]), np.array(inputs["y"]))
    value = log_density(joint).sum()
    assert value == pytest.approx(expected["loglik"], abs=1e-9)
    for name, key in (("M2a", "bic_pi_known"), ("pM2a", "bic_pi_estimated")):
        count = structure(LINKS[name], source, np.array(inputs["x"])).parameters
        assert -2 * value + count * np.log(6) == pytest.approx(expected[key], abs=1e-9)


@pytest.mark.parametrize("name", ["pM2a", "pM2b", "pM2c"])
def test_the_whole_fit_is_the_golden_maximum(name: str) -> None:
    golden = GOLDEN[f"A07_mle_{name}"]
    inputs, expected = golden["inputs"], golden["expected"]
    source = check_mixture([0.5, 0.5], inputs["beta_source"], inputs["sigma_source"], degree=2)
    fitted = adapt(source, inputs["x"], inputs["y"], name).chosen
    links = [value for values in fitted.links.values() for value in values]
    assert links == pytest.approx(expected["link"], abs=golden["tolerance"])
    assert fitted.mixture.proportions == pytest.approx(expected["pi"], abs=golden["tolerance"])
    assert fitted.log_likelihood == pytest.approx(expected["loglik"], abs=golden["tolerance"])
    assert fitted.bic == pytest.approx(expected["bic"], abs=2 * golden["tolerance"])
    assert fitted.status == "converged"


def test_a_component_through_one_row_makes_the_likelihood_as_large_as_you_like() -> None:
    golden, inputs = GOLDEN["A13_m3d_likelihood_unbounded"], GOLDEN["A07_mle_pM2a"]["inputs"]
    source = check_mixture([0.5, 0.5], inputs["beta_source"], inputs["sigma_source"], degree=2)
    rows, y = source.design(inputs["x"]), np.array(inputs["y"])
    slopes = rows[0, 1:] @ source.coefficients[0, 1:]
    for scale, expected in zip(
        golden["inputs"]["lambda_11"], golden["expected"]["loglik"], strict=True
    ):
        betas = source.coefficients * np.array([[scale], [2.0]])
        betas[0, 0] = y[0] - scale * slopes
        spike = RegressionMixture(np.full(2, 0.5), betas, source.sigmas * [scale, 2.0])
        value = log_density(spike.log_joint(rows, y)).sum()
        assert value == pytest.approx(expected, abs=golden["tolerance"])


def target(seed: int, size: int = 30, factor: float = 2.0) -> tuple[Any, ...]:
    random = np.random.default_rng(seed)
    source = check_mixture([0.4, 0.6], [[2.0, 1.5, -1.0], [-2.0, -0.5, 2.0]], [0.6, 0.9])
    x = random.normal(size=(size, 2))
    z = (random.random(size) < 0.6).astype(int)
    means = source.means(x)[np.arange(size), z]
    return source, x, factor * (means + source.sigmas[z] * random.normal(size=size))


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000))
def test_no_step_of_any_link_lowers_the_likelihood(seed: int) -> None:
    for fitted in adapt(*target(seed)).table:
        assert (np.diff(fitted.trace) >= -1e-8).all(), fitted.name
        assert fitted.log_likelihood == fitted.trace[-1]


def general_maximum(source: RegressionMixture, x: Any, y: Any, name: str, at: Any) -> float:
    """The likelihood of a link by a general optimiser, from the estimator's answer and near it."""
    _, whole = prepare(source, source.design(x), y, name)
    groups, width = at.shape[0], at.shape[1]
    free = whole.structure.link.sigma == "free"

    def loss(v: Any) -> float:
        theta = v[: groups * width].reshape(1, groups, width)
        sigmas = np.exp(v[groups * width :])[None] if free else source.sigmas[None]
        if whole.structure.link.sigma == "scaled":
            sigmas = np.maximum(theta[..., -1], 1e-9) * source.sigmas
        joint = log_joint(y, whole.means(theta), sigmas, source.proportions[None])
        return -float(log_density(joint).sum())

    first = [at.ravel()]
    if free:
        fitted = adapt(source, x, y, name).chosen
        first.append(np.log(fitted.mixture.sigmas))
    v = np.concatenate(first)
    options = {"maxiter": 3000}
    least = [minimize(loss, t, method="Nelder-Mead", options=options).fun for t in (v, 1.02 * v)]
    return -float(min(least))


@pytest.mark.parametrize("name", ["M2d", "M3a", "M3b", "M3c", "M3d", "M4a", "M4b", "additive"])
def test_a_general_optimiser_finds_nothing_better(name: str) -> None:
    source, x, y = target(7)
    fitted = adapt(source, x, y, name).chosen
    theta = np.array(list(fitted.links.values())).T
    maximum = general_maximum(source, x, y, name, theta)
    assert fitted.log_likelihood >= maximum - 1e-5


def test_a_scaled_population_is_recognised() -> None:
    fitted = adapt(*target(3, size=60))
    assert fitted.chosen.name in ("M2c", "pM2c")
    assert fitted.chosen.links["all"][0] == pytest.approx(2, abs=0.15)
    assert fitted.responsibilities.sum(axis=1) == pytest.approx(np.ones(60))
    assert [one.name for one in fitted.table] == list(NAMES)


def test_the_additive_link_is_m3d_where_the_intercepts_are_not_zero() -> None:
    source, x, y = target(11, size=60)
    additive, scaled = (adapt(source, x, y, name).chosen for name in ("additive", "M3d"))
    assert additive.log_likelihood == pytest.approx(scaled.log_likelihood, abs=1e-4)
    assert additive.mixture.coefficients == pytest.approx(scaled.mixture.coefficients, abs=1e-2)


def test_links_that_scale_nothing_stay_at_one_and_are_not_counted() -> None:
    source = check_mixture([0.5, 0.5], [[0.0, 0.0, -2.0], [-3.0, 0.0, 0.5]], [1.0, 0.75], degree=2)
    random = np.random.default_rng(5)
    x = random.uniform(-3, 3, 40)
    y = 2 * source.means(x)[np.arange(40), random.integers(2, size=40)] + random.normal(size=40)
    table = {one.name: one for one in adapt(source, x, y).table}
    assert table["M3b"].unidentified == ("intercept of component 1",)
    assert table["M3b"].links["intercept"][0] == 1
    assert (table["M3b"].parameters, table["M3d"].parameters) == (1, 3)
    assert table["M4b"].unidentified == ("slope 1",)
    assert table["M4b"].links["slope 1"] == (1.0,)
    assert (table["M4a"].parameters, table["M4b"].parameters) == (3, 4)
    assert [w.code for w in table["M4a"].warnings] == ["unidentified-link"]
    assert table["M2d"].unidentified == table["additive"].unidentified == ()


def test_a_mean_of_components_never_beats_least_squares_on_its_own_rows() -> None:
    table = adapt(*target(13)).table
    least = next(one.error for one in table if one.name == "single")
    assert all(one.error >= least * (1 - 1e-12) for one in table)
    assert any(one.oracle_error < least for one in table)


def test_few_rows_are_said_and_not_chosen() -> None:
    fitted = adapt(*target(17, size=5))
    flagged = {one.name for one in fitted.table if "few-rows" in {w.code for w in one.warnings}}
    assert {"M5", "pM5", "M4b"} <= flagged
    assert fitted.chosen.sound


def test_leaving_one_out_is_refitting_without_each_row() -> None:
    source, x, y = target(19, size=15)
    fitted = adapt(source, x, y, "pM2c", criterion="press").chosen
    press, density = 0.0, 0.0
    for i in range(15):
        kept = np.arange(15) != i
        without = adapt(source, x[kept], y[kept], "pM2c").chosen.mixture
        press += (y[i] - without.means(x[i : i + 1])[0] @ without.proportions) ** 2
        density += log_density(without.log_joint(without.design(x[i : i + 1]), y[i : i + 1]))[0]
    assert fitted.cross is not None
    assert fitted.cross.press == pytest.approx(press, rel=1e-3)
    assert fitted.cross.log_density == pytest.approx(density, rel=1e-3)


def test_press_of_one_regression_is_the_textbooks() -> None:
    source, x, y = target(23, size=20)
    fitted = adapt(source, x, y, "single", criterion="press").chosen
    rows = source.design(x)
    hat = rows @ np.linalg.pinv(rows)
    expected = (((y - hat @ y) / (1 - np.diag(hat))) ** 2).sum()
    assert fitted.cross is not None
    assert fitted.cross.press == pytest.approx(expected)
    assert fitted.criterion("press") == fitted.cross.press


def test_press_of_too_many_rows_is_refused_with_advice() -> None:
    source, x, y = target(29, size=LARGEST + 1)
    with pytest.raises(InvalidInput, match="use bic"):
        adapt(source, x, y, criterion="press")


def test_an_unknown_link_is_refused_with_the_names() -> None:
    with pytest.raises(InvalidInput, match="pM2a"):
        link_named("M9")


@pytest.mark.parametrize("name", LINKS)
def test_no_step_of_any_start_lowers_the_likelihood(name: str) -> None:
    source, x, y = target(31, size=20)
    source, whole = prepare(source, source.design(x), y, name)
    t = np.random.default_rng(1).dirichlet([0.3, 0.3], size=(12, 20))
    runs = run(whole, t, beginning(whole, source.proportions, 12))
    assert (np.diff(runs.trace, axis=0) >= -1e-8).all()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.floats(1e-3, 1e3))
def test_units_of_y_change_no_link(seed: int, scale: float) -> None:
    source, x, y = target(seed)
    other = RegressionMixture(
        source.proportions, scale * source.coefficients, scale * source.sigmas
    )
    for name in ("M2c", "pM2b", "M4b"):
        here, there = (adapt(s, x, v, name).chosen for s, v in ((source, y), (other, scale * y)))
        expected = here.log_likelihood - len(y) * np.log(scale)
        assert there.log_likelihood == pytest.approx(expected, abs=1e-3)
        for label, values in here.links.items():
            assert there.links[label] == pytest.approx(values, rel=1e-3, abs=1e-3)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000))
def test_neither_the_order_of_rows_nor_rows_twice_change_a_fixed_start(seed: int) -> None:
    source, x, y = target(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    here = adapt(source, x, y, "pM2c", starts=1).chosen
    mixed = adapt(source, x[order], y[order], "pM2c", starts=1).chosen
    twice = adapt(source, np.tile(x, (2, 1)), np.tile(y, 2), "pM2c", starts=1).chosen
    assert mixed.log_likelihood == pytest.approx(here.log_likelihood, abs=1e-6)
    assert twice.log_likelihood == pytest.approx(2 * here.log_likelihood, abs=1e-4)


@pytest.mark.parametrize("y", [np.zeros(6), np.full(6, 1e90), np.arange(6.0), np.full(6, 1e-90)])
def test_rows_that_leave_nothing_still_have_an_answer(y: Any) -> None:
    source = check_mixture([0.5, 0.5], [[1.0, 2.0], [-1.0, 0.5]], [1.0, 0.5])
    fitted = adapt(source, np.arange(6.0), y)
    assert all(np.isfinite(one.bic) for one in fitted.table)
    assert np.isfinite(fitted.responsibilities).all()


def test_one_row_of_the_target_is_enough_for_an_answer_with_its_doubts() -> None:
    source, x, y = target(37, size=1)
    fitted = adapt(source, x, y)
    assert fitted.chosen.sound
    assert {w.code for w in fitted.table[-1].warnings} >= {"few-rows"}


@pytest.mark.parametrize(
    ("x", "y"), [([["a"]], [1.0]), ([[1.0, 2.0], [1.0]], [1.0, 2.0]), ([], [])]
)
def test_what_are_no_rows_is_refused(x: Any, y: Any) -> None:
    with pytest.raises(InvalidInput):
        adapt(target(1)[0], x, y)
