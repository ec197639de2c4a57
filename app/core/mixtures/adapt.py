"""Adapt a mixture to a target population: fit the links, compare them, choose one."""

import logging
from dataclasses import dataclass
from math import log
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from app.core.arrays import Floats
from app.core.errors import InvalidInput
from app.core.mixtures.cross import CrossValidation, leave_one_out, refuse_if_large
from app.core.mixtures.design import response
from app.core.mixtures.em import Runs, at_floor, beginning, best, best_of, count_agreeing
from app.core.mixtures.fit import FLOOR, residual_deviation
from app.core.mixtures.links import (
    LINKS,
    NAMES,
    SINGLE,
    Structure,
    link_named,
    structure,
)
from app.core.mixtures.mixture import (
    RegressionMixture,
    log_density,
    log_joint,
    responsibilities,
)
from app.core.mixtures.mstep import MStepProblem, problem
from app.core.warnings import Warning, WarningCode

Criterion = Literal["bic", "press"]
STARTS = 10
FACTOR = 5.0
"""Restarts scale all coefficients of the source by up to this, or by as little as one over it."""
JITTER = 0.5
"""Other restarts scale each coefficient by a factor of this standard deviation in its logarithm."""
SCREENED = 6
"""Where the coefficients are free, this many times as many starts are tried for a few steps."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LinkFit:
    """One link, fitted to n rows of the target.

    ``name``: of the link.
    ``mixture``: of the target.
    ``links``: the numbers of the link by what they act on, one for all components or one for each;
        empty where the coefficients are free.
    ``unidentified``: those that the source does not let anybody estimate; they stay at 1.
    ``parameters``: how many numbers are estimated, without the unidentified.
    ``log_likelihood``: Σ ln p(y | x) of these rows.
    ``bic``: −2 ``log_likelihood`` + ``parameters`` ln n; smaller is better.
    ``error``: mean square of y − mixture mean on these rows.
    ``oracle_error``: the same with the best component of each row, which needs the response and so
        is no prediction.
    ``cross``: by leaving one out; None where it was not asked for.
    ``starts``: that were run to the end.
    ``agreed``: how many of them came to this likelihood.
    ``steps``: of EM, from the start that was taken.
    ``status``: converged or iteration-limit.
    ``warnings``: what makes it doubtful.
    ``trace``: the log-likelihood after each step.
    """

    name: str
    mixture: RegressionMixture
    links: dict[str, tuple[float, ...]]
    unidentified: tuple[str, ...]
    parameters: int
    log_likelihood: float
    bic: float
    error: float
    oracle_error: float
    cross: CrossValidation | None
    starts: int
    agreed: int
    steps: int
    status: str
    warnings: tuple[Warning, ...]
    trace: Floats

    @property
    def sound(self) -> bool:
        """Whether its criterion may be compared: no variance on the floor, enough rows."""
        return not {WarningCode.VARIANCE_FLOOR, WarningCode.FEW_ROWS} & {
            warning.code for warning in self.warnings
        }

    def criterion(self, name: Criterion) -> float:
        """The number to be small."""
        if name == "press" and self.cross is not None:
            return self.cross.press
        return self.bic


@dataclass(frozen=True)
class MixtureAdaptation:
    """The chosen link, and all that were tried.

    ``chosen``: the fit with the smallest criterion among the sound ones.
    ``responsibilities``: P(component | row) of the target's rows, n × K.
    ``table``: every fit, in the order of the links.
    ``criterion``: what chose.
    ``seed``: gives the starts again.
    """

    chosen: LinkFit
    responsibilities: Floats
    table: tuple[LinkFit, ...]
    criterion: Criterion
    seed: int


def adapt(
    source: RegressionMixture,
    x: ArrayLike,
    y: ArrayLike,
    link: str = "auto",
    criterion: Criterion = "bic",
    starts: int = STARTS,
    seed: int = 0,
) -> MixtureAdaptation:
    """Fit one link, or all and choose, on labelled rows of the target: ``x`` n × p, ``y`` n.

    auto tries every link and the plain regression of these rows alone, and takes the smallest
    ``criterion`` among those that are ``sound`` (among all, if none is). With press every
    link is also refitted without each row. ``InvalidInput``: rows that do not fit the source, an
    unknown link, or more rows than press takes.
    """
    rows = source.design(x)
    values = response(y, len(rows))
    if not len(rows):
        raise InvalidInput.at("/x", "send at least one row")
    if starts < 1:
        raise InvalidInput.at("/options/starts", "send 1 or more")
    if criterion == "press":
        refuse_if_large(len(rows))
    if link not in ("auto", SINGLE):
        link_named(link)
    fits = []
    names = NAMES if link == "auto" else (link,)
    for done, name in enumerate(names, start=1):
        fits.append(_fit(name, source, rows, values, criterion == "press", starts, seed))
        if criterion == "press":
            _log.info("press: %d of %d links, %d refits each", done, len(names), len(rows))
    chosen = min([one for one in fits if one.sound] or fits, key=lambda f: f.criterion(criterion))
    joint = chosen.mixture.log_joint(rows, values)
    t = responsibilities(joint, log_density(joint))
    return MixtureAdaptation(chosen, t, tuple(fits), criterion, seed)


def prepare(
    source: RegressionMixture, rows: Floats, y: Floats, name: str
) -> tuple[RegressionMixture, MStepProblem]:
    """The source that this link adapts, and the estimator's problem on the target's rows."""
    spread = residual_deviation(rows, y)
    if name == SINGLE:
        source = RegressionMixture(
            np.ones(1),
            source.proportions[None] @ source.coefficients,
            np.array([spread]),
            source.degree,
        )
    link = LINKS["M5"] if name == SINGLE else link_named(name)
    return source, problem(structure(link, source, rows), rows, y, FLOOR * spread)


def _fit(
    name: str,
    source: RegressionMixture,
    rows: Floats,
    y: Floats,
    cross: bool,
    starts: int,
    seed: int,
) -> LinkFit:
    source, whole = prepare(source, rows, y, name)
    link = whole.structure.link
    nothing_to_find = name == SINGLE or link.slopes == link.intercept == "kept"
    count = 1 if nothing_to_find else starts
    screened = count * (SCREENED if link.slopes == "free" and count > 1 else 1)
    first = _starts(source, rows, y, screened, np.random.default_rng(seed))
    runs = best_of(whole, first, beginning(whole, source.proportions, screened), count)
    floored = at_floor(whole, runs.state)
    at = best(runs, floored)
    mixture = RegressionMixture(
        runs.state.proportions[at],
        whole.coefficients(runs.state.theta)[at],
        runs.state.sigmas[at],
        source.degree,
    )
    means = rows @ mixture.coefficients.T
    likelihood = float(runs.log_likelihoods[at])
    numbers = whole.structure.parameters
    return LinkFit(
        name=name,
        mixture=mixture,
        links=_links(whole.structure, runs, at),
        unidentified=_unidentified(whole.structure),
        parameters=numbers,
        log_likelihood=likelihood,
        bic=-2 * likelihood + numbers * log(len(y)),
        error=float(np.mean((y - means @ mixture.proportions) ** 2)),
        oracle_error=float(np.mean(((y[:, None] - means) ** 2).min(axis=1))),
        cross=leave_one_out(whole, runs.state, at) if cross else None,
        starts=count,
        agreed=count_agreeing(runs, at),
        steps=int(runs.steps[at]),
        status="converged" if runs.converged[at] else "iteration-limit",
        warnings=_warnings(whole.structure, bool(floored[at]), len(y)),
        trace=runs.trace[: runs.steps[at], at],
    )


def _starts(
    source: RegressionMixture, rows: Floats, y: Floats, count: int, random: Generator
) -> Floats:
    """Responsibilities, S × n × K, of the source as it is and of others near it.

    In turn: each coefficient scaled by its own factor, all by one, a few rows assigned at random.
    """
    starts = []
    for start in range(count):
        if start > 0 and start % 3 == 0:
            members = random.integers(source.components, size=len(y))
            few = random.permutation(len(y)) < source.components * (rows.shape[1] + 2)
            starts.append(np.eye(source.components)[members] * few[:, None])
            continue
        betas, factor = source.coefficients, 1.0
        if start % 3 == 1:
            betas = betas * np.exp(random.normal(scale=JITTER, size=betas.shape))
        if start % 3 == 2:
            factor = FACTOR ** random.uniform(-1, 1)
        means = rows @ (factor * betas).T
        joint = log_joint(y, means, factor * source.sigmas, source.proportions)
        starts.append(responsibilities(joint, log_density(joint)))
    return np.array(starts)


def _links(layout: Structure, runs: Runs, at: int) -> dict[str, tuple[float, ...]]:
    if layout.link.slopes == "free":
        return {}
    theta = runs.state.theta[at]
    known = layout.identified[: len(theta)]
    values = np.where(known, theta, 1.0)
    return {label: tuple(values[:, j].tolist()) for j, label in enumerate(layout.labels)}


def _unidentified(layout: Structure) -> tuple[str, ...]:
    if layout.link.shared:
        return tuple(
            label
            for label, known in zip(layout.labels, layout.identified[0], strict=True)
            if not known
        )
    return tuple(
        f"{label} of component {k + 1}"
        for k, known in enumerate(layout.identified)
        for label, one in zip(layout.labels, known, strict=True)
        if not one
    )


def _warnings(layout: Structure, floored: bool, size: int) -> tuple[Warning, ...]:
    warnings = []
    missing = _unidentified(layout)
    if missing:
        warnings.append(
            Warning(
                WarningCode.UNIDENTIFIED_LINK,
                f"the source's coefficient is 0 where the link would scale it ({', '.join(missing)}"
                "); the link stays at 1 and is not counted; use an additive link for a shift",
            )
        )
    if floored:
        warnings.append(
            Warning(
                WarningCode.VARIANCE_FLOOR,
                "a component runs through its rows, and only the floor keeps its variance from 0; "
                "use a link with fewer numbers or send more rows",
            )
        )
    if size <= layout.parameters:
        warnings.append(
            Warning(
                WarningCode.FEW_ROWS,
                f"{size} rows for {layout.parameters} numbers; use a link with fewer numbers",
            )
        )
    return tuple(warnings)
