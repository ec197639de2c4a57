"""Expectation and maximisation for any link, many starts at once; the likelihood never falls."""

from dataclasses import dataclass

import numpy as np

from app.core import deadline
from app.core.arrays import Codes, Floats, Mask
from app.core.mixtures.mixture import log_density, log_joint, responsibilities
from app.core.mixtures.mstep import MixtureParameters, MStepProblem, maximise

TOLERANCE = 1e-9
"""A start has converged when a step adds less than this, relative to 1 + |log-likelihood|."""
STEPS = 2000
SCREENING = 15
"""Steps that a start is given before the best go on."""
SAME = 1e-5
"""Starts whose log-likelihoods differ by less than this, relatively, found the same optimum."""


@dataclass(frozen=True)
class Runs:
    """What S starts came to.

    ``state``: the numbers at the end of each.
    ``log_likelihoods``: S, at the end of each.
    ``converged``: S, whether it stopped by itself.
    ``steps``: S, of EM.
    ``trace``: log-likelihoods, one row for each step and one column for each start (the last value
        repeated once a start has converged).
    """

    state: MixtureParameters
    log_likelihoods: Floats
    converged: Mask
    steps: Codes
    trace: Floats


def run(
    problem: MStepProblem,
    t: Floats,
    at: MixtureParameters,
    rows: Floats | None = None,
    tolerance: float = TOLERANCE,
    max_steps: int = STEPS,
) -> Runs:
    """From responsibilities ``t`` S × n × K and the state ``at`` they came from, to the end.

    ``rows`` S × n weighs the rows of each start (0 leaves one out). ``OutOfTime`` between steps.
    """
    weights = np.ones(t.shape[:2]) if rows is None else rows
    count = len(t)
    value = np.full(count, -np.inf)
    converged, steps = np.zeros(count, dtype=bool), np.zeros(count, dtype=np.intp)
    state = MixtureParameters(at.theta.copy(), at.sigmas.copy(), at.proportions.copy())
    active, trace = np.arange(count), []
    for step in range(1, max_steps + 1):
        deadline.check()
        active_weights = weights[active]
        new = maximise(problem, t * active_weights[..., None], state.some(active))
        joint = log_joint(problem.y, problem.means(new.theta), new.sigmas, new.proportions)
        density = log_density(joint)
        following = (active_weights * density).sum(axis=1)
        state.theta[active], state.sigmas[active] = new.theta, new.sigmas
        state.proportions[active] = new.proportions
        with np.errstate(invalid="ignore"):
            done = following - value[active] <= tolerance * (1 + np.abs(following))
        value[active] = following
        steps[active], converged[active] = step, done
        trace.append(value.copy())
        t, active = responsibilities(joint, density)[~done], active[~done]
        if not len(active):
            break
    return Runs(state, value, converged, steps, np.array(trace))


def best_of(problem: MStepProblem, t: Floats, at: MixtureParameters, finalists: int) -> Runs:
    """Run ``finalists`` starts: the first, and the best of the others after a few steps.

    The trace of each begins after these steps, unless all starts are finalists.
    """
    if finalists >= len(t):
        return run(problem, t, at)
    screening = run(problem, t, at, max_steps=SCREENING)
    value = np.where(at_floor(problem, screening.state), -np.inf, screening.log_likelihoods)
    value[0] = np.inf
    state = screening.state.some(np.argsort(-value, kind="stable")[:finalists])
    joint = log_joint(problem.y, problem.means(state.theta), state.sigmas, state.proportions)
    return run(problem, responsibilities(joint, log_density(joint)), state)


def beginning(problem: MStepProblem, proportions: Floats, count: int) -> MixtureParameters:
    """The state that S starts leave: every link at 1, shifts at 0, σ* the source's."""
    structure = problem.structure
    theta = np.where(np.array([label == "shift" for label in structure.labels]), 0.0, 1.0)
    groups = 1 if structure.link.shared else len(structure.sigmas)
    state = np.broadcast_to(theta, (count, groups, len(theta))).copy()
    if structure.link.slopes == "free":
        state[:] = np.linalg.lstsq(problem.features[0], problem.y, rcond=None)[0]
    sigmas = np.maximum(structure.sigmas, problem.floor)
    free = structure.link.sigma == "free"
    return MixtureParameters(
        state,
        np.tile(sigmas if free else structure.sigmas, (count, 1)),
        np.tile(proportions, (count, 1)),
    )


def best(runs: Runs, floored: Mask) -> int:
    """The start with the largest likelihood among those that are no spike, if there are any."""
    allowed = (
        runs.log_likelihoods if floored.all() else np.where(floored, -np.inf, runs.log_likelihoods)
    )
    return int(np.argmax(allowed))


def count_agreeing(runs: Runs, chosen: int) -> int:
    """How many starts came to the likelihood of the chosen one."""
    reference = runs.log_likelihoods[chosen]
    return int((np.abs(runs.log_likelihoods - reference) <= SAME * (1 + abs(reference))).sum())


def at_floor(problem: MStepProblem, state: MixtureParameters) -> Mask:
    """S: whether a σ* lies on the floor, where only the floor keeps the likelihood finite."""
    if problem.structure.link.sigma == "kept":
        return np.zeros(len(state.sigmas), dtype=bool)
    return np.asarray((state.sigmas <= problem.floor * (1 + 1e-6)).any(axis=1))
