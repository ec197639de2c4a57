"""Leave one out: every row predicted by the link fitted without it, all refits at once."""

from dataclasses import dataclass

import numpy as np

from app.core.errors import InvalidInput
from app.core.mixtures.em import run
from app.core.mixtures.mixture import log_density, log_joint, responsibilities
from app.core.mixtures.mstep import MixtureParameters, MStepProblem

LARGEST = 500
"""More rows than this would take minutes for an answer that BIC gives as well."""
TOLERANCE = 1e-7
STEPS = 500


@dataclass(frozen=True)
class CrossValidation:
    """What the rows were to fits that had not seen them.

    ``press``: Σ (y − mixture mean)² over the rows.
    ``mean``: that over n, in y's units squared.
    ``log_density``: Σ ln p(y | x).
    ``unconverged``: how many refits stopped at their limit.
    """

    press: float
    mean: float
    log_density: float
    unconverged: int


def refuse_if_large(size: int) -> None:
    """``InvalidInput`` where leaving one out would take too long."""
    if size > LARGEST:
        raise InvalidInput.at(
            "/criterion", f"press takes up to {LARGEST} rows, and these are {size}; use bic"
        )


def leave_one_out(problem: MStepProblem, state: MixtureParameters, at: int) -> CrossValidation:
    """Refit without each row, each time from the fit ``at`` of ``state`` that has seen all."""
    size = len(problem.y)
    refuse_if_large(size)
    start = state.some(np.full(size, at))
    joint = log_joint(
        problem.y, problem.means(start.theta[:1]), start.sigmas[:1], start.proportions[:1]
    )
    t = np.repeat(responsibilities(joint, log_density(joint)), size, axis=0)
    runs = run(problem, t, start, 1.0 - np.eye(size), TOLERANCE, STEPS)
    here = np.arange(size)
    means = problem.means(runs.state.theta)
    joint = log_joint(problem.y, means, runs.state.sigmas, runs.state.proportions)
    predicted = (means[here, here] * runs.state.proportions).sum(axis=1)
    press = float(((problem.y - predicted) ** 2).sum())
    return CrossValidation(
        press,
        press / size,
        float(log_density(joint[here, here]).sum()),
        int((~runs.converged).sum()),
    )
