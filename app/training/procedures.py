"""What the worker does: cross-fit and fit, or refit until cde settles."""

import numpy as np

from app.core.arrays import AnyArray, Floats
from app.core.learners.folds import fold_count, stratified_folds
from app.core.learners.trained import Training, size
from app.core.prevalence.estimators.cde import iterate
from app.core.trees.serialization import to_arrays
from app.core.trees.tree import Tree
from app.training import trees
from app.training.fitting import fit
from app.training.messages import Growth, Learnt, Refitted

MOST_BYTES = 128 * 1024 * 1024
"""Largest model that is kept."""


class ModelTooLarge(ValueError):
    """The fitted model is larger than what is kept."""


def learn(training: Training) -> Learnt:
    """Out-of-fold posteriors by stratified cross-fitting, then a model of all rows.

    Encoding and learner see, for each fold, the rows outside it only.
    """
    table, labels, recipe = training.table, training.labels, training.recipe
    final, converged = fit(training.columns, table, labels, recipe)
    arrays = final.arrays()
    if size(arrays) > MOST_BYTES:
        advice = "ask for fewer or smaller trees (n_estimators, max_depth, min_samples_leaf)"
        raise ModelTooLarge(
            f"gives a model of {size(arrays) >> 20} MB, too large to keep; {advice}"
        )
    folds = fold_count(labels, recipe.folds)
    fold = stratified_folds(labels, folds, recipe.seed)
    posteriors = np.empty((len(labels), training.classes))
    short = 0 if converged else 1
    for k in range(folds):
        rest, held = fold != k, fold == k
        found, converged = fit(training.columns, table[rest], labels[rest], recipe)
        posteriors[held] = found.posteriors(table[held])
        short += 0 if converged else 1
    return Learnt(arrays, posteriors, folds, folds + 1, short)


def refit(training: Training, batch: Floats, max_iterations: int) -> Refitted:
    """cde-iterate (thesis ch. 5): false positives cost the cost ratio, false negatives 1.

    The learner is refitted with these as class weights, and its decisions on ``batch`` counted,
    until a count comes again; the last count is that of the last refit.
    """
    labels = training.labels
    fits, short = 0, 0

    def count(ratio: float) -> int:
        nonlocal fits, short
        weights = np.where(labels == 0, ratio, 1.0)
        found, converged = fit(training.columns, training.table, labels, training.recipe, weights)
        fits, short = fits + 1, short + (0 if converged else 1)
        return int((found.posteriors(batch).argmax(axis=1) == 1).sum())

    result = iterate(count, len(batch), float((labels == 1).mean()), max_iterations)
    return Refitted(result, fits, short)


def grow(growth: Growth) -> dict[str, AnyArray]:
    """A versatile tree as arrays: grown here or elsewhere, its leaves calibrated."""
    training = trees.TreeTraining(
        growth.rows,
        growth.labels,
        growth.classes,
        growth.attributes,
        growth.categorical,
        growth.max_depth,
        growth.min_samples_leaf,
        growth.seed,
    )
    if growth.tree is None:
        return to_arrays(trees.grow(training))
    return to_arrays(trees.of_arrays(Tree(**growth.tree), training))
