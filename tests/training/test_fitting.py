from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import CategoricalNB, GaussianNB, MultinomialNB
from sklearn.svm import LinearSVC

from app.core.arrays import Codes, Floats
from app.core.learners.columns import UNKNOWN, FeatureColumns
from app.core.learners.recipe import PARAMETERS, Learner, Recipe, complete_parameters
from app.core.learners.trained import Trained
from app.core.learners.trees import Boosting, Forest
from app.training.fitting import fit

COLUMNS = FeatureColumns(("a", "b", "c", "d"), {2: ("x", "y", "z")})
NUMERIC = FeatureColumns(("a", "b", "c"))


def recipe(learner: Learner, **parameters: Any) -> Recipe:
    return Recipe(learner, complete_parameters(learner, parameters, ""))


def rows(classes: int, count: int = 240, seed: int = 0) -> tuple[Floats, Codes]:
    """Numbers with one decimal, so that many are equal; one column of levels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    table = rng.normal(labels[:, None] * [1.0, -0.5, 0.0, 0.3], 1.0).round(1)
    table[:, 2] = rng.integers(0, 3, count)
    return table, labels


def restored(found: Trained) -> Trained:
    return Trained.of_arrays(found.arrays())


CASES: list[tuple[Learner, dict[str, Any], Any]] = [
    ("logistic-regression", {"C": 0.5}, LogisticRegression(C=0.5, max_iter=1000)),
    (
        "random-forest",
        {"n_estimators": 12, "min_samples_leaf": 2},
        RandomForestClassifier(n_estimators=12, min_samples_leaf=2, random_state=0),
    ),
    (
        "gradient-boosting",
        {"n_estimators": 15, "min_samples_leaf": 5},
        HistGradientBoostingClassifier(
            max_iter=15, min_samples_leaf=5, early_stopping=False, random_state=0
        ),
    ),
]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("learner", "parameters", "theirs"), CASES, ids=[c[0] for c in CASES])
def test_scores_are_those_of_scikit_learn(
    learner: Learner, parameters: dict[str, Any], theirs: Any, classes: int, weighted: bool
) -> None:
    table, labels = rows(classes)
    weights = np.where(labels == 0, 2.5, 1.0) if weighted else None
    found, converged = fit(COLUMNS, table, labels, recipe(learner, **parameters), weights)
    assert converged
    fresh = np.vstack([rows(classes, seed=1)[0], [[0.0, 0.0, UNKNOWN, 0.0]]])
    theirs.fit(found.encoding.apply(table), labels, weights)
    expected = theirs.predict_proba(found.encoding.apply(fresh))
    np.testing.assert_allclose(restored(found).posteriors(fresh), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("classes", [2, 3])
def test_margins_of_a_support_vector_machine_are_log_odds(classes: int, loss: str) -> None:
    table, labels = rows(classes)
    found, converged = fit(COLUMNS, table, labels, recipe("linear-svm", loss=loss))
    assert converged
    encoded = found.encoding.apply(table)
    theirs = LinearSVC(loss=loss, dual=True, max_iter=10_000, random_state=0)
    margins = theirs.fit(encoded, labels).decision_function(encoded)
    if classes == 2:
        margins = np.column_stack([np.zeros(len(margins)), margins])
    expected = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(restored(found).posteriors(table), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_gaussian_bayes_is_that_of_scikit_learn(classes: int) -> None:
    table, labels = rows(classes)
    table = table[:, [0, 1, 3]]
    found, _ = fit(NUMERIC, table, labels, recipe("naive-bayes"))
    expected = GaussianNB().fit(table, labels).predict_proba(table)
    np.testing.assert_allclose(restored(found).posteriors(table), expected, rtol=0, atol=1e-12)


def test_multinomial_bayes_is_that_of_scikit_learn() -> None:
    counts = np.random.default_rng(0).poisson(2.0, (200, 3)).astype(float)
    labels = np.arange(200) % 3
    asked = recipe("naive-bayes", distribution="multinomial", alpha=0.5)
    found, _ = fit(NUMERIC, counts, labels, asked)
    expected = MultinomialNB(alpha=0.5).fit(counts, labels).predict_proba(counts)
    np.testing.assert_allclose(restored(found).posteriors(counts), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("distribution", ["gaussian", "multinomial"])
def test_levels_of_naive_bayes_multiply_by_their_frequencies(distribution: str) -> None:
    table, labels = rows(3)
    table = np.abs(table)
    asked = recipe("naive-bayes", distribution=distribution)
    found, _ = fit(COLUMNS, table, labels, asked)
    numbers = GaussianNB() if distribution == "gaussian" else MultinomialNB()
    numeric = table[:, [0, 1, 3]]
    joint = numbers.fit(numeric, labels).predict_joint_log_proba(numeric)
    levels = CategoricalNB().fit(table[:, [2]], labels)
    joint += levels.feature_log_prob_[0][:, table[:, 2].astype(int)].T
    expected = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(restored(found).posteriors(table), expected, rtol=0, atol=1e-12)
    unknown = table.copy()
    unknown[:, 2] = UNKNOWN
    silent = numbers.predict_proba(numeric)
    np.testing.assert_allclose(restored(found).posteriors(unknown), silent, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "theirs",
    [
        RandomForestClassifier(n_estimators=10, random_state=0),
        HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=2, early_stopping=False),
    ],
)
def test_rows_on_either_side_of_a_threshold_go_where_scikit_learn_sends_them(theirs: Any) -> None:
    table, labels = rows(2)
    table = table[:, [0, 1, 3]] * np.pi
    forest = isinstance(theirs, RandomForestClassifier)
    learner: Learner = "random-forest" if forest else "gradient-boosting"
    leaf = {} if forest else {"min_samples_leaf": 2}
    found, _ = fit(NUMERIC, table, labels, recipe(learner, n_estimators=10, **leaf))
    assert isinstance(found.fitted, Forest | Boosting)
    at = found.fitted.trees.threshold[found.fitted.trees.threshold != 0]
    single = at.astype(np.float32)
    near = [at, np.nextafter(at, -np.inf), np.nextafter(at, np.inf), single]
    near += [np.nextafter(single, s) for s in (np.float32(-np.inf), np.float32(np.inf))]
    hard = np.repeat(np.concatenate(near).astype(float)[:, None], 3, axis=1)
    expected = theirs.fit(table, labels).predict_proba(hard)
    np.testing.assert_allclose(found.posteriors(hard), expected, rtol=0, atol=1e-12)


def test_blocks_of_rows_are_scored_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    table, labels = rows(3)
    for learner in ("random-forest", "gradient-boosting", "naive-bayes"):
        found, _ = fit(COLUMNS, table, labels, recipe(learner))
        at_once = found.posteriors(table)
        with monkeypatch.context() as patch:
            patch.setattr("app.core.learners.trained.AT_ONCE", 100)
            patch.setattr("app.core.learners.trees.AT_ONCE", 700)
            np.testing.assert_array_equal(found.posteriors(table), at_once)


@pytest.mark.parametrize("learner", list(PARAMETERS))
def test_constant_and_single_columns_are_fitted(learner: Learner) -> None:
    labels = np.arange(20) % 2
    found, _ = fit(FeatureColumns(("x",)), np.full((20, 1), 0.1), labels, recipe(learner))
    for value in (0.1, 1e30, -1e30, 1e-300):
        posteriors = found.posteriors(np.array([[value]]))
        assert np.isfinite(posteriors).all()
        assert posteriors.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("learner", list(PARAMETERS))
def test_columns_of_levels_alone_are_fitted(learner: Learner) -> None:
    labels = np.arange(40) % 2
    table = ((labels + (np.arange(40) % 5 == 0)) % 2).astype(float)[:, None]
    found, _ = fit(FeatureColumns(("x",), {0: ("a", "b")}), table, labels, recipe(learner))
    posteriors = found.posteriors(np.array([[0.0], [1.0], [UNKNOWN]]))
    assert np.isfinite(posteriors).all()


@pytest.mark.parametrize("learner", list(PARAMETERS))
def test_huge_and_tiny_numbers_stay_finite(learner: Learner) -> None:
    labels = np.arange(30) % 3
    table = np.column_stack(
        [labels * 1e30 - 1e30, labels * 1e-30, np.where(labels == 1, 1e-300, 0.0)]
    )
    found, _ = fit(NUMERIC, table, labels, recipe(learner))
    hard = np.array([[1e30, 1e30, 1e30], [-1e30, -1e30, -1e30], [0, 0, 0]])
    posteriors = found.posteriors(hard)
    assert np.isfinite(posteriors).all()
    np.testing.assert_allclose(posteriors.sum(axis=1), 1.0)


@pytest.mark.parametrize("learner", ["logistic-regression", "linear-svm"])
def test_a_search_cut_short_is_reported(learner: Learner) -> None:
    table, labels = rows(2)
    _, converged = fit(COLUMNS, table, labels, recipe(learner, C=1e5, max_iter=1))
    assert not converged
