"""The target's regressions drawn from their posterior: a Gibbs sampler, all chains at once.

Each scan draws the components of the rows, then π, then (σ², β) jointly: σ² with β integrated out,
β given that σ². Everything is given the newest value of everything else.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from app.core import deadline
from app.core.arrays import Codes, Floats
from app.core.errors import InvalidInput
from app.core.mixtures.chains import Summary, summarise
from app.core.mixtures.design import response
from app.core.mixtures.mixture import (
    RegressionMixture,
    log_density,
    log_joint,
    responsibilities,
)
from app.core.mixtures.predict import LEVELS, Prediction, check_levels, quantiles
from app.core.mixtures.priors import Priors, conditional, priors, sums

DRAWS = 1000
BURN_IN = 200
CHAINS = 4
LARGEST = 2_000_000
"""Draws times chains times numbers in a draw that may be asked for: 16 MB."""
THINNED = 200
"""Draws, evenly spaced, that quantiles and densities are made of."""


@dataclass(frozen=True)
class MixturePosterior:
    """C chains of D kept draws of a mixture of K components with q coefficients each.

    ``coefficients``: C × D × K × q.
    ``sigmas``: C × D × K.
    ``proportions``: C × D × K.
    ``mixture``: the posterior means.
    ``summaries``: each number's mean, interval, effective size and split-R̂.
    ``responsibilities``: P(component | row) averaged over draws, n × K.
    ``switched``: the share of draws whose components, matched to the source's, would change places.
    ``aligned``: whether they did.
    ``level``: of the intervals.
    ``seed``: gives the draws again.
    """

    coefficients: Floats
    sigmas: Floats
    proportions: Floats
    mixture: RegressionMixture
    summaries: tuple[Summary, ...]
    responsibilities: Floats
    switched: float
    aligned: bool
    level: float
    seed: int


def sample(
    source: RegressionMixture,
    x: ArrayLike,
    y: ArrayLike,
    prior: Priors | None = None,
    draws: int = DRAWS,
    burn_in: int = BURN_IN,
    chains: int = CHAINS,
    align: bool = False,
    level: float = 0.95,
    seed: int = 0,
) -> MixturePosterior:
    """Draw from the posterior given labelled rows of the target: ``x`` n × p, ``y`` n.

    Each chain starts at a draw from the prior. ``align`` gives every draw the labels that bring it
    nearest to the source (the priors tell components apart, so that this is seldom needed).
    ``InvalidInput``: rows that do not fit the source, or more draws than fit into memory.
    """
    rows = source.design(x)
    values = response(y, len(rows))
    numbers = source.coefficients.size + 2 * source.components
    if min(draws, chains) < 1 or burn_in < 0 or draws * chains * numbers > LARGEST:
        raise InvalidInput.at(
            "/options/draws", f"send draws × chains up to {LARGEST // numbers}, burn_in from 0"
        )
    check_levels((level,))
    prior = prior or priors(source)
    betas, sigmas, shares = _scans(
        source, rows, values, prior, draws, burn_in, chains, np.random.default_rng(seed)
    )
    order = _nearest(source, prior, betas)
    switched = float((order != np.arange(source.components)).any(axis=-1).mean())
    if align:
        betas = np.take_along_axis(betas, order[..., None], axis=2)
        sigmas, shares = (np.take_along_axis(one, order, axis=2) for one in (sigmas, shares))
    mixture = RegressionMixture(
        shares.mean(axis=(0, 1)), betas.mean(axis=(0, 1)), sigmas.mean(axis=(0, 1)), source.degree
    )
    return MixturePosterior(
        coefficients=betas,
        sigmas=sigmas,
        proportions=shares,
        mixture=mixture,
        summaries=_summaries(betas, sigmas, shares, level),
        responsibilities=_membership(rows, values, _thin(betas, sigmas, shares)),
        switched=switched,
        aligned=align,
        level=level,
        seed=seed,
    )


def _scans(
    source: RegressionMixture,
    rows: Floats,
    y: Floats,
    prior: Priors,
    draws: int,
    burn_in: int,
    chains: int,
    random: Generator,
) -> tuple[Floats, Floats, Floats]:
    products = sums(source, rows, y)
    count, terms = source.coefficients.shape
    noise = random.normal(size=(chains, count, terms)) @ prior.root.T
    sigma = np.sqrt(prior.scales / random.standard_gamma(prior.shape, size=(chains, count)))
    beta = source.coefficients + sigma[..., None] * noise
    share = np.tile(source.proportions, (chains, 1))
    betas = np.empty((chains, draws, count, terms))
    sigmas, shares = np.empty((2, chains, draws, count))
    labels = np.eye(count)
    for scan in range(-burn_in, draws):
        deadline.check()
        joint = log_joint(y, np.matmul(rows, np.swapaxes(beta, 1, 2)), sigma, share)
        cumulative = np.cumsum(responsibilities(joint, log_density(joint)), axis=-1)[..., :-1]
        members = labels[(random.random((chains, len(rows), 1)) > cumulative).sum(axis=-1)]
        weight = random.standard_gamma(prior.concentration + members.sum(axis=1))
        share = weight / weight.sum(axis=1, keepdims=True)
        full_conditional = conditional(prior, products, members)
        sigma = np.sqrt(full_conditional.scale / random.standard_gamma(full_conditional.shape))
        errors = sigma[..., None] * random.standard_normal((chains, count, terms))
        beta = source.coefficients + full_conditional.shift(errors)
        if scan >= 0:
            betas[:, scan], sigmas[:, scan], shares[:, scan] = beta, sigma, share
    return betas, sigmas, shares


def _thin(betas: Floats, sigmas: Floats, shares: Floats) -> tuple[Floats, Floats, Floats]:
    """``THINNED`` draws, evenly spaced over the chains: T × K × q, T × K, T × K."""
    total = betas.shape[0] * betas.shape[1]
    some = np.unique(np.linspace(0, total - 1, THINNED).astype(int))
    count, terms = betas.shape[2:]
    return (
        betas.reshape(total, count, terms)[some],
        sigmas.reshape(total, count)[some],
        shares.reshape(total, count)[some],
    )


def _membership(rows: Floats, y: Floats, draws: tuple[Floats, Floats, Floats]) -> Floats:
    """P(component | row), averaged over draws, n × K."""
    betas, sigmas, shares = draws
    joint = log_joint(y, np.matmul(rows, np.swapaxes(betas, 1, 2)), sigmas, shares)
    return np.asarray(responsibilities(joint, log_density(joint)).mean(axis=0))


def _nearest(source: RegressionMixture, prior: Priors, betas: Floats) -> Codes:
    """C × D × K: which of a draw's components is nearest to each of the source's."""
    count = source.components
    if count == 1:
        return np.zeros(betas.shape[:3], dtype=np.intp)
    apart = betas[..., None, :] - source.coefficients
    scaled = np.matmul(apart, np.linalg.cholesky(prior.precision)) / source.sigmas[:, None]
    costs = (scaled * scaled).sum(axis=-1)  # C × D × drawn × source
    straight = np.broadcast_to(np.arange(count), betas.shape[:3]).copy()
    doubtful = costs.argmin(axis=2) != np.arange(count)
    for chain, draw in np.argwhere(doubtful.any(axis=-1)):
        components, target = linear_sum_assignment(costs[chain, draw])
        straight[chain, draw, target] = components
    return straight


def _summaries(betas: Floats, sigmas: Floats, shares: Floats, level: float) -> tuple[Summary, ...]:
    """Named as their places in the mixture: coefficients/k/j, sigmas/k, proportions/k from 0."""
    count, terms = betas.shape[2:]
    named = [(f"proportions/{k}", shares[..., k]) for k in range(count)]
    named += [(f"sigmas/{k}", sigmas[..., k]) for k in range(count)]
    named += [
        (f"coefficients/{k}/{j}", betas[..., k, j]) for k in range(count) for j in range(terms)
    ]
    return tuple(summarise(name, values, level) for name, values in named)


def predict_posterior(
    posterior: MixturePosterior,
    x: ArrayLike,
    y: ArrayLike | None = None,
    levels: tuple[float, ...] = LEVELS,
) -> Prediction:
    """Predict rows with what is not known about the regressions in the intervals.

    Means are averages over all draws; the predictive density, its quantiles and the probabilities
    of the components are those of ``THINNED`` draws' mixtures, mixed.
    """
    check_levels(levels)
    rows = posterior.mixture.design(x)
    count = posterior.mixture.components
    slopes = np.einsum("cdk,cdkq->q", posterior.proportions, posterior.coefficients)
    slopes /= posterior.proportions[..., 0].size
    draws = _thin(posterior.coefficients, posterior.sigmas, posterior.proportions)
    means = np.einsum("nq,dkq->ndk", rows, draws[0]).reshape(len(rows), -1)
    deviations, weights = draws[1].ravel(), draws[2].ravel() / len(draws[2])
    probabilities = np.tile(posterior.mixture.proportions, (len(rows), 1))
    density = None
    if y is not None:
        joint = log_joint(response(y, len(rows)), means, deviations, weights)
        density = log_density(joint)
        every = responsibilities(joint, density)
        probabilities = every.reshape(len(rows), -1, count).sum(axis=1)
    return Prediction(
        mean=rows @ slopes,
        component_means=rows @ posterior.mixture.coefficients.T,
        probabilities=probabilities,
        levels=levels,
        quantiles=quantiles(means, deviations, weights, levels),
        log_density=density,
    )
