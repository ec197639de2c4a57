"""The sorted training columns."""

import numpy as np
import pytest

from app.core.trees.column import TrainingColumn, sorted_batch

NAN = float("nan")


def test_values_are_sorted_with_their_classes_and_missing_ones_left_out() -> None:
    column = TrainingColumn.of(np.array([3.0, NAN, 1.0, 2.0, 1.0]), np.array([0, 1, 2, 1, 0]), 3)
    np.testing.assert_array_equal(column.values, [1, 1, 2, 3])
    np.testing.assert_array_equal(column.labels, [0, 2, 1, 0])
    assert (column.size, column.missing, column.labels.itemsize) == (4, 1, 1)
    np.testing.assert_array_equal(column.class_counts, [2, 1, 1])
    np.testing.assert_array_equal(column.weights(np.array([1.0, 2.0, 3.0])), [1, 3, 2, 1])


def test_the_order_of_the_rows_leaves_no_trace() -> None:
    rng = np.random.default_rng(1)
    values, labels = rng.integers(0, 5, 50).astype(float), rng.integers(0, 3, 50)
    order = rng.permutation(50)
    one, other = (
        TrainingColumn.of(values, labels, 3),
        TrainingColumn.of(values[order], labels[order], 3),
    )
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.labels, other.labels)


@pytest.mark.parametrize(
    ("values", "kept"),
    [([0.5, 2.0], np.float32), ([0.1, 2.0], np.float64), ([1e300, 1.0], np.float64)],
)
def test_single_precision_is_for_what_it_holds_exactly(
    values: list[float], kept: type[np.floating]
) -> None:
    column = TrainingColumn.of(np.array(values), np.zeros(2, dtype=np.intp), 1)
    assert column.values.dtype == kept
    np.testing.assert_array_equal(column.doubles, sorted(values))


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([1, 2, 5, 5], 1.0),
        ([2, 4, 8, 8], 2.0),
        ([0.1, 0.2, 0.7, 0.7], 0.1),
        ([1.0, 2.0, 2.5, 2.5, 2.8], 0.0),
        ([3, 3], 0.0),
        ([1.0, 2.0, 3.0], 0.0),
    ],
)
def test_a_lattice_has_a_step(values: list[float], step: float) -> None:
    column = TrainingColumn.of(np.array(values, float), np.zeros(len(values), dtype=np.intp), 1)
    assert column.step == pytest.approx(step)


def test_a_batch_is_sorted_without_its_gaps() -> None:
    np.testing.assert_array_equal(sorted_batch(np.array([2.0, NAN, 1.0])), [1, 2])
    assert len(sorted_batch(np.array([NAN]))) == 0
