"""The tree as arrays, against scikit-learn's own walk."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from app.core.errors import InvalidInput
from app.core.trees.tree import Tree


def of(fitted: Any, width: int) -> Tree:
    grown = fitted.tree_
    return Tree.of(
        grown.feature,
        grown.threshold,
        grown.children_left,
        grown.children_right,
        width,
        grown.missing_go_to_left.astype(bool),
    )


def table(seed: int, rows: int = 500, gaps: float = 0.0) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(rows, 3)), rng.integers(0, 5, (rows, 2)) * 0.1])
    y = (X[:, 0] + X[:, 3] + rng.normal(size=rows) > 0).astype(int) + (X[:, 4] > 0.2)
    X[rng.random(X.shape) < gaps] = np.nan
    return X, y


@pytest.mark.parametrize("options", [{}, {"max_depth": 4}, {"max_leaf_nodes": 9}, {"max_depth": 1}])
@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_rows_end_where_scikit_learn_sends_them(options: dict[str, int], gaps: float) -> None:
    X, y = table(0, gaps=gaps)
    fitted = DecisionTreeClassifier(random_state=0, **options).fit(X, y)
    tree = of(fitted, 5)
    fresh, _ = table(1, rows=40_000, gaps=gaps)
    for rows in (X, fresh, fresh[:1], fresh[:0]):
        if len(rows):
            np.testing.assert_array_equal(tree.leaves(rows), fitted.apply(rows))
    assert len(tree.leaves(fresh[:0])) == 0
    assert tree.depth == fitted.get_depth()


def test_values_at_the_threshold_go_where_scikit_learn_sends_them() -> None:
    """Its midpoints lie between single-precision neighbours."""
    low = np.float32(0.1)
    high = np.nextafter(low, np.float32(1))
    X = np.array([[low], [high]] * 4, dtype=np.float64)
    fitted = DecisionTreeClassifier().fit(X, [0, 1] * 4)
    between = np.linspace(low, high, 9)[:, None].astype(np.float64)
    np.testing.assert_array_equal(of(fitted, 1).leaves(between), fitted.apply(between))


def test_a_single_leaf_takes_every_row() -> None:
    tree = Tree.of(np.array([-2]), np.array([-2.0]), np.array([-1]), np.array([-1]), 2)
    np.testing.assert_array_equal(tree.leaves(np.zeros((3, 2))), [0, 0, 0])
    assert tree.depth == 0


def test_it_comes_back_from_its_arrays() -> None:
    X, y = table(2)
    tree = of(DecisionTreeClassifier(max_depth=5).fit(X, y), 5)
    again = Tree(**tree.arrays())  # type: ignore[arg-type]
    np.testing.assert_array_equal(again.leaves(X), tree.leaves(X))


def test_totals_of_leaves_add_up_on_the_way_to_the_root() -> None:
    X, y = table(3)
    fitted = DecisionTreeClassifier(max_depth=4).fit(X, y)
    tree = of(fitted, 5)
    totals = np.bincount(tree.leaves(X), minlength=len(tree.feature)).astype(float)
    np.testing.assert_array_equal(tree.through(totals[:, None])[:, 0], fitted.tree_.n_node_samples)


STUMP: dict[str, list[Any]] = {
    "feature": [0, -2, -2],
    "threshold": [0.5, -2, -2],
    "children_left": [1, -1, -1],
    "children_right": [2, -1, -1],
}


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"threshold": [0.5, -2]}, "/t/threshold"),
        ({"feature": [2, -2, -2]}, "/t/feature/0"),
        ({"feature": [-1, -2, -2]}, "/t/feature/0"),
        ({"threshold": [float("nan"), -2, -2]}, "/t/threshold/0"),
        ({"children_left": [0, -1, -1]}, "/t/children_left/0"),
        ({"children_left": [3, -1, -1]}, "/t/children_left/0"),
        ({"children_left": [-1, -1, -1]}, "/t/children_left/0"),
        ({"children_right": [1, -1, -1]}, "/t/children_left"),
        ({"children_right": [2, -1, 1]}, "/t/children_left/2"),
        ({"feature": [], "threshold": [], "children_left": [], "children_right": []}, "/t/feature"),
    ],
)
def test_arrays_that_are_no_tree_are_refused(change: dict[str, list[Any]], pointer: str) -> None:
    arrays = {k: np.array(v) for k, v in {**STUMP, **change}.items()}
    with pytest.raises(InvalidInput) as raised:
        Tree.of(**arrays, width=2, where="/t")
    assert raised.value.faults[0].pointer == pointer
