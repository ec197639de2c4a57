"""Growing versatile decision trees with scikit-learn, and calibrating those that others grew.

Imported by the worker only: loading scikit-learn takes seconds.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from app.core import deadline
from app.core.arrays import Codes, Floats
from app.core.learners.folds import fold_count, stratified_folds
from app.core.prevalence.calibration import fit as fit_calibration
from app.core.trees.model import VersatileTree
from app.core.trees.tree import Tree

FOLDS = 5


@dataclass(frozen=True, eq=False)
class TreeTraining:
    """What a tree is grown on.

    ``features``: N × d, NaN where missing; ``labels``: N codes of ``classes``; ``attributes``: d
    names, of which those in ``categorical`` are codes. ``max_depth``: None for no limit.
    """

    features: NDArray[np.floating]
    labels: Codes
    classes: tuple[str, ...]
    attributes: tuple[str, ...]
    categorical: tuple[str, ...] = ()
    max_depth: int | None = None
    min_samples_leaf: int = 1
    seed: int = 0


def grow(training: TreeTraining) -> VersatileTree:
    """Fit scikit-learn's DecisionTreeClassifier and keep it as arrays, calibrated."""
    tree = grow_tree(training, training.features, training.labels)
    return calibrated(_model(tree, training), training)


def of_arrays(tree: Tree, training: TreeTraining) -> VersatileTree:
    """A tree that was grown elsewhere, on these rows.

    Its depth and smallest leaf stand for the limits that it was grown with, in the calibration.
    """
    model = _model(tree, training)
    leaves = model.counts.sum(axis=1)[tree.children_left < 0]
    smallest = max(int(leaves.min()), 1)
    limits = TreeTraining(
        training.features,
        training.labels,
        training.classes,
        training.attributes,
        training.categorical,
        max(tree.depth, 1),
        smallest,
        training.seed,
    )
    return calibrated(model, limits)


def calibrated(model: VersatileTree, training: TreeTraining) -> VersatileTree:
    """With leaf posteriors that mean what they say on rows the tree did not see.

    Trees grown on four folds score the fifth; a bias-corrected temperature fitted to these
    scores is applied to the leaves of ``model``. A class with a single row leaves no fold without
    it: then the posteriors stay as they are.
    """
    labels = training.labels
    folds = fold_count(labels, FOLDS)
    if folds < 2:
        return model
    fold = stratified_folds(labels, folds, training.seed)
    scores = np.empty((len(labels), len(training.classes)))
    for k in range(folds):
        deadline.check()
        rest, held = fold != k, fold == k
        tree = grow_tree(training, training.features[rest], labels[rest])
        scores[held] = _scores(tree, training, rest, held)
    return model.calibrated(fit_calibration("bcts", scores, labels))


def _scores(tree: Tree, training: TreeTraining, rest: NDArray[np.bool_], held: Codes) -> Floats:
    """Posteriors of the ``held`` rows by a tree grown on the ``rest``."""
    model = VersatileTree.of(
        tree,
        training.features[rest],
        training.labels[rest],
        training.classes,
        training.attributes,
        keep_columns=False,
    )
    return model.raw_posteriors[tree.leaves(training.features[held])]


def _model(tree: Tree, training: TreeTraining) -> VersatileTree:
    return VersatileTree.of(
        tree,
        training.features,
        training.labels,
        training.classes,
        training.attributes,
        training.categorical,
        where="/source/training",
    )


def grow_tree(training: TreeTraining, features: NDArray[np.floating], labels: Codes) -> Tree:
    """The tree alone, on these rows and with the limits of ``training``."""
    fitted = DecisionTreeClassifier(
        max_depth=training.max_depth,
        min_samples_leaf=training.min_samples_leaf,
        random_state=training.seed,
    ).fit(features, labels)
    grown = fitted.tree_
    return Tree.of(
        grown.feature,
        grown.threshold,
        grown.children_left,
        grown.children_right,
        features.shape[1],
        grown.missing_go_to_left.astype(np.bool_),
    )
