"""Intervals of small, coarse and degenerate batches against a profile by EM."""

import numpy as np
import pytest
from scipy.stats import chi2

from app.core.arrays import Floats
from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.uncertainty.intervals import Kind, likelihood_intervals

LIMIT = float(chi2.ppf(0.95, 1))
RAISED = float(-2 * np.log(0.025))


def problem(seed: int) -> tuple[Floats, Floats]:
    """Rows of few digits, one-hot rows, twins; 1 to 30 rows of 2 to 6 classes."""
    rng = np.random.default_rng(seed)
    classes, rows = int(rng.integers(2, 7)), int(rng.choice([1, 2, 3, 5, 10, 30]))
    shape = np.full(classes, rng.choice([0.1, 0.5, 1.0]))
    posteriors = rng.dirichlet(shape, rows).round(int(rng.choice([1, 2, 16])))
    if rng.random() < 0.2:
        sure = rng.random(rows) < 0.5
        posteriors[sure] = np.eye(classes)[rng.integers(0, classes)]
    if rng.random() < 0.2 and classes > 2:
        posteriors[:, 1] = posteriors[:, 0]
    posteriors = posteriors[posteriors.sum(axis=1) > 0]
    if len(posteriors) == 0:
        posteriors = np.eye(classes)[:1]
    return posteriors / posteriors.sum(axis=1, keepdims=True), rng.dirichlet(np.full(classes, 3.0))


def best_with(ratios: Floats, k: int, u: float) -> float:
    """Log-likelihood of the best p with p_k = u, by EM on the others."""
    classes = ratios.shape[1]
    p = np.full(classes, (1 - u) / (classes - 1))
    p[k] = u
    for _ in range(4000):
        share = ratios * p
        total = share.sum(axis=1)
        if (total <= 0).any():
            return -np.inf
        mass = (share / total[:, None]).sum(axis=0)
        mass[k] = 0
        if mass.sum() <= 0:
            break
        following = mass / mass.sum() * (1 - u)
        following[k] = u
        moved = np.abs(following - p).max()
        p = following
        if moved < 1e-13:
            break
    return float(np.log(np.maximum(ratios @ p, 1e-300)).sum())


@pytest.mark.parametrize("block", range(10))
def test_every_end_is_where_it_should_be(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        posteriors, source = problem(seed)
        likelihood = Likelihood.of(posteriors, source)
        top = mle(likelihood)
        p, ratios = top.prevalence, posteriors / source
        kind: Kind
        for kind in ("auto", "wald", "profile"):
            found = likelihood_intervals(likelihood, top, kind=kind)
            assert np.isfinite(found.lower).all(), seed
            assert np.isfinite(found.upper).all(), seed
            assert (found.lower >= 0).all(), seed
            assert (found.upper <= 1).all(), seed
            assert (found.lower <= p + 1e-12).all(), seed
            assert (found.upper >= p - 1e-12).all(), seed
        best = float(np.log(ratios @ p).sum())
        for k in range(len(p)):
            highest = RAISED if p[k] in (0.0, 1.0) else LIMIT
            for end in (float(found.lower[k]), float(found.upper[k])):
                if 0 < end < 1:
                    deviance = 2 * (best - best_with(ratios, k, end))
                    assert 0.98 * LIMIT <= deviance <= 1.02 * highest, (seed, k, end)
