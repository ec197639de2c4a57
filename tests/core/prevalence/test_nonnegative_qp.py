import numpy as np
import pytest
from scipy.optimize import nnls

from app.core.arrays import Floats, Mask
from app.core.prevalence.numerics import nonnegative_qp as module
from app.core.prevalence.numerics.nonnegative_qp import nonnegative_qp


def solve(H: Floats, b: Floats, centre: Floats, guess: Mask) -> Floats:
    y = nonnegative_qp(H, b, centre, guess)
    assert y is not None
    return y


RNG = np.random.default_rng(17)


def kuhn_tucker(H: Floats, b: Floats, y: Floats) -> float:
    """How far y is from y ≥ 0, H y ≥ b, y·(H y − b) = 0."""
    slope = H @ y - b
    return max(-float(y.min()), -float(slope.min()), abs(float(y @ slope)))


@pytest.mark.parametrize("classes", [1, 2, 5, 30, 200])
def test_satisfies_the_conditions_from_any_guess(classes: int) -> None:
    for _ in range(20):
        A = RNG.normal(size=(classes + 2, classes))
        H, b = A.T @ A, RNG.normal(size=classes)
        y = solve(H, b, np.zeros(classes), RNG.random(classes) < 0.5)
        assert kuhn_tucker(H, b, y) < 1e-7 * max(1.0, float(y.max()))


def test_agrees_with_least_squares() -> None:
    A, target = RNG.random((40, 8)), RNG.normal(size=40)
    y = solve(A.T @ A, A.T @ target, np.zeros(8), np.ones(8, bool))
    np.testing.assert_allclose(y, nnls(A, target)[0], atol=1e-9)


def test_scale_of_the_variables_does_not_matter() -> None:
    A, b = RNG.normal(size=(9, 6)), RNG.normal(size=6)
    scale = 10.0 ** np.array([-8, -4, 0, 0, 3, 6])
    plain = solve(A.T @ A, b, np.zeros(6), np.ones(6, bool))
    scaled = solve((A * scale).T @ (A * scale), b * scale, np.zeros(6), np.zeros(6, bool))
    np.testing.assert_allclose(scaled * scale, plain, rtol=1e-6, atol=1e-9)


def test_no_curvature_means_zero() -> None:
    H = np.diag([2.0, 0.0, 1.0])
    y = solve(H, np.array([2.0, -1.0, -3.0]), np.zeros(3), np.ones(3, bool))
    np.testing.assert_allclose(y, np.array([1.0, 0.0, 0.0]), atol=1e-9)


def test_more_classes_than_rows_most_of_hardly_any_curvature() -> None:
    """As in a step of the likelihood, where those with vanishing multipliers are zero anyway."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        ratios = rng.dirichlet(np.full(100, rng.choice([0.02, 0.05])), 10)
        p = rng.dirichlet(np.full(100, 0.3))
        A = ratios / (ratios @ p)[:, None]
        H, m = A.T @ A / 10, A.mean(axis=0)
        y = solve(H, 2 * m - 1, p, p > 0)
        assert (y >= 0).all()
        # No worse than staying at p, where the slope along p vanishes.
        assert 0.5 * y @ H @ y - (2 * m - 1) @ y <= -0.5 + 1e-6
        np.testing.assert_array_equal(y[m <= 0.5], 0)


def test_nothing_is_better_than_nothing() -> None:
    y = solve(np.ones((3, 3)), -np.ones(3), np.full(3, 0.3), np.ones(3, bool))
    np.testing.assert_array_equal(y, 0)


def test_a_singular_matrix_keeps_near_the_centre() -> None:
    y = solve(np.ones((2, 2)), np.ones(2), np.array([0.25, 0.75]), np.ones(2, bool))
    np.testing.assert_allclose(y, np.array([0.25, 0.75]), atol=1e-3)


def test_least_squares_when_pivoting_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    A, b = RNG.normal(size=(12, 7)), RNG.normal(size=7)
    guess = np.ones(7, bool)
    pivoted = solve(A.T @ A, b, np.zeros(7), guess)
    monkeypatch.setattr(module, "_pivot", lambda *_: None)
    np.testing.assert_allclose(solve(A.T @ A, b, np.zeros(7), guess), pivoted, atol=1e-8)
    assert (
        nonnegative_qp(np.array([[1.0, 2.0], [2.0, 1.0]]), np.ones(2), np.zeros(2), guess[:2])
        is None
    )
