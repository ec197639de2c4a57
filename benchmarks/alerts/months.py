"""Months without a shift: how many false alarms, and for how many of the sources too many."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom, norm

from app.core.arrays import Floats
from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.watching.budget import Budget, level_per_window
from app.core.prevalence.watching.source_set import SOURCE_LEVEL, SourceSet
from app.core.prevalence.watching.window import window_test
from benchmarks.alerts.rates import Tilted, rate
from benchmarks.alerts.stream import Population, Registered, Statistics, statistics, threshold

HOURS, SEGMENTS, SIZE, VALIDATION = 720, 10, 100, 10_000
MONTH = Budget(1.0, HOURS * 3600.0)
LEVEL = level_per_window(MONTH, MONTH.windows(3600.0), SEGMENTS)
SCALE = 1 + SIZE / VALIDATION
TILTED_WINDOWS = 1000
STRICT = level_per_window(MONTH, MONTH.windows(3600.0), SEGMENTS, certainty=0.9)
"""Nine months in ten with at most one."""
TESTS = ("confidence set", "confidence set, certainty .9", "point", "point, scaled")
PLAIN = (TESTS[0], *TESTS[2:])


@dataclass(frozen=True)
class Months:
    """Of each of the ``TESTS``: ``alarms`` that were counted, and ``expected`` of each source."""

    alarms: dict[str, Floats]
    expected: dict[str, Floats]


def rejections(values: Statistics, limit: float, scale: float) -> dict[str, Floats]:
    """Which windows each of the tests rejects, W values each; ``scale``: 1 + N/n."""
    return {
        "confidence set": (values.composite > limit).astype(np.float64),
        "confidence set, certainty .9": (values.composite > threshold(STRICT)).astype(np.float64),
        "point": (values.point > limit).astype(np.float64),
        "point, scaled": (values.point / scale > limit).astype(np.float64),
    }


def months(population: Population, count: int, seed: int) -> Months:
    """Simulate ``count`` months, each with a source of its own."""
    rng = np.random.default_rng(seed)
    limit, windows = threshold(LEVEL), HOURS * SEGMENTS
    tilted = Tilted.of(population, SIZE, limit, rng)
    alarms: dict[str, list[float]] = {name: [] for name in TESTS}
    expected: dict[str, list[float]] = {name: [] for name in TESTS}
    for _ in range(count):
        registered = Registered.of(population, rng, VALIDATION, SOURCE_LEVEL)
        scores = population.scores(rng, (windows, SIZE), population.share)
        values = statistics(registered.excess(scores), registered)
        for name, rejected in rejections(values, limit, SCALE).items():
            alarms[name].append(float(rejected.sum()))
        drawn, weights = tilted.sample(rng, registered, TILTED_WINDOWS)
        for name, rejected in rejections(drawn, limit, SCALE).items():
            expected[name].append(windows * rate(rejected, weights))
    return Months(_arrays(alarms), _arrays(expected))


def _arrays(lists: dict[str, list[float]]) -> dict[str, Floats]:
    return {name: np.array(values) for name, values in lists.items()}


def expected(
    population: Population, size: int, validation: int, count: int, seed: int, consecutive: int = 1
) -> dict[str, Floats]:
    """Expected false alarms a month of ``count`` sources, for other sizes of windows and sources.

    Of runs of ``consecutive`` rejected windows, an upper bound: overlapping runs count twice.
    """
    rng = np.random.default_rng(seed)
    level = level_per_window(MONTH, HOURS, SEGMENTS, consecutive)
    limit, scale = threshold(level), 1 + size / validation
    tilted = Tilted.of(population, size, limit, rng)
    rates: dict[str, list[float]] = {name: [] for name in TESTS}
    for _ in range(count):
        registered = Registered.of(population, rng, validation, SOURCE_LEVEL)
        drawn, weights = tilted.sample(rng, registered, TILTED_WINDOWS)
        for name, rejected in rejections(drawn, limit, scale).items():
            rates[name].append(HOURS * SEGMENTS * rate(rejected, weights) ** consecutive)
    return {name: np.array(rates[name]) for name in PLAIN}


def decisions(population: Population, count: int, seed: int) -> Months:
    """The same where only decisions are known: exact, a binomial sum for each source."""
    rng = np.random.default_rng(seed)
    # The classifier decides for the second class where its log-odds are positive.
    cut = population.distance / 2 - np.log(population.share / (1 - population.share)) / (
        population.distance
    )
    flagged = (1 - population.share) * norm.sf(cut)
    flagged += population.share * norm.sf(cut - population.distance)
    outputs = np.arange(SIZE + 1.0)
    probability = _binomial(SIZE, flagged)
    expected: dict[str, list[float]] = {name: [] for name in TESTS}
    alarms: dict[str, list[float]] = {name: [] for name in TESTS}
    for _ in range(count):
        model = Registered.of(population, rng, VALIDATION, SOURCE_LEVEL).model
        sources = SourceSet.of(model, outputs=True)
        likelihood = _of_counts(sources, outputs)
        drawn = rng.multinomial(HOURS * SEGMENTS, probability)
        for name, rejected in rejections(likelihood, threshold(LEVEL), SCALE).items():
            expected[name].append(HOURS * SEGMENTS * float(probability @ rejected))
            alarms[name].append(float(drawn @ rejected))
    return Months(_arrays(alarms), _arrays(expected))


def _binomial(n: int, p: float) -> Floats:
    return np.asarray(binom.pmf(np.arange(n + 1), n, p))


def _of_counts(sources: SourceSet, flagged: Floats) -> Statistics:
    """Statistics of windows with so many decisions for the second class."""
    estimate, point, composite = [], [], []
    for count in flagged:
        counts = np.array([SIZE - count, count], np.float64)
        likelihood = Likelihood.of_outputs(sources.conditional, sources.source, counts)
        top = mle(likelihood)
        test = window_test(likelihood, top, sources, LEVEL)
        estimate.append(top.prevalence[1])
        point.append(test.point_statistic)
        composite.append(test.statistic)
    return Statistics(np.array(estimate), np.array(point), np.array(composite))
