"""Accuracies of the six strategies under made and real shifts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import friedmanchisquare, rankdata

from app.core.arrays import Codes, Floats
from app.core.learners.folds import stratified_folds
from app.core.trees.adaptation import TreeAdaptation, adaptation
from app.core.trees.model import VersatileTree
from app.core.trees.options import Strategy, TreeOptions
from app.training.trees import TreeTraining, grow_tree
from benchmarks.versatile.data import Table
from benchmarks.versatile.paper import STRATEGIES
from benchmarks.versatile.shifts import SETTINGS, all_cubic, all_linear, mixture

FOLDS = 5
SMALLEST_LEAF = 5
SHIFTS = ("unshifted", "linear", "cubic", "mixture")


@dataclass(frozen=True, eq=False)
class Accuracies:
    """By shift: folds × strategies, over the eight settings where there are such."""

    by_shift: dict[str, Floats]

    def mean(self, shift: str) -> Floats:
        mean: Floats = self.by_shift[shift].mean(axis=0)
        return mean

    def spread(self, shift: str) -> Floats:
        """Standard error of the mean over folds."""
        values = self.by_shift[shift]
        return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)), dtype=np.float64)


def cross_validated(data: Table, seed: int) -> Accuracies:
    fold = stratified_folds(data.labels, FOLDS, seed)
    found: dict[str, list[Floats]] = {shift: [] for shift in SHIFTS}
    for k in range(FOLDS):
        train, held = fold != k, fold == k
        source, batch = data.features[train], data.features[held]
        model = grown(data, source, data.labels[train], seed)
        labels = data.labels[held]
        rng = np.random.default_rng([seed, k])
        batches = {
            "unshifted": [batch],
            "linear": [all_linear(batch, source, *setting) for setting in SETTINGS],
            "cubic": [all_cubic(batch, source)],
            "mixture": [mixture(batch, source, *setting, rng) for setting in SETTINGS],
        }
        for shift, rows in batches.items():
            found[shift].append(np.mean([accuracies(model, b, labels) for b in rows], axis=0))
    return Accuracies({shift: np.array(values) for shift, values in found.items()})


def grown(data: Table, features: Floats, labels: Codes, seed: int) -> VersatileTree:
    """A tree without a limit of depth; its posteriors are not needed, nor calibrated."""
    training = TreeTraining(
        features, labels, data.classes, data.names, (), None, SMALLEST_LEAF, seed
    )
    tree = grow_tree(training, features, labels)
    return VersatileTree.of(tree, features, labels, data.classes, data.names)


def accuracies(model: VersatileTree, batch: Floats, labels: Codes) -> Floats:
    """Of the six strategies."""
    return np.array([accuracy(model, adapted(model, batch, s), labels) for s in STRATEGIES])


def adapted(model: VersatileTree, batch: Floats, strategy: Strategy) -> TreeAdaptation:
    """As the paper has it: no least number of rows for percentiles."""
    return adaptation(model, batch, TreeOptions(strategy, minimum_batch=1))


def accuracy(model: VersatileTree, found: TreeAdaptation, labels: Codes) -> float:
    return float((model.decisions[found.leaves] == labels).mean())


def average_ranks(scores: Sequence[Sequence[float]]) -> Floats:
    """Mid-ranks, the best first, of methods (columns) over problems (rows), averaged."""
    ranks = rankdata(-np.round(np.array(scores), 12), axis=1)
    return np.asarray(ranks.mean(axis=0), dtype=np.float64)


def friedman(scores: Sequence[Sequence[float]]) -> float:
    """P-value of equal methods."""
    return float(friedmanchisquare(*np.array(scores).T).pvalue)
