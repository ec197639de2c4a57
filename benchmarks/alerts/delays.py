"""How long a rise from 1 % to 2 % goes unnoticed, at equal false alarms without it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from app.core.arrays import Floats
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.watching.budget import Budget, level_per_stream, level_per_window
from app.core.prevalence.watching.eprocess import EProcess, EProcessState
from app.core.prevalence.watching.source_set import SOURCE_LEVEL
from benchmarks.alerts.rates import Tilted, rate
from benchmarks.alerts.stream import Population, Registered, statistics, threshold

HOURS, SIZE, VALIDATION = 720, 1000, 10_000
MONTH = Budget(1.0, HOURS * 3600.0)
LEVEL = level_per_window(MONTH, HOURS, 1)
BEFORE, RISEN = 0.01, 0.02
TILTED_WINDOWS = 400
AT_ONCE, LONGEST = 50, 2000


@dataclass(frozen=True)
class Watched:
    """Of one test: its threshold, expected false alarms a month by source, delays in hours."""

    name: str
    threshold: float
    expected: Floats
    delays: Floats


@dataclass(frozen=True)
class Null:
    """Weighted windows without a shift of one source."""

    composite: Floats
    point: Floats
    weights: Floats


def delays(distance: float, count: int, seed: int) -> list[Watched]:
    """Of the test against the set, two naive ones, and the e-process, on the same streams.

    The naive thresholds give the same mean of the false alarms over the sources, or the same ninth
    decile. ``count`` sources, each with one stream.
    """
    population = Population(BEFORE, distance)
    rng = np.random.default_rng(seed)
    limit = threshold(LEVEL)
    tilted = Tilted.of(population, SIZE, limit, rng)
    sources = [Registered.of(population, rng, VALIDATION, SOURCE_LEVEL) for _ in range(count)]
    nulls = []
    for registered in sources:
        draws, weights = tilted.sample(rng, registered, TILTED_WINDOWS)
        nulls.append(Null(draws.composite, draws.point, weights))

    def alarms(test: str, at: float) -> Floats:
        rates = [rate((getattr(n, test) > at).astype(np.float64), n.weights) for n in nulls]
        return HOURS * np.array(rates)

    ours = alarms("composite", limit)
    mean, decile = float(ours.mean()), float(np.quantile(ours, 0.9))
    same_mean = _root(lambda at: float(alarms("point", at).mean()) - mean)
    same_decile = _root(lambda at: float(np.quantile(alarms("point", at), 0.9)) - decile)
    waits = _waits(population, sources, rng, limit, same_mean, same_decile)
    return [
        Watched("confidence set", limit, ours, waits[0]),
        Watched("naive, equal mean", same_mean, alarms("point", same_mean), waits[1]),
        Watched("naive, equal ninth decile", same_decile, alarms("point", same_decile), waits[2]),
        Watched("naive, same level", limit, alarms("point", limit), waits[3]),
    ]


def _root(excess: Callable[[float], float]) -> float:
    return float(brentq(excess, 2.0, 40.0, xtol=1e-3))


def _waits(
    population: Population,
    sources: list[Registered],
    rng: np.random.Generator,
    limit: float,
    same_mean: float,
    same_decile: float,
) -> Floats:
    """Hours until the first rejection by each test, 4 × sources; ``LONGEST`` if none came."""
    waits = np.full((4, len(sources)), float(LONGEST))
    for s, registered in enumerate(sources):
        for start in range(0, LONGEST, AT_ONCE):
            scores = population.scores(rng, (AT_ONCE, SIZE), RISEN)
            values = statistics(registered.excess(scores), registered)
            hits = (
                values.composite > limit,
                values.point > same_mean,
                values.point > same_decile,
                values.point > limit,
            )
            for test, hit in enumerate(hits):
                if hit.any() and waits[test, s] == LONGEST:
                    waits[test, s] = start + int(np.argmax(hit)) + 1
            if (waits[:, s] < LONGEST).all():
                break
    return waits


def always_valid(distance: float, count: int, seed: int, batch: int, quiet_hours: int) -> Watched:
    """The e-process, looked at every ``batch`` rows, after ``quiet_hours`` without a shift."""
    population = Population(BEFORE, distance)
    rng = np.random.default_rng(seed)
    level = level_per_stream(MONTH, 1)
    waits = []
    for _ in range(count):
        registered = Registered.of(population, rng, VALIDATION, SOURCE_LEVEL)
        process = EProcess(registered.sources)
        state = process.start()
        for _ in range(quiet_hours * SIZE // batch):
            state = process.update(state, _batch(population, rng, registered, batch, BEFORE))
        waits.append(_until(process, state, level, population, rng, registered, batch))
    hours = np.array(waits) * batch / SIZE
    return Watched("always valid", -float(np.log(level)), np.zeros(0), hours)


def _until(
    process: EProcess,
    state: EProcessState,
    level: float,
    population: Population,
    rng: np.random.Generator,
    registered: Registered,
    batch: int,
) -> int:
    """Batches after the rise until the alarm."""
    for waited in range(1, LONGEST * SIZE // batch):
        state = process.update(state, _batch(population, rng, registered, batch, RISEN))
        if process.detected(state, level):
            return waited
    return LONGEST * SIZE // batch


def _batch(
    population: Population,
    rng: np.random.Generator,
    registered: Registered,
    rows: int,
    share: float,
) -> Likelihood:
    positive = expit(population.scores(rng, (rows,), share))
    model = registered.model
    posteriors = np.column_stack([1 - positive, positive])
    return Likelihood.of(posteriors, model.priors, calibration=model.calibration)
