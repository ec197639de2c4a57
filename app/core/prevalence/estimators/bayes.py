"""The posterior distribution of the target priors under a Dirichlet prior (thesis section 2.3.2).

Rows: p(π | batch) ∝ Dirichlet(π; α) Π_i Σ_k π_k r_ik. Exact on a grid for two classes, a
data-augmentation Gibbs sampler for more. Counts of predicted outputs: the confusion matrix is
unknown too, each of its rows Dirichlet, and is drawn along.
"""

from dataclasses import dataclass

import numpy as np

from app.core import deadline
from app.core.arrays import Floats
from app.core.prevalence.estimators.confusion import ConfusionMatrix
from app.core.prevalence.estimators.mle import MleResult
from app.core.prevalence.likelihood.likelihood import Likelihood

DRAWS = 2000
BURN_IN = 500
GRID = 801
REACH = 12.0
"""Standard deviations about the maximum that the grid spans."""
MOST_WORK = 5e8
"""Most numbers, N · C · sweeps, that the sampler of rows goes through."""


@dataclass(frozen=True)
class Posterior:
    """The posterior distribution of the shares.

    ``mean``: C, the estimate.
    ``lower``: C lower ends of equal-tailed credible intervals.
    ``upper``: C upper ends.
    ``draws``: how many were kept; 0 for a grid.
    """

    mean: Floats
    lower: Floats
    upper: Floats
    draws: int


def of_counts(
    confusion: ConfusionMatrix, counts: Floats, prior: Floats, level: float, seed: int
) -> Posterior:
    """From J ``counts`` of outputs; ``prior``: α, C. Labelled and unlabelled counts count alike.

    Gibbs: the true classes behind each output, then π, then the rows of the confusion matrix,
    whose own prior spreads one pseudo-count over the outputs.
    """
    rng = np.random.default_rng(seed)
    J = len(counts)
    M = confusion.conditional.T
    p = prior / prior.sum()
    draws = np.empty((DRAWS, len(prior)))
    whole = counts.astype(np.int64)
    for sweep in range(-BURN_IN, DRAWS):
        deadline.check()
        weights = (M * p[:, None]).T + 1e-300
        behind = rng.multinomial(whole, weights / weights.sum(axis=1, keepdims=True))
        p = rng.dirichlet(prior + behind.sum(axis=0))
        gammas = rng.standard_gamma(confusion.counts + behind.T + 1.0 / J) + 1e-300
        M = gammas / gammas.sum(axis=1, keepdims=True)
        if sweep >= 0:
            draws[sweep] = p
    return _summary(draws, level)


def too_large(likelihood: Likelihood) -> bool:
    """Whether sampling the rows would take too long; the grid of two classes never does."""
    classes = len(likelihood.known)
    return classes > 2 and likelihood.rows * classes * (DRAWS + BURN_IN) > MOST_WORK


def of_rows(
    likelihood: Likelihood, top: MleResult, prior: Floats, level: float, seed: int
) -> Posterior:
    """From the rows of a likelihood with maximum ``top``; ``prior``: α, C.

    Classes of zero source prior stay at zero.
    """
    known = likelihood.known
    full = np.zeros((3, len(prior)))
    if len(known) == 1 or likelihood.size == 0:
        posterior = _prior_alone(prior[known], level, seed)
    elif len(known) == 2:
        posterior = _on_a_grid(likelihood, top, prior[known], level)
    else:
        posterior = _sample(likelihood, top.prevalence[known], prior[known], level, seed)
    full[:, known] = posterior.mean, posterior.lower, posterior.upper
    return Posterior(full[0], full[1], full[2], posterior.draws)


def _summary(draws: Floats, level: float) -> Posterior:
    tail = (1 - level) / 2
    lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
    return Posterior(draws.mean(axis=0), lower, upper, len(draws))


def _prior_alone(prior: Floats, level: float, seed: int) -> Posterior:
    return _summary(np.random.default_rng(seed).dirichlet(prior, DRAWS), level)


def _on_a_grid(likelihood: Likelihood, top: MleResult, prior: Floats, level: float) -> Posterior:
    """Two classes: the density of θ, the share of the second, by the trapezoidal rule."""
    known = likelihood.known
    theta = _grid(likelihood, top, prior)
    logs = np.empty(len(theta))
    p = np.zeros(len(top.prevalence))
    for i, share in enumerate(theta):
        p[known] = 1 - share, share
        logs[i] = likelihood.size * (likelihood.gain(p) - top.gain)
    logs += (prior[1] - 1) * np.log(theta) + (prior[0] - 1) * np.log1p(-theta)
    density = np.exp(logs - logs.max())
    steps = np.diff(theta)
    pieces = 0.5 * (density[1:] + density[:-1]) * steps
    mass = np.concatenate([[0.0], np.cumsum(pieces)])
    mean = float((0.5 * (density[1:] * theta[1:] + density[:-1] * theta[:-1]) * steps).sum())
    mean /= mass[-1]
    tail = (1 - level) / 2
    low, high = np.interp([tail * mass[-1], (1 - tail) * mass[-1]], mass, theta)
    return Posterior(
        np.array([1 - mean, mean]), np.array([1 - high, low]), np.array([1 - low, high]), 0
    )


def _grid(likelihood: Likelihood, top: MleResult, prior: Floats) -> Floats:
    """Points where the posterior lives, denser towards 0 and 1."""
    share = float(top.prevalence[likelihood.known[1]])
    p = np.zeros(len(top.prevalence))
    p[likelihood.known] = 1 - share, share
    hessian, m = likelihood.hessian(p)
    first, second = likelihood.known
    curvature = float(hessian[first, first] - 2 * hessian[first, second] + hessian[second, second])
    slope = abs(float(m[second] - m[first]))
    N = likelihood.size
    width = min(1.0, 1.0 / np.sqrt(max(N * curvature, 1.0)) + 1.0 / max(N * slope, np.sqrt(N)))
    low, high = max(share - REACH * width, 0.0), min(share + REACH * width, 1.0)
    inside = 0.5 - 0.5 * np.cos(np.linspace(0, np.pi, GRID + 2)[1:-1])
    points: Floats = low + (high - low) * inside
    return points


def _sample(likelihood: Likelihood, p: Floats, prior: Floats, level: float, seed: int) -> Posterior:
    """Gibbs on the true classes of the rows, block by block, and π."""
    rng = np.random.default_rng(seed)
    ratio = likelihood.ratio
    draws = np.empty((DRAWS, len(prior)))
    for sweep in range(-BURN_IN, DRAWS):
        behind = prior.copy()
        for block, weights in likelihood.informative:
            share = np.cumsum(block * (ratio * p), axis=1)
            level_of = rng.random(len(block)) * share[:, -1]
            codes = np.minimum((share < level_of[:, None]).sum(axis=1), len(prior) - 1)
            behind += np.bincount(codes, weights, minlength=len(prior))
        p = rng.dirichlet(behind)
        if sweep >= 0:
            draws[sweep] = p
    return _summary(draws, level)
