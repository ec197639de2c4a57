"""Adjusted soft counts against their definition and by simulation."""

import numpy as np
import pytest
from scipy.optimize import minimize

from app.core.arrays import Codes, Floats
from app.core.prevalence.estimators.confusion import acc_qp
from app.core.prevalence.estimators.soft import soft_conditional, soft_replicates
from app.core.prevalence.likelihood.means import RowMean


def draw(rng: np.random.Generator, shares: tuple[float, ...], rows: int) -> tuple[Codes, Floats]:
    """Three classes of Dirichlet posteriors that nobody calibrated."""
    labels = rng.choice(3, rows, p=shares)
    labels[:3] = [0, 1, 2]
    alpha = np.array([[6.0, 2, 1], [1, 3, 2], [2, 1, 4]])[labels]
    gamma = rng.gamma(alpha)
    return labels, gamma / gamma.sum(axis=1, keepdims=True)


def test_the_mean_posteriors_by_class() -> None:
    labels, rows = draw(np.random.default_rng(0), (0.5, 0.3, 0.2), 400)
    M = soft_conditional(rows, labels)
    for k in range(3):
        np.testing.assert_allclose(M[:, k], rows[labels == k].mean(axis=0))
    np.testing.assert_allclose(M @ (np.bincount(labels) / 400), rows.mean(axis=0))


def test_the_minimiser_against_scipy() -> None:
    rng = np.random.default_rng(1)
    labels, rows = draw(rng, (0.5, 0.3, 0.2), 400)
    M, v = soft_conditional(rows, labels), draw(rng, (0.02, 0.02, 0.96), 50)[1].mean(axis=0)
    peer = minimize(
        lambda p: 0.5 * float(((M @ p - v) ** 2).sum()),
        np.full(3, 1 / 3),
        method="SLSQP",
        bounds=[(0, 1)] * 3,
        constraints=[{"type": "eq", "fun": lambda p: p.sum() - 1}],
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(acc_qp(M, v, np.full(3, 1 / 3)).prevalence, peer.x, atol=1e-5)


def test_intervals_cover() -> None:
    rng = np.random.default_rng(2)
    target = (0.2, 0.3, 0.5)
    covered = np.zeros(3)
    for seed in range(200):
        labels, rows = draw(rng, (0.5, 0.3, 0.2), 300)
        _, batch = draw(rng, target, 300)
        found = soft_replicates(
            RowMean.of(batch), rows, labels, np.full(3, 1 / 3), seed, 200
        ).intervals(0.95)
        covered += (found.lower <= target) & (target <= found.upper)
    assert (covered / 200 > 0.9).all()
    assert (covered / 200 < 0.99).all()


def test_equal_rows_are_not_certain() -> None:
    rows = np.array([[0.8, 0.2]] * 5 + [[0.3, 0.7]] * 5)
    labels = np.array([0] * 5 + [1] * 5)
    found = soft_replicates(RowMean.of(rows[:5]), rows, labels, np.array([0.5, 0.5]), 0).intervals(
        0.95
    )
    assert found.lower[0] < 0.95
    assert found.upper[0] == pytest.approx(1.0)
