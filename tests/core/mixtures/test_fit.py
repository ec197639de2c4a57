"""K regressions from labelled rows, against least squares, simulation and properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.errors import InvalidInput
from app.core.mixtures.design import design
from app.core.mixtures.fit import fit
from app.core.mixtures.mixture import check_mixture, log_density
from tests.golden import GOLDEN


def two_curves(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    x = random.uniform(-3, 3, size)
    first = random.random(size) < 0.4
    y = np.where(first, 3 - 2 * x**2, -3 + 0.5 * x**2)
    return x, y + np.where(first, 1, 0.75) * random.normal(size=size)


def test_one_component_is_least_squares() -> None:
    random = np.random.default_rng(1)
    x, y = random.normal(size=(60, 3)), random.normal(size=60)
    fitted = fit(x, y, 1)
    rows = design(x)
    expected, squares, *_ = np.linalg.lstsq(rows, y, rcond=None)
    assert fitted.mixture.coefficients[0] == pytest.approx(expected, abs=1e-12)
    assert fitted.mixture.sigmas[0] ** 2 == pytest.approx(squares[0] / 60)
    assert fitted.icl == pytest.approx(fitted.bic)


def test_the_single_regression_has_its_bic_in_units_of_the_log_likelihood() -> None:
    golden = GOLDEN["A05_bic_units"]
    size, mse, terms = golden["inputs"]["n"], golden["inputs"]["mse"], 3
    random = np.random.default_rng(2)
    x = random.normal(size=(size, terms - 1))
    noise = random.normal(size=size)
    rows = design(x)
    noise -= rows @ np.linalg.lstsq(rows, noise, rcond=None)[0]
    fitted = fit(x, noise * np.sqrt(mse / np.mean(noise**2)), 1)
    assert fitted.parameters == golden["inputs"]["nu"]
    assert fitted.bic == pytest.approx(golden["expected"]["bic_correct"], abs=golden["tolerance"])


def test_bic_finds_the_two_curves_and_their_numbers() -> None:
    x, y = two_curves(1000, 1)
    fitted = fit(x, y, (1, 3), degree=2, seed=4)
    order = np.array([1, 0])
    assert fitted.mixture.components == 2
    assert [k for k, _ in fitted.table] == [1, 2, 3]
    assert fitted.mixture.proportions[order] == pytest.approx([0.4, 0.6], abs=0.05)
    assert fitted.mixture.coefficients[order[0]] == pytest.approx([3, 0, -2], abs=0.25)
    assert fitted.mixture.sigmas[order] == pytest.approx([1, 0.75], abs=0.1)
    assert fitted.agreed >= 5
    assert fitted.status == "converged"
    assert not fitted.warnings
    assert fitted.icl >= fitted.bic


def test_the_likelihood_is_the_mixtures_and_never_falls() -> None:
    x, y = two_curves(150, 2)
    fitted = fit(x, y, 3, degree=2, seed=5)
    assert (np.diff(fitted.trace) >= -1e-9).all()
    rows = fitted.mixture.design(x)
    direct = log_density(fitted.mixture.log_joint(rows, y)).sum()
    assert fitted.log_likelihood == pytest.approx(direct, rel=1e-12)


def test_a_seed_repeats_the_fit() -> None:
    x, y = two_curves(120, 3)
    first, second = (fit(x, y, 2, degree=2, seed=6) for _ in range(2))
    assert (first.mixture.coefficients == second.mixture.coefficients).all()


def test_a_component_through_its_rows_is_reported() -> None:
    x = np.linspace(0, 1, 12)
    fitted = fit(x, np.where(np.arange(12) % 2, 1 + x, -1 - x), 2)
    assert "variance-floor" in [warning.code for warning in fitted.warnings]
    assert np.isfinite(fitted.log_likelihood)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 100), scale=st.floats(1e-3, 1e3), shift=st.floats(-50, 50))
def test_units_change_the_coefficients_and_nothing_else(
    seed: int, scale: float, shift: float
) -> None:
    x, y = two_curves(80, seed)
    here = fit(x, y, 2, degree=2, starts=2)
    there = fit(x, scale * (y + shift), 2, degree=2, starts=2)
    assert there.log_likelihood == pytest.approx(here.log_likelihood - 80 * np.log(scale), abs=1e-4)
    assert there.mixture.sigmas == pytest.approx(here.mixture.sigmas * scale, rel=1e-3)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 100))
def test_the_order_of_the_rows_does_not_matter_to_one_component(seed: int) -> None:
    x, y = two_curves(40, seed)
    order = np.random.default_rng(seed).permutation(40)
    here, there = fit(x, y, 1), fit(x[order], y[order], 1)
    assert there.mixture.coefficients == pytest.approx(here.mixture.coefficients, rel=1e-9)


@pytest.mark.parametrize(
    ("x", "y", "components", "degree", "pointer"),
    [
        ([[1.0, 2.0]] * 9, [0.0] * 9, 1, 2, "/degree"),
        ([1.0, float("nan")], [0.0, 1.0], 1, 1, "/x"),
        ([1.0, 2.0, 3.0], [0.0, 1.0], 1, 1, "/y"),
        ([1.0, 2.0, 3.0], [0.0, 1.0, 2.0], 2, 1, "/x"),
        ([1.0, 2.0, 3.0], [0.0, 1.0, 2.0], 0, 1, "/components"),
    ],
)
def test_what_cannot_be_fitted_says_where(
    x: object, y: object, components: int, degree: int, pointer: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        fit(x, y, components, degree)  # type: ignore[arg-type]
    assert refused.value.faults[0].pointer == pointer


def test_parameters_that_are_no_mixture_are_each_named() -> None:
    with pytest.raises(InvalidInput) as refused:
        check_mixture([0.5, 0.6], [[1.0, 2.0]], [1.0, -1.0])
    assert [fault.pointer for fault in refused.value.faults] == [
        "/proportions",
        "/coefficients",
        "/sigmas",
    ]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_curves_that_cross_are_told_apart(seed: int) -> None:
    random = np.random.default_rng([9, seed])
    truth = check_mixture([0.5, 0.5], [[9.0, 0.0, -6.0], [-9.0, 0.0, 1.5]], [3.0, 2.25], degree=2)
    x, z = random.uniform(0, 3, 200), random.integers(2, size=200)
    y = truth.means(x)[np.arange(200), z] + truth.sigmas[z] * random.normal(size=200)
    fitted = fit(x, y, 2, degree=2, seed=seed)
    assert fitted.log_likelihood > log_density(truth.log_joint(truth.design(x), y)).sum()
