"""One repetition: a split, rows taken away (algorithm 4), a classifier, what it scores."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Protocol

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier

from app.core.arrays import Codes, Floats
from benchmarks.thesis.datasets import DataSet

FOLDS = 5
MOST_DRAWS = 10_000


class Classifier(Protocol):
    def fit(self, inputs: Floats, labels: Codes) -> object: ...

    def predict_proba(self, inputs: Floats) -> Floats: ...


def _logistic(seed: int) -> Classifier:
    fresh: Classifier = LogisticRegression()
    return fresh


def _one_vs_rest(seed: int) -> Classifier:
    fresh: Classifier = OneVsRestClassifier(
        LogisticRegression(solver="liblinear", random_state=seed)
    )
    return fresh


def _forest(trees: int, seed: int) -> Classifier:
    fresh: Classifier = RandomForestClassifier(n_estimators=trees, random_state=seed)
    return fresh


def learner(name: str, trees: int) -> Callable[[int], Classifier]:
    """Makes fresh classifiers from seeds.

    ``one-vs-rest``: what scikit-learn's logistic regression did by default before its version
    0.22, the likely learner of the thesis for more than two classes.
    """
    known: dict[str, Callable[[int], Classifier]] = {
        "logistic": _logistic,
        "forest": partial(_forest, trees),
        "one-vs-rest": _one_vs_rest,
    }
    return known[name]


LEARNERS = ("logistic", "forest", "one-vs-rest")


@dataclass(frozen=True)
class Halves:
    """Row numbers of the training half, capped, and of the test half."""

    training: Codes
    test: Codes


@dataclass(frozen=True)
class Kept:
    """Training rows left by algorithm 4, and how many draws before it were refused."""

    rows: Codes
    redrawn: int


@dataclass(frozen=True)
class Scores:
    """What the methods see, and the truth.

    ``labels``, ``out_of_fold`` and ``refitted``: of the training rows, by models that did not
    see them and by the one that did; ``posteriors``: of the test rows, whose labels are ``truth``.
    """

    labels: Codes
    out_of_fold: Floats
    refitted: Floats
    posteriors: Floats
    truth: Codes

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.posteriors[0])

    @property
    def source(self) -> Floats:
        """Class shares of the training rows."""
        return shares(self.labels, self.classes)

    @property
    def target(self) -> Floats:
        """Class shares of the test rows."""
        return shares(self.truth, self.classes)


def shares(labels: Codes, classes: int) -> Floats:
    """Class shares of N codes."""
    counted: Floats = np.bincount(labels, minlength=classes) / len(labels)
    return counted


def halve(data: DataSet, rng: np.random.Generator, most: int) -> Halves:
    """Two stratified halves, at most ``most`` rows in the one for training."""
    half = len(data.labels) // 2
    training, test = train_test_split(
        np.arange(len(data.labels)),
        train_size=min(half, most),
        test_size=len(data.labels) - half,
        stratify=data.labels,
        random_state=int(rng.integers(1 << 31)),
    )
    return Halves(training, test)


def remove(labels: Codes, beta: float, rng: np.random.Generator) -> Kept:
    """Algorithm 4: of n random classes, 1 ≤ n < C, only ⌈β rows⌉ are kept.

    Drawn again while a class keeps a single row: cross-validation would score it by a model
    that has never seen its class.
    """
    classes = labels.max() + 1
    for redrawn in range(MOST_DRAWS):
        chosen = rng.permutation(classes)[: rng.integers(1, classes)]
        rows = [np.flatnonzero(labels == k) for k in range(classes)]
        for k in chosen:
            # Rounded, so that .1 · 30 is 3 and not a little more.
            size = ceil(round(beta * len(rows[k]), 9))
            rows[k] = rng.choice(rows[k], size, replace=False)
        if min(len(of_class) for of_class in rows) > 1:
            return Kept(np.sort(np.concatenate(rows)), redrawn)
    raise SystemExit(f"β = {beta}: every draw leaves a class with a single row")


def folds(labels: Codes, rng: np.random.Generator) -> Codes:
    """A fold for every row, the classes spread evenly: two rows of one are never all in one."""
    order = np.lexsort((rng.random(len(labels)), labels))
    fold = np.empty(len(labels), np.intp)
    fold[order] = np.arange(len(labels)) % FOLDS
    return fold


def fitted(fresh: Classifier, inputs: Floats, labels: Codes) -> Classifier:
    """The classifier after learning, whether or not it converged, as in the thesis."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fresh.fit(inputs, labels)
    return fresh


def score(
    data: DataSet,
    training: Codes,
    test: Codes,
    make: Callable[[int], Classifier],
    rng: np.random.Generator,
) -> Scores:
    """Learn on ``training`` and score ``test``; out-of-fold posteriors of ``training``."""
    inputs, labels = data.inputs[training], data.labels[training]
    fold = folds(labels, rng)
    seed = int(rng.integers(1 << 31))
    out_of_fold = np.empty((len(training), data.classes))
    for k in range(FOLDS):
        away = fold == k
        model = fitted(make(seed), inputs[~away], labels[~away])
        out_of_fold[away] = model.predict_proba(inputs[away])
    model = fitted(make(seed), inputs, labels)
    refitted, posteriors = model.predict_proba(inputs), model.predict_proba(data.inputs[test])
    return Scores(labels, out_of_fold, refitted, posteriors, data.labels[test])
