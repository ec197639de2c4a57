"""Streams without a shift that are looked at after every batch, each with a source of its own."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from app.core.arrays import Floats
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.watching.eprocess import EProcess
from benchmarks.alerts.stream import Population, Registered, threshold

LEVEL, VALIDATION, ROWS = 0.05, 10_000, 100


@dataclass(frozen=True)
class Looked:
    """Shares of streams with an alarm at any time; ``highest``: ln E of each stream."""

    always_valid: float
    repeated: float
    highest: Floats


def looking(population: Population, streams: int, batches: int, seed: int) -> Looked:
    """Half of the level for the set of the source, half for Ville's inequality.

    ``repeated``: the scaled test of all rows so far (its score form), made after every batch.
    """
    rng = np.random.default_rng(seed)
    alarms, repeated, highest = 0, 0, []
    for _ in range(streams):
        registered = Registered.of(population, rng, VALIDATION, LEVEL / 2)
        scores = population.scores(rng, (batches, ROWS), population.share)
        repeated += _repeated(registered, scores)
        process, model = EProcess(registered.sources), registered.model
        state = process.start()
        for positive in expit(scores):
            rows = np.column_stack([1 - positive, positive])
            batch = Likelihood.of(rows, model.priors, calibration=model.calibration)
            state = process.update(state, batch)
        # Its part for the set is in the p-value.
        alarms += process.p_value(state) <= LEVEL
        highest.append(state.highest)
    return Looked(alarms / streams, repeated / streams, np.array(highest))


def _repeated(registered: Registered, scores: Floats) -> bool:
    excess = registered.excess(scores)
    w = excess / (1 + registered.model.priors[1] * excess)
    rows = ROWS * np.arange(1, len(scores) + 1)
    total, squares = np.cumsum(w.sum(axis=1)), np.cumsum((w**2).sum(axis=1))
    return bool((total**2 / squares / (1 + rows / VALIDATION) > threshold(LEVEL)).any())
