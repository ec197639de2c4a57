"""K regressions from labelled rows of the source: the fit behind a registration."""

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from app.core.arrays import Codes, Floats
from app.core.errors import InvalidInput
from app.core.mixtures.design import design, response
from app.core.mixtures.em import at_floor, beginning, best, best_of, count_agreeing
from app.core.mixtures.links import LINKS, structure
from app.core.mixtures.mixture import RegressionMixture, log_density, responsibilities
from app.core.mixtures.mstep import problem
from app.core.warnings import Warning, WarningCode

FLOOR = 1e-2
"""The least σ that counts as a fit, as a share of one regression's residual deviation."""
COMPONENTS = 20
TRIED = 6
"""This many times as many starts are tried for a few steps before the best go on."""
LLOYD = 20


@dataclass(frozen=True)
class MixtureFit:
    """A fitted mixture and how far to trust it.

    ``mixture``: components in the order of their coefficients.
    ``log_likelihood``: Σ ln p(y | x) of the n rows.
    ``bic``: −2 ``log_likelihood`` + ``parameters`` ln n; smaller is better.
    ``icl``: BIC plus twice the entropy of the ``responsibilities``.
    ``parameters``: how many numbers are estimated.
    ``starts``: that were run to the end.
    ``agreed``: how many of them came to this likelihood.
    ``steps``: of EM, from the start that was taken.
    ``status``: converged or iteration-limit.
    ``seed``: repeats the fit.
    ``responsibilities``: P(component | row), n × K.
    ``trace``: the log-likelihood after each step.
    ``warnings``: what makes it doubtful.
    ``table``: (components, BIC) of every number of components that was tried; empty for a given
        number.
    """

    mixture: RegressionMixture
    log_likelihood: float
    bic: float
    icl: float
    parameters: int
    starts: int
    agreed: int
    steps: int
    status: str
    seed: int
    responsibilities: Floats
    trace: Floats
    warnings: tuple[Warning, ...]
    table: tuple[tuple[int, float], ...] = ()


def fit(
    x: ArrayLike,
    y: ArrayLike,
    components: int | tuple[int, int],
    degree: int = 1,
    starts: int = 10,
    seed: int = 0,
) -> MixtureFit:
    """The mixture with the largest likelihood over ``starts``; of a range, the smallest BIC.

    ``x`` n × p (or n numbers), ``y`` n, ``components`` K or an inclusive range of K. Fits whose σ
    lies on the floor lose to any that does not. Components are in the order of their intercepts,
    whatever start found them. ``InvalidInput``: too few rows, too many K.
    """
    rows = design(x, degree)
    values = response(y, len(rows))
    first, last = components if isinstance(components, tuple) else (components, components)
    if not 1 <= first <= last <= COMPONENTS:
        raise InvalidInput.at("/components", f"send 1 to {COMPONENTS}, or a range of these")
    if starts < 1:
        raise InvalidInput.at("/starts", "send 1 or more")
    if len(rows) < last * (rows.shape[1] + 1):
        raise InvalidInput.at("/x", f"{last} components need {last * (rows.shape[1] + 1)} rows")
    fits = [_fit(rows, values, k, degree, starts, seed) for k in range(first, last + 1)]
    sound = [one for one in fits if not one.warnings] or fits
    chosen = min(sound, key=lambda one: one.bic)
    table = tuple((one.mixture.components, one.bic) for one in fits)
    return MixtureFit(**{**chosen.__dict__, "table": table})


def _fit(rows: Floats, y: Floats, count: int, degree: int, starts: int, seed: int) -> MixtureFit:
    spread = residual_deviation(rows, y)
    plain = RegressionMixture(
        np.full(count, 1 / count),
        np.zeros((count, rows.shape[1])),
        np.full(count, spread),
        degree,
    )
    whole = problem(structure(LINKS["pM5"], plain, rows), rows, y, FLOOR * spread)
    finalists = 1 if count == 1 else starts
    screened = finalists if count == 1 else TRIED * starts
    first = _starts(rows, y, count, screened, np.random.default_rng(seed))
    runs = best_of(whole, first, beginning(whole, plain.proportions, screened), finalists)
    floored = at_floor(whole, runs.state)
    at = best(runs, floored)
    betas = whole.coefficients(runs.state.theta)[at]
    order = np.lexsort(betas.T[::-1])
    mixture = RegressionMixture(
        runs.state.proportions[at][order], betas[order], runs.state.sigmas[at][order], degree
    )
    joint = mixture.log_joint(rows, y)
    t = responsibilities(joint, log_density(joint))
    likelihood = float(runs.log_likelihoods[at])
    bic = -2 * likelihood + whole.structure.parameters * log(len(y))
    entropy = -float((t * np.log(np.where(t > 0, t, 1))).sum())
    return MixtureFit(
        mixture=mixture,
        log_likelihood=likelihood,
        bic=bic,
        icl=bic + 2 * entropy,
        parameters=whole.structure.parameters,
        starts=finalists,
        agreed=count_agreeing(runs, at),
        steps=int(runs.steps[at]),
        status="converged" if runs.converged[at] else "iteration-limit",
        seed=seed,
        responsibilities=t,
        trace=runs.trace[: runs.steps[at], at],
        warnings=_warnings(mixture, bool(floored[at]), len(y)),
    )


def residual_deviation(rows: Floats, y: Floats) -> float:
    """What one regression leaves, in the units of y; the scale of the floors, never 0."""
    left = y - rows @ np.linalg.lstsq(rows, y, rcond=None)[0]
    return max(float(np.std(left)), 1e-9 * float(np.abs(y).max(initial=0)), 1e-100)


def _warnings(mixture: RegressionMixture, floored: bool, size: int) -> tuple[Warning, ...]:
    warnings = []
    if floored:
        warnings.append(
            Warning(
                WarningCode.VARIANCE_FLOOR,
                "a component runs through its rows, and only the floor keeps its variance from 0; "
                "ask for fewer components",
            )
        )
    if (mixture.proportions * size < 1).any():
        warnings.append(
            Warning(
                WarningCode.EMPTY_COMPONENT, "a component holds less than one row; ask for fewer"
            )
        )
    return tuple(warnings)


def _starts(rows: Floats, y: Floats, count: int, starts: int, random: Generator) -> Floats:
    """Hard assignments, S × n × K, in turn by residuals, of a few random rows, of all at random.

    A few rows for each component are what finds curves that cross, whose residuals from one
    regression say little; the other rows join in the first expectation.
    """
    residuals = y - rows @ np.linalg.lstsq(rows, y, rcond=None)[0]
    assigned = []
    for start in range(starts):
        if start % 3 == 0:
            assigned.append(np.eye(count)[_by_residual(residuals, count, random)])
            continue
        members = np.eye(count)[random.integers(count, size=len(y))]
        few = random.permutation(len(y)) < count * (rows.shape[1] + 2)
        assigned.append(members * few[:, None] if start % 3 == 1 else members)
    return np.array(assigned)


def _by_residual(residuals: Floats, count: int, random: Generator) -> Codes:
    """k-means++ and some of Lloyd's steps in one dimension."""
    centres = [residuals[random.integers(len(residuals))]]
    for _ in range(1, count):
        distance = np.min([(residuals - c) ** 2 for c in centres], axis=0)
        total = distance.sum()
        shares = distance / total if total > 0 else None
        centres.append(residuals[random.choice(len(residuals), p=shares)])
    places = np.array(centres)
    for _ in range(LLOYD):
        labels = np.abs(residuals[:, None] - places).argmin(axis=1)
        sums = np.bincount(labels, weights=residuals, minlength=count)
        sizes = np.bincount(labels, minlength=count)
        places = np.where(sizes > 0, sums / np.maximum(sizes, 1), places)
    return np.asarray(labels, dtype=np.intp)
