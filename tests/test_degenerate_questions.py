"""Whatever is asked of a degenerate version and batch, numbers come out, or a clear refusal.

Scores down to the smallest number, counts up to 2⁵³, matrices with empty columns or other outputs
than the classes, priors of 1e-12, labels: random and numbered; the same number is the same case.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args

import numpy as np
import pytest

from app.core.arrays import Floats, probability_rows
from app.core.errors import InvalidInput, MethodUnavailable
from app.core.prevalence.calibration import METHODS as CALIBRATIONS
from app.core.prevalence.estimators.confusion import ConfusionMatrix
from app.core.prevalence.source import Source, SourceModel, ValidationSet, derive
from app.core.prevalence.watching.eprocess import EProcess
from app.core.prevalence.watching.source_set import SourceSet
from app.core.prevalence.watching.window import window_test
from app.estimation import METHODS, IntervalOptions, PosteriorBatch, Request, estimate
from app.estimation.evidence import Evidence
from app.estimation.request import Batch, EmOptions, OutputBatch
from app.estimation.use_cases import adjust_batch, adjust_intercepts, check_region, compare_priors
from tests.test_estimation_fuzz import Rows

Random = np.random.Generator
SCORES = (0, 5e-324, 1e-320, 2.3e-308, 1e-300, 1e-150, 1e-17, 2.0**-53, 1e-9, 0.1, 1 / 3, 0.5)
MOST = 2.0**53
COSTS = (0.0, 1.0, -1.0, 3.7, 5e-324, 1e-300, 1e308, -1e308)
UNBOUNDED = {"log_offsets", "offsets", "intercepts"}
"""Minus infinity stands for a class at zero."""


def rows(rng: Random, count: int, classes: int) -> Floats:
    """Coarse, certain, constant, extreme or steep rows."""
    kind = rng.integers(5)
    if kind == 0:
        found = rng.dirichlet(np.full(classes, rng.choice([0.05, 0.5, 3.0])), count).round(2)
        found[found.sum(axis=1) == 0, 0] = 1.0
    elif kind == 1:
        found = np.eye(classes)[rng.choice(classes, count, p=rng.dirichlet(np.ones(classes)))]
    elif kind == 2:
        found = np.tile(rng.dirichlet(np.ones(classes)), (count, 1))
    elif kind == 3:
        found = rng.choice(SCORES, (count, classes)) / classes
        found[:, rng.integers(classes)] = 1.0
    else:
        found = np.exp(-rng.exponential(rng.choice([1.0, 30.0, 400.0]), (count, classes)))
        found[:, rng.integers(classes)] += 1e-300
    shares: Floats = found / found.sum(axis=1, keepdims=True)
    return shares


def point(rng: Random, classes: int) -> Floats:
    """A point of the simplex, one of its corners, or one with a class at zero."""
    shares = rng.dirichlet(np.full(classes, rng.choice([0.1, 1.0])))
    kind = rng.random()
    if kind < 0.3:
        shares = np.eye(classes)[rng.integers(classes)]
    elif kind < 0.5 and classes > 1:
        shares[rng.integers(classes)] = 0.0
    return np.asarray(shares / shares.sum())


def matrix(rng: Random, classes: int) -> ConfusionMatrix:
    """Counts of few or very many rows, of as many outputs as classes or one more or less."""
    outputs = classes + int(rng.choice([0, 0, 1, -1 if classes > 1 else 0]))
    size = float(rng.choice([1, 5, 50, 1000, 1e6, MOST]))
    counts = np.floor(rng.dirichlet(np.full(outputs, rng.choice([0.1, 1.0])), classes) * size)
    counts[counts.sum(axis=1) == 0, 0] = 1.0
    return ConfusionMatrix(counts)


def version(rng: Random) -> tuple[SourceModel, ValidationSet | None]:
    classes = int(rng.choice([1, 2, 2, 2, 3, 4, 6, 17]))
    names = tuple("abcdefghijklmnopq"[:classes])
    given = Source(names, priors=np.full(classes, 1 / classes), calibration="none")
    validation = None
    if rng.random() < 0.7:
        count = classes + int(rng.choice([0, 1, 3, 30, 200]))
        labels = np.concatenate([np.arange(classes), rng.integers(0, classes, count - classes)])
        validation = ValidationSet(labels.astype(np.intp), rows(rng, count, classes))
        method = CALIBRATIONS[rng.integers(len(CALIBRATIONS))]
        given = Source(names, validation=validation, calibration=method)
    if validation is None or rng.random() < 0.4:
        confusion = matrix(rng, classes)
        outputs = (*names, "other")[: confusion.counts.shape[1]]
        given = replace(given, confusion=confusion, outputs=outputs)
    if rng.random() < 0.4:
        priors = np.maximum(point(rng, classes), 1.1e-12)
        given = replace(given, priors=priors / priors.sum())
    return derive(given), validation


def batch(rng: Random, model: SourceModel) -> Batch:
    classes, outputs = len(model.classes), len(model.outputs)
    if model.confusion is not None and rng.random() < 0.3:
        counts = np.floor(rng.dirichlet(np.full(outputs, 0.5)) * rng.choice([10, 1e9, MOST]))
        counts[rng.integers(outputs)] += 1
        return OutputBatch(counts)
    size = int(rng.choice([1, 2, 5, 40, 200]))
    found: Batch
    if model.confusion is not None and rng.random() < 0.3:
        codes = rng.integers(0, outputs, size)
        found = OutputBatch(np.bincount(codes, minlength=outputs).astype(np.float64), codes)
    else:
        scores = rows(rng, size, classes)
        single = rng.random() < 0.3
        scores = scores.astype(np.float32) if single else scores
        found = PosteriorBatch(probability_rows(scores, "").values)
    labels = np.where(rng.random(size) < 0.3, rng.integers(0, classes, size), -1)
    return replace(found, labels=labels) if rng.random() < 0.3 and (labels >= 0).any() else found


def assert_numbers(answer: Any, name: str = "answer") -> None:
    """No NaN and no infinity, but for what the answers themselves say of them."""
    if isinstance(answer, np.ndarray):
        allowed = np.isneginf(answer) if name in UNBOUNDED else np.zeros(answer.shape, bool)
        if name == "counted":
            allowed = np.isnan(answer)
        assert (np.isfinite(answer) | allowed).all(), (name, answer)
    elif isinstance(answer, float):
        assert np.isfinite(answer), (name, answer)
    elif isinstance(answer, tuple):
        for part in answer:
            assert_numbers(part, name)
    elif is_dataclass(answer):
        for field in fields(answer):
            assert_numbers(getattr(answer, field.name), field.name)


def watched(model: SourceModel, given: Batch) -> tuple[Any, ...]:
    """What a monitor asks of a window, twice in a row."""
    evidence = Evidence(model, given)
    evidence.require_likelihood("watching")
    sources = SourceSet.of(model, isinstance(given, OutputBatch))
    tested = window_test(evidence.likelihood, evidence.maximum, sources, 0.01)
    process = EProcess(sources)
    state = process.update(
        process.update(process.start(), evidence.likelihood), evidence.likelihood
    )
    return tested, state, process.p_value(state)


def asked(rng: Random) -> Request:
    kinds = get_args(IntervalOptions.__annotations__["method"])
    options = IntervalOptions(
        float(rng.choice([0.5, 0.95, 0.999999])),
        kinds[rng.choice(len(kinds), p=[0.4, 0.25, 0.25, 0.1])],
        "batch" if rng.random() < 0.2 else "population",
    )
    method = METHODS[rng.integers(len(METHODS))] if rng.random() < 0.6 else "mle"
    em = EmOptions(max_iterations=int(rng.choice([1, 50])))
    return Request(
        method, em, interval=options, posteriors=True, histogram=bool(rng.random() < 0.3)
    )


def questions(rng: Random) -> Iterator[Callable[[], Any]]:
    """All that may be asked of one version and one batch."""
    model, validation = version(rng)
    yield lambda: (model.priors, model.nuisance, model.soft, model.second_moment, model.mean_gap)
    held = None if validation is None else Rows(validation, model)
    given, classes = batch(rng, model), len(model.classes)
    target = None if rng.random() < 0.4 else point(rng, classes)
    costs = rng.choice(COSTS, (classes, classes))
    intercepts, priors = rng.choice([0.0, -1e3, 9e299], classes), point(rng, classes)
    yield lambda: estimate(model, given, asked(rng), held)
    yield lambda: compare_priors(model, given, Request(), held)
    yield lambda: check_region(model, given, priors, 0.95)
    yield lambda: adjust_batch(model, given, target, Request(), held, costs)
    yield lambda: adjust_intercepts(model, intercepts, None, target, given, Request())
    yield lambda: watched(model, given)


@pytest.mark.parametrize("block", range(6))
def test_numbers_or_a_refusal(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        for question in questions(np.random.default_rng([seed, 3])):
            try:
                answer = question()
            except (MethodUnavailable, InvalidInput):
                continue
            assert_numbers(answer, f"case {seed}")
