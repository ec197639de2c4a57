"""Growing trees, and calibrating those that others grew."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from app.core.arrays import Codes, Floats
from app.core.errors import InvalidInput
from app.core.prevalence.measures import log_loss
from app.core.trees.tree import Tree
from app.training.trees import TreeTraining, grow, of_arrays


def draw(seed: int, rows: int = 1_000) -> tuple[Floats, Codes]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, rows)
    return rng.normal(size=(rows, 4)) + labels[:, None], labels


def test_a_registered_tree_is_as_one_grown_here() -> None:
    features, labels = draw(0)
    training = TreeTraining(features, labels, ("a", "b", "c"), tuple("wxyz"), (), 4, 10)
    grown = grow(training)
    fitted = DecisionTreeClassifier(max_depth=4, min_samples_leaf=10, random_state=0)
    arrays = fitted.fit(features, labels).tree_
    tree = Tree.of(arrays.feature, arrays.threshold, arrays.children_left, arrays.children_right, 4)
    registered = of_arrays(tree, training)
    np.testing.assert_array_equal(registered.counts, grown.counts)
    np.testing.assert_allclose(registered.posteriors, grown.posteriors, atol=0.05)
    np.testing.assert_allclose(grown.counts.sum(axis=1), arrays.n_node_samples)


@pytest.mark.parametrize("smallest", [1, 20])
def test_calibrated_leaves_cost_less_on_fresh_rows(smallest: int) -> None:
    features, labels = draw(1)
    training = TreeTraining(features, labels, ("a", "b", "c"), tuple("wxyz"), (), 8, smallest)
    model = grow(training)
    fresh, truth = draw(2, rows=5_000)
    leaves = model.tree.leaves(fresh)
    assert model.calibration is not None
    calibrated = log_loss(model.posteriors[leaves], truth)
    assert calibrated < log_loss(model.raw_posteriors[leaves], truth)


def test_missing_values_are_trained_on() -> None:
    features, labels = draw(3)
    features[np.random.default_rng(3).random(features.shape) < 0.2] = np.nan
    training = TreeTraining(features, labels, ("a", "b", "c"), tuple("wxyz"), (), 6, 5)
    fitted = DecisionTreeClassifier(max_depth=6, min_samples_leaf=5, random_state=0)
    fitted.fit(features, labels)
    model = grow(training)
    np.testing.assert_array_equal(
        model.decisions[model.tree.leaves(features)], fitted.predict(features)
    )
    assert sum(column.missing for column in model.columns) == np.isnan(features).sum()


def test_a_class_of_one_row_leaves_it_uncalibrated() -> None:
    features, labels = draw(4, rows=50)
    labels[:] = 0
    labels[0] = 1
    training = TreeTraining(features, labels, ("a", "b"), tuple("wxyz"), (), 3)
    assert grow(training).calibration is None


def test_what_cannot_be_trained_on_is_refused() -> None:
    features, labels = draw(5, rows=50)
    for change, pointer in (
        ({"classes": ("a", "b", "c", "d")}, "/source/training/labels"),
        ({"categorical": ("v",)}, "/source/training/categorical/0"),
        ({"labels": labels[:-1]}, "/source/training/labels"),
    ):
        given = {
            "features": features,
            "labels": labels,
            "classes": ("a", "b", "c"),
            "attributes": tuple("wxyz"),
            **change,
        }
        tree = Tree.of(np.array([-2]), np.array([-2.0]), np.array([-1]), np.array([-1]), 4)
        with pytest.raises(InvalidInput) as raised:
            of_arrays(tree, TreeTraining(**given))  # type: ignore[arg-type]
        assert raised.value.faults[0].pointer == pointer
