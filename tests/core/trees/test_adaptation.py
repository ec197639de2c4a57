"""One batch in, one adaptation out."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from app.core.errors import InvalidInput
from app.core.trees.adaptation import TreeAdaptation, adaptation, predictions, predictions_at
from app.core.trees.model import VersatileTree
from app.core.trees.options import STRATEGIES, Strategy, TreeOptions
from app.core.trees.serialization import of_arrays, to_arrays
from app.training.trees import TreeTraining, grow

NAMES = ("temperature", "count", "code", "level")


def table(seed: int, rows: int = 600) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    features = np.column_stack(
        [
            rng.normal(20, 4, rows),
            rng.poisson(6, rows),
            rng.integers(0, 3, rows),
            rng.gamma(2, size=rows),
        ]
    )
    score = features[:, 0] / 4 + features[:, 1] / 2 + 2 * (features[:, 2] == 1) - features[:, 3]
    labels = np.digitize(score + rng.normal(size=rows), [5.5, 7.5])
    return features, labels


@pytest.fixture(scope="module")
def model() -> VersatileTree:
    features, labels = table(0)
    training = TreeTraining(features, labels, ("a", "b", "c"), NAMES, ("code",), 6, 5)
    return grow(training)


def scored(model: VersatileTree, found: TreeAdaptation, rows: NDArray[Any]) -> NDArray[Any]:
    return predictions(model, found.thresholds, found.target_priors, rows).decisions


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_training_set_is_predicted_as_scikit_learn_does(
    model: VersatileTree, strategy: Strategy
) -> None:
    features, labels = table(0)
    fitted = DecisionTreeClassifier(max_depth=6, min_samples_leaf=5, random_state=0)
    expected = fitted.fit(features, labels).predict(features)
    found = adaptation(model, features, TreeOptions(strategy))
    np.testing.assert_array_equal(scored(model, found, features), expected)
    assert found.changed == 0
    np.testing.assert_allclose(found.prevalence, np.bincount(expected) / len(expected))


def test_what_it_says_of_a_shifted_batch(model: VersatileTree) -> None:
    rows, labels = table(1, rows=2_000)
    shifted = rows * [1.8, 1, 1, 1] + [32, 0, 0, 0]
    shifted[:, 3] = rows[:, 3] ** 3
    found = adaptation(model, shifted, TreeOptions())
    assert [shift.kind for shift in found.attributes] == ["linear", "none", "none", "monotone"]
    assert found.attributes[0].in_words.startswith("temperature: ×1.")
    assert [s.in_words.split(": ")[1] for s in found.attributes[1:]] == [
        "unchanged",
        "unchanged",
        "monotone",
    ]
    assert [shift.attribute for shift in found.moved] == ["temperature", "level"]
    before = model.decisions[model.tree.leaves(shifted)]
    after = scored(model, found, shifted)
    assert found.changed == (before != after).sum()
    direct = predictions_at(model, found.leaves, None)
    np.testing.assert_array_equal(direct.decisions, after)
    assert (after == labels).mean() > (before == labels).mean() + 0.05
    unshifted = model.decisions[model.tree.leaves(rows)]
    assert (after == unshifted).mean() > 0.95


def test_posteriors_follow_the_target_priors(model: VersatileTree) -> None:
    rows, _ = table(2)
    priors = np.array([0.6, 0.4, 0.0])
    found = adaptation(model, rows, TreeOptions("original"), priors)
    plain = predictions(model, found.thresholds, None, rows)
    under = predictions(model, found.thresholds, found.target_priors, rows)
    np.testing.assert_array_equal(plain.leaves, under.leaves)
    np.testing.assert_array_equal(plain.decisions, under.decisions)
    weighted = plain.posteriors * priors / model.priors
    np.testing.assert_allclose(under.posteriors, weighted / weighted.sum(axis=1, keepdims=True))


def test_deployment_labels_give_the_priors(model: VersatileTree) -> None:
    rows, labels = table(3)
    found = adaptation(model, rows, TreeOptions(), deployment_labels=labels[:40])
    assert found.output_shift is not None
    np.testing.assert_allclose(
        found.output_shift.target_priors, np.bincount(labels[:40], minlength=3) / 40
    )


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_the_order_and_the_number_of_equal_rows_leave_no_trace(seed: int, copies: int) -> None:
    features, labels = table(4, rows=120)
    rng = np.random.default_rng(seed)
    order, shuffle = rng.permutation(120), rng.permutation(90 * copies)
    training = TreeTraining(features, labels, ("a", "b", "c"), NAMES, ("code",), 4, 5)
    source = grow(training)
    tree = source.tree
    other = VersatileTree.of(
        tree, features[order], labels[order], ("a", "b", "c"), NAMES, ("code",)
    )
    batch = table(5, rows=90)[0] * [2, 1, 1, 1]
    again = np.repeat(batch, copies, axis=0)[shuffle]
    strategies: tuple[Strategy, ...] = ("linear", "percentile")
    for strategy in strategies:
        one = adaptation(source, batch, TreeOptions(strategy))
        two = adaptation(other, again, TreeOptions(strategy))
        for a, b in zip(one.thresholds, two.thresholds, strict=True):
            assert a.adapted == pytest.approx(b.adapted, rel=1e-9)


@pytest.mark.parametrize("scale", [2.0, 0.25, 1024.0])
def test_a_change_of_unit_changes_no_prediction(model: VersatileTree, scale: float) -> None:
    """Powers of two are exact in every precision."""
    rows, _ = table(6)
    strategies: tuple[Strategy, ...] = ("linear", "percentile")
    for strategy in strategies:
        plain = adaptation(model, rows, TreeOptions(strategy))
        rescaled = rows * scale
        rescaled[:, 2] = rows[:, 2]
        scaled = adaptation(model, rescaled, TreeOptions(strategy))
        np.testing.assert_array_equal(scored(model, scaled, rescaled), scored(model, plain, rows))


def test_it_comes_back_from_its_arrays(model: VersatileTree) -> None:
    rows, _ = table(7)
    again = of_arrays(model.classes, model.attributes, to_arrays(model))
    one, two = (adaptation(m, rows * 2, TreeOptions(), "estimate") for m in (model, again))
    assert one.attributes == two.attributes
    assert one.thresholds == two.thresholds
    np.testing.assert_array_equal(model.posteriors, again.posteriors)
    assert all(array.dtype != object for array in to_arrays(model).values())


@pytest.mark.parametrize(
    ("rows", "pointer"),
    [
        (np.zeros((0, 4)), "/features"),
        (np.zeros((3, 5)), "/features"),
        (np.array([[0.0] * 4, [0, np.inf, 0, 0]]), "/features/1"),
        (np.array([[0.0] * 4, [0, 1e39, 0, 0]]), "/features/1"),
    ],
)
def test_rows_that_no_tree_can_take(model: VersatileTree, rows: NDArray[Any], pointer: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        adaptation(model, rows, TreeOptions())
    assert raised.value.faults[0].pointer == pointer
    with pytest.raises(InvalidInput):
        predictions(model, (), None, rows)
