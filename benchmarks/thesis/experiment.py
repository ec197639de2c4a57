"""Algorithm 3: the repetitions, seeded one by one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.core.arrays import Codes
from benchmarks.thesis.datasets import DataSet
from benchmarks.thesis.methods import F1, Quality, Solvable, answers, solvable
from benchmarks.thesis.protocol import Classifier, fitted, halve, learner, remove, score


@dataclass(frozen=True)
class Plan:
    """What to run; ``runs`` by learner. ``rows``: the most in a training half."""

    runs: Mapping[str, int]
    betas: Sequence[float]
    trees: int = 200
    rows: int = 1500
    seed: int = 1


@dataclass(frozen=True)
class Trial:
    """One data set, learner, β and run: quality by method, and of the oracle."""

    data: str
    learner: str
    beta: float
    run: int
    redrawn: int
    quality: Mapping[str, Quality]
    solvable: Mapping[str, Solvable]
    oracle: F1


def repetition(data: DataSet, plan: Plan, run: int) -> Iterator[Trial]:
    """Run number ``run``: one split, then each learner and β on it.

    The split and with it the oracle are the same for every β; the rows removed are the same for
    every learner.
    """
    halves = halve(data, _seeded(plan, data, run), plan.rows)
    labels = data.labels[halves.training]
    for name in [name for name, runs in plan.runs.items() if run < runs]:
        make = learner(name, plan.trees)
        oracle = _oracle(data, halves.training, halves.test, make, _seeded(plan, data, run, 1))
        for beta in plan.betas:
            rng = _seeded(plan, data, run, 2, round(1000 * beta))
            kept = remove(labels, beta, rng)
            scores = score(data, halves.training[kept.rows], halves.test, make, rng)
            quality = {k: Quality.of(answer, scores) for k, answer in answers(scores).items()}
            yield Trial(data.name, name, beta, run, kept.redrawn, quality, solvable(scores), oracle)


def _oracle(
    data: DataSet,
    training: Codes,
    test: Codes,
    make: Callable[[int], Classifier],
    rng: np.random.Generator,
) -> F1:
    """Of the model that learnt before rows were removed."""
    fresh = make(int(rng.integers(1 << 31)))
    model = fitted(fresh, data.inputs[training], data.labels[training])
    return F1.of(data.labels[test], model.predict_proba(data.inputs[test]))


def _seeded(plan: Plan, data: DataSet, *numbers: int) -> np.random.Generator:
    return np.random.default_rng([plan.seed, data.key, *numbers])
