"""Expectation-maximisation for the target priors, as in the literature.

Saerens, Latinne and Decaestecker (2002); thesis eq. 6.1; SLD reassessment, algorithm 1 with
its update order corrected: all priors, then all posteriors.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.core.arrays import Floats
from app.core.prevalence.likelihood.likelihood import Likelihood

Status = Literal["converged", "max-iterations", "no-information"]


@dataclass(frozen=True)
class EmResult:
    """Where EM stopped.

    ``prevalence``: the C shares.
    ``status``: ``converged`` (the step is below the tolerance), ``max-iterations``, or
        ``no-information`` (no informative row: the source priors).
    ``iterations``: steps.
    ``gain``: ≥ 0; mean log-likelihood over that of the source priors.
    ``optimality_gap``: max_k m_k − 1 at ``prevalence``, an upper bound on what ``gain`` still
        lacks; a small step proves nothing, a small gap does.
    ``trace``: (iterations + 1) × C, the priors at the start and after each step; None unless asked
        for.
    """

    prevalence: Floats
    status: Status
    iterations: int
    gain: float
    optimality_gap: float
    trace: Floats | None = None


def em(
    likelihood: Likelihood,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
    trace: bool = False,
) -> EmResult:
    """Maximise the likelihood of the target priors by EM, starting at the source priors.

    Stops when the mean absolute step falls below ``tolerance`` (``converged``) or after
    ``max_iterations`` (``max-iterations``). A batch without an informative row returns the
    source priors (``no-information``).
    """
    p = likelihood.source
    path = [p]
    if likelihood.size == 0:
        return EmResult(p, "no-information", 0, 0.0, 0.0, np.array(path) if trace else None)
    status: Status = "max-iterations"
    iterations = 0
    m = likelihood.multipliers(p)
    while iterations < max_iterations:
        iterations += 1
        updated = p * m
        updated /= updated.sum()
        step = float(np.abs(updated - p).mean())
        p = updated
        m = likelihood.multipliers(p)
        if trace:
            path.append(p)
        if step < tolerance:
            status = "converged"
            break
    gap = max(float(m.max()) - 1.0, 0.0)
    gain = max(likelihood.gain(p), 0.0)
    return EmResult(p, status, iterations, gain, gap, np.array(path) if trace else None)
