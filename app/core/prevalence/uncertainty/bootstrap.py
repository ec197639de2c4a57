"""Bootstrap replicates of the estimated shares, batched.

The batch is resampled by multinomial row weights, or, where it is counts, by a Dirichlet draw with
one pseudo-count spread over the cells, which keeps an empty cell from being certain. The source
is redrawn too: confusion rows from the same Dirichlet, calibration and priors from their
sampling covariance.
"""

from collections.abc import Callable, Iterator

import numpy as np

from app.core import deadline
from app.core.arrays import Floats, Mask
from app.core.prevalence.estimators.confusion import (
    ConfusionMatrix,
)
from app.core.prevalence.estimators.mle import MleResult
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.likelihood.means import RowMean
from app.core.prevalence.numerics.nonnegative_qp import nonnegative_qp
from app.core.prevalence.replicates import REPLICATES, Replicates
from app.core.prevalence.uncertainty.covariance import SourceError, inverse_hessian

GROUP = 1 << 20
"""Weights that are held at once."""
NEWTON_STEPS = 4
SETTLED = 1e-7
EXCHANGES = 6
MOST_CLASSES = 30
LARGEST = 20_000_000
"""Most row weights, replicates × rows, that a likelihood bootstrap draws."""


def resample_counts(counts: Floats, seed: int, replicates: int = REPLICATES) -> Replicates:
    """Replicates of the shares of J counts."""
    return Replicates(_shares(np.random.default_rng(seed), counts, replicates), seed)


def resample_inversion(
    method: Callable[[Floats, Floats, Floats], Floats],
    confusion: ConfusionMatrix,
    counts: Floats,
    source: Floats,
    seed: int,
    replicates: int = REPLICATES,
) -> Replicates:
    """Replicates of an adjusted count; ``method``: B matrices M, B shares v, p0 → B × C shares."""
    rng = np.random.default_rng(seed)
    shares = _shares(rng, counts, replicates)
    rows = [_shares(rng, row, replicates) for row in confusion.counts]
    return Replicates(method(np.stack(rows, axis=2), shares, source), seed)


def _shares(rng: np.random.Generator, counts: Floats, replicates: int) -> Floats:
    """B × J Dirichlet draws around the counts."""
    return rng.dirichlet(counts + 1.0 / len(counts), replicates)


def resample_maximum(
    likelihood: Likelihood,
    top: MleResult,
    seed: int,
    source: SourceError | None = None,
    replicates: int = REPLICATES,
) -> Replicates:
    """Replicates of the maximum ``top``: row weights redrawn, Newton steps from the top.

    The source's error moves each replicate along its linear effect.
    """
    rng = np.random.default_rng(seed)
    known = likelihood.known
    rows, weights = _ratios(likelihood)
    p = top.prevalence[known]
    shares = np.empty((replicates, len(known)))
    done = 0
    for row_weights in _weights(rng, weights, replicates):
        shares[done : done + len(row_weights)] = _newton(rows, row_weights, p)
        done += len(row_weights)
    full = np.zeros((replicates, len(likelihood.source)))
    full[:, known] = shares
    if source is not None:
        hessian = likelihood.hessian(top.prevalence)[0] if top.hessian is None else top.hessian
        full = _move(rng, full, likelihood, top.prevalence, hessian, source)
    return Replicates(full, seed)


def draw_expansion(
    likelihood: Likelihood,
    top: MleResult,
    seed: int,
    source: SourceError | None = None,
    replicates: int = REPLICATES,
) -> Replicates:
    """The same in the limit of long batches, from the likelihood's derivatives at the top alone.

    Resampling moves the multipliers m by a normal draw of covariance (H − m mᵀ)/N, and a Newton
    step on the simplex follows them.
    """
    rng = np.random.default_rng(seed)
    known, p = likelihood.known, top.prevalence
    H, m = likelihood.hessian(p)
    within, slope = H[np.ix_(known, known)], m[known]
    scale, directions = np.linalg.eigh((within - np.outer(slope, slope)) / likelihood.size)
    root = directions * np.sqrt(np.maximum(scale, 0.0))
    multipliers = slope + rng.standard_normal((replicates, len(known))) @ root.T
    hessians = np.broadcast_to(within, (replicates, *within.shape))
    start = np.broadcast_to(p[known], multipliers.shape)
    full = np.zeros((replicates, len(p)))
    full[:, known] = _steps(hessians, 0.5 * (within @ p[known] + multipliers), start)
    if source is not None:
        full = _move(rng, full, likelihood, p, H, source)
    return Replicates(full, seed)


def _move(
    rng: np.random.Generator,
    shares: Floats,
    likelihood: Likelihood,
    p: Floats,
    hessian: Floats,
    source: SourceError,
) -> Floats:
    """B × C shares, each moved by a draw of the source's error."""
    inverse = inverse_hessian(hessian, p > 0)
    effect = inverse @ source.effect(likelihood, p, hessian)
    scale, directions = np.linalg.eigh(source.covariance)
    root = directions * np.sqrt(np.maximum(scale, 0.0))
    moves = rng.standard_normal((len(shares), len(scale))) @ (effect @ root).T
    moved: Floats = np.maximum(shares + moves, 0.0)
    moved /= moved.sum(axis=1, keepdims=True)
    return moved


def resample_mean(rows: Floats, seed: int, replicates: int = REPLICATES) -> Replicates:
    """Replicates of the mean of N × C rows; drawn from the normal limit for long batches."""
    N = len(rows)
    if N * replicates > LARGEST:
        return draw_mean(RowMean.of(rows), seed, replicates)
    rng = np.random.default_rng(seed)
    means = [np.dot(draws, rows) / N for draws in _weights(rng, np.ones(N), replicates)]
    return Replicates(np.concatenate(means), seed)


def draw_mean(rows: RowMean, seed: int, replicates: int = REPLICATES) -> Replicates:
    """Replicates of a mean, drawn from its normal limit."""
    rng = np.random.default_rng(seed)
    spread = rows.products / rows.size**2
    draws = rng.multivariate_normal(rows.mean, spread, replicates, method="eigh")
    return Replicates(np.clip(draws, 0.0, 1.0), seed)


def too_large(likelihood: Likelihood, replicates: int = REPLICATES) -> bool:
    """Whether ``resample_maximum`` would draw and multiply too much."""
    classes = len(likelihood.known)
    work = likelihood.rows * replicates * (1 + classes * classes / 20)
    return classes > MOST_CLASSES or work > 5 * LARGEST


def _ratios(likelihood: Likelihood) -> tuple[Floats, Floats]:
    """All ratios of the known classes up to a factor per row, N × K, and the N weights."""
    blocks = [
        (block.copy(), np.ones(len(block)) if weights is None else weights)
        for block, weights in likelihood.informative
    ]
    rows = np.concatenate([block for block, _ in blocks]) * likelihood.ratio
    return rows, np.concatenate([weights for _, weights in blocks])


def _weights(rng: np.random.Generator, weights: Floats, replicates: int) -> Iterator[Floats]:
    """Groups of multinomial weights, G × N, that sum to N."""
    N = len(weights)
    size = round(float(weights.sum()))
    group = max(GROUP // N, 1)
    even = bool((weights == 1).all())
    for start in range(0, replicates, group):
        deadline.check()
        count = min(group, replicates - start)
        if even:
            picked = rng.integers(0, N, (count, N))
            picked += N * np.arange(count)[:, None]
            flat = np.bincount(picked.ravel(), minlength=count * N)
            yield flat.reshape(count, N).astype(np.float64)
        else:
            yield rng.multinomial(size, weights / weights.sum(), count).astype(np.float64)


def _newton(rows: Floats, weights: Floats, p: Floats) -> Floats:
    """Maxima of G weighted likelihoods, G × K, by Newton steps from p."""
    classes = len(p)
    first, second = np.triu_indices(classes)
    products = rows[:, first] * rows[:, second]
    size = weights.sum(axis=1, keepdims=True)
    shares = np.tile(p, (len(weights), 1))
    for _ in range(NEWTON_STEPS):
        densities = np.dot(shares, rows.T)
        over = weights / densities
        m = np.dot(over, rows) / size
        over /= densities
        packed = np.dot(over, products) / size
        hessians = np.empty((len(weights), classes, classes))
        hessians[:, first, second] = hessians[:, second, first] = packed
        following = _steps(hessians, m, shares)
        moved = float(np.abs(following - shares).max())
        shares = following
        if moved < SETTLED:
            break
    return shares


def _steps(hessians: Floats, m: Floats, shares: Floats) -> Floats:
    """Minimisers of ½ yᵀH y − (2m − 1)ᵀy over y ≥ 0, scaled to sum to one; G × K.

    All at once by exchanging the classes that are held at zero; what that does not settle, one
    by one.
    """
    b = 2 * m - 1.0
    free = np.ones(b.shape, dtype=bool)
    y = np.zeros_like(b)
    for _ in range(EXCHANGES):
        y = _solve_free(hessians, b, free)
        slope = np.einsum("gkl,gl->gk", hessians, y) - b
        wrong = np.where(free, y < 0, slope < -1e-10)
        unsettled = wrong.any(axis=1)
        if not unsettled.any():
            break
        free ^= wrong
    for g in np.flatnonzero(unsettled):
        minimiser = nonnegative_qp(hessians[g], b[g], shares[g], np.ones(len(b[g]), dtype=bool))
        y[g] = shares[g] if minimiser is None else minimiser
    totals = y.sum(axis=1, keepdims=True)
    # A class may come back from zero, so none is left exactly there between steps.
    scaled = np.where(totals > 0, y / np.where(totals > 0, totals, 1), shares)
    return 0.999999999 * scaled + 1e-9 * shares


def _solve_free(hessians: Floats, b: Floats, free: Mask) -> Floats:
    """H⁻¹ b on the free classes of each of G problems, zero elsewhere; −1 where H is singular."""
    inside = free[:, :, None] & free[:, None, :]
    systems = np.where(inside, hessians, np.eye(b.shape[1]))
    with np.errstate(all="ignore"):
        try:
            y: Floats = np.linalg.solve(systems, np.where(free, b, 0.0)[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            return np.full_like(b, -1.0)
    return np.where(np.isfinite(y), y, -1.0)
