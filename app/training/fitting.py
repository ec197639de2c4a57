"""Fitting with scikit-learn, and its results as the parameters that the core scores with.

Imported by the worker only: loading scikit-learn takes seconds.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import CategoricalNB, GaussianNB, MultinomialNB
from sklearn.svm import LinearSVC

from app.core.arrays import AnyArray, Codes, Floats
from app.core.learners.columns import FeatureColumns
from app.core.learners.encoding import Encoding
from app.core.learners.linear import Linear
from app.core.learners.naive_bayes import GaussianBayes, MultinomialBayes
from app.core.learners.recipe import Learner, Recipe
from app.core.learners.trained import Fitted, Trained
from app.core.learners.trees import Boosting, Forest, Trees

FEW_ROWS = 2_000
SMALLEST_VARIANCE = 1e-100
"""Of a column that does not vary in a class, where smoothing leaves it at zero."""


def fit(
    columns: FeatureColumns,
    table: Floats,
    labels: Codes,
    recipe: Recipe,
    weights: Floats | None = None,
) -> tuple[Trained, bool]:
    """A learner fitted on N rows (optionally weighted), and whether its search converged.

    Every class of ``labels``, 0 … C−1, must occur.
    """
    encoding = Encoding.fit(table, columns, recipe.standardises)
    encoded = encoding.apply(table)
    M = len(encoding.numeric)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fitted = _FITTERS[recipe.learner](recipe, encoded, labels, weights, M, encoding)
    converged = not any(issubclass(w.category, ConvergenceWarning) for w in said)
    return Trained(columns, encoding, fitted), converged


def _logistic(
    recipe: Recipe, encoded: Floats, labels: Codes, weights: Floats | None, *_: object
) -> Fitted:
    fitted = LogisticRegression(**recipe.parameters).fit(encoded, labels, weights)
    return _linear(fitted)


def _svm(
    recipe: Recipe, encoded: Floats, labels: Codes, weights: Floats | None, *_: object
) -> Fitted:
    """One-vs-rest; its margins stand for log-odds, whose scale the calibration corrects."""
    # Only the dual problem knows the plain hinge. The primal solver of the squared one is much
    # faster on many rows, but on a few odd ones it may never end.
    few = encoded.shape[0] < max(encoded.shape[1], FEW_ROWS)
    dual = recipe.parameters["loss"] == "hinge" or few
    learner = LinearSVC(**recipe.parameters, dual=dual, random_state=recipe.seed)
    return _linear(learner.fit(encoded, labels, weights))


def _linear(fitted: Any) -> Linear:
    if len(fitted.classes_) > 2:
        return Linear(fitted.coef_, fitted.intercept_)
    zero = np.zeros_like(fitted.coef_)
    return Linear(np.vstack([zero, fitted.coef_]), np.append(0.0, fitted.intercept_))


def _bayes(
    recipe: Recipe,
    encoded: Floats,
    labels: Codes,
    weights: Floats | None,
    M: int,
    encoding: Encoding,
) -> Fitted:
    """Gaussian or multinomial for the M numeric columns, frequencies of levels for the others."""
    alpha = recipe.parameters["alpha"]
    counts = np.bincount(labels, weights)
    log_priors = np.log(counts / counts.sum())
    log_levels = [np.empty((len(counts), 0))]
    start = M
    for _, levels in encoding.categorical:
        codes = encoded[:, start : start + len(levels)].argmax(axis=1)
        fitted = CategoricalNB(alpha=alpha).fit(codes[:, None], labels, weights)
        log_levels.append(fitted.feature_log_prob_[0])
        start += len(levels)
    levels_part = np.hstack(log_levels)
    if recipe.counts:
        occurrences = np.empty((len(counts), 0))
        if M:
            fitted = MultinomialNB(alpha=alpha).fit(encoded[:, :M], labels, weights)
            occurrences = fitted.feature_log_prob_
        return MultinomialBayes(log_priors, np.hstack([occurrences, levels_part]))
    means, variances = np.empty((len(counts), 0)), np.empty((len(counts), 0))
    if M:
        smoothing = recipe.parameters["var_smoothing"]
        fitted = GaussianNB(var_smoothing=smoothing).fit(encoded[:, :M], labels, weights)
        means, variances = fitted.theta_, np.maximum(fitted.var_, SMALLEST_VARIANCE)
    return GaussianBayes(log_priors, means, variances, levels_part)


def _forest(
    recipe: Recipe, encoded: Floats, labels: Codes, weights: Floats | None, *_: object
) -> Fitted:
    learner = RandomForestClassifier(**recipe.parameters, random_state=recipe.seed)
    grown = [tree.tree_ for tree in learner.fit(encoded, labels, weights).estimators_]
    trees = _flat(
        [tree.children_left for tree in grown],
        [tree.children_right for tree in grown],
        [tree.feature for tree in grown],
        [tree.threshold for tree in grown],
        max(tree.max_depth for tree in grown),
    )
    return Forest(trees, np.concatenate([tree.value[:, 0, :] for tree in grown]))


def _boosting(
    recipe: Recipe, encoded: Floats, labels: Codes, weights: Floats | None, *_: object
) -> Fitted:
    parameters = dict(recipe.parameters)
    rounds = parameters.pop("n_estimators")
    learner = HistGradientBoostingClassifier(
        **parameters, max_iter=rounds, early_stopping=False, random_state=recipe.seed
    ).fit(encoded, labels, weights)
    predictors = [(k, p.nodes) for stage in learner._predictors for k, p in enumerate(stage)]
    nodes = [nodes for _, nodes in predictors]
    leaf = [n["is_leaf"].astype(bool) for n in nodes]
    trees = _flat(
        [np.where(end, -1, n["left"].astype(np.int64)) for end, n in zip(leaf, nodes, strict=True)],
        [n["right"].astype(np.int64) for n in nodes],
        [n["feature_idx"] for n in nodes],
        [n["num_threshold"] for n in nodes],
        max(int(n["depth"].max()) for n in nodes),
    )
    values = np.concatenate([n["value"] for n in nodes])
    baseline = np.ravel(learner._baseline_prediction)
    outputs = np.array([k for k, _ in predictors], dtype=np.intp)
    if len(learner.classes_) == 2:
        baseline, outputs = np.append(0.0, baseline), outputs + 1
    return Boosting(trees, values, outputs, baseline)


def _flat(
    left: list[AnyArray],
    right: list[AnyArray],
    feature: list[AnyArray],
    threshold: list[AnyArray],
    depth: int,
) -> Trees:
    """Trees one after another; a leaf (its left child is −1) points to itself."""
    sizes = np.array([len(nodes) for nodes in left])
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    moved = np.repeat(roots, sizes)
    own = np.arange(sizes.sum())
    end = np.concatenate(left) == -1
    onward = [np.where(end, own, np.concatenate(side) + moved) for side in (right, left)]
    return Trees(
        np.stack(onward, axis=1).astype(np.intp),
        np.where(end, 0, np.concatenate(feature)).astype(np.intp),
        np.where(end, 0.0, np.concatenate(threshold)),
        roots.astype(np.intp),
        depth,
    )


_FITTERS: dict[Learner, Callable[..., Fitted]] = {
    "logistic-regression": _logistic,
    "linear-svm": _svm,
    "naive-bayes": _bayes,
    "random-forest": _forest,
    "gradient-boosting": _boosting,
}
