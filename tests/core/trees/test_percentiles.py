"""Shares and percentiles, with integer counts, ties, nested nodes and class weights."""

from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from app.core.arrays import Floats
from app.core.trees.column import TrainingColumn
from app.core.trees.percentiles import Share, corrected_share, percentile, shares_below
from app.core.trees.tree import Singles
from tests.golden import GOLDEN


def column(values: list[float], labels: list[int] | None = None) -> TrainingColumn:
    codes = np.zeros(len(values), dtype=np.intp) if labels is None else np.array(labels)
    return TrainingColumn.of(np.array(values, float), codes, int(codes.max()) + 1)


def singles(values: NDArray[Any]) -> Singles:
    return values.astype(np.float32)


def share_below(of: TrainingColumn, threshold: float, class_weights: Floats | None = None) -> Share:
    return shares_below(of, np.array([threshold]), class_weights)[0]


def test_the_example_of_figure_2() -> None:
    entry = GOLDEN["V01_figure2"]
    inputs, expected = entry["inputs"], entry["expected"]
    left, right = (np.array(list(inputs[s].values()), float) for s in ("left_node", "right_node"))
    weights = np.array(inputs["prior_deploy"]) / np.array(inputs["prior_train"])
    np.testing.assert_allclose(left * weights, list(expected["corrected_left"].values()))
    np.testing.assert_allclose(right * weights, list(expected["corrected_right"].values()))
    before, after = (corrected_share(left, right, w) for w in (np.ones(2), weights))
    assert 100 * before == pytest.approx(expected["percent_left_train"])
    assert 100 * after == pytest.approx(expected["percent_left_deploy"])


def test_the_corrected_total_is_what_divides() -> None:
    """40 of 60 rows to the left, by class 30 + 10 of 35 + 25: 44 of 62, not of 60."""
    found = corrected_share(np.array([30.0, 10.0]), np.array([5.0, 15.0]), np.array([1.2, 0.8]))
    assert found == pytest.approx(44 / 62)


@pytest.mark.parametrize("percent", range(101))
def test_no_percent_is_rounded_up_to_the_next(percent: int) -> None:
    batch = np.arange(1.0, 101.0)
    expected = float(percent) if percent else -inf
    assert percentile(singles(batch), Share(percent / 100, percent, 100)) == (
        expected,
        percent / 100,
    )
    assert percentile(singles(batch), Share(percent / 100)) == (expected, percent / 100)


def test_the_56th_percentile() -> None:
    entry = GOLDEN["V03_percentile_rounding_trap"]
    share = share_below(column([float(v) for v in range(1, 101)]), entry["inputs"]["percent"])
    threshold, attained = percentile(singles(np.arange(1.0, 101.0)), share)
    assert threshold == entry["expected"]["threshold"]
    assert attained * 100 == pytest.approx(entry["expected"]["left_count"])


def test_ties_and_the_side_of_the_threshold() -> None:
    inputs = GOLDEN["V04_percentile_convention"]["inputs"]
    expected = GOLDEN["V04_percentile_convention"]["expected"]
    share = share_below(column(inputs["train"]), inputs["th_train"])
    assert share.value == expected["R_train"]
    for name in ("monotone", "ties"):
        found = percentile(singles(np.array(inputs[f"deploy_{name}"])), share)
        assert found == (expected[f"th_deploy_{name}"], expected[f"left_share_{name}"])
    same = percentile(singles(np.array(inputs["train"])), share)[0]
    assert same == expected["th_deploy_when_deploy_equals_train"]


def test_nested_nodes_count_the_whole_column() -> None:
    inputs = GOLDEN["V11_nested_node"]["inputs"]
    expected = GOLDEN["V11_nested_node"]["expected"]
    train, deploy = np.array(inputs["train"]), np.sort(np.array(inputs["deploy"]), axis=0)
    weights = np.array(inputs["prior_deploy"]) / np.array(inputs["prior_train"])
    columns = [column(train[:, a].tolist(), inputs["labels"]) for a in (0, 1)]
    root, child = inputs["root"], inputs["left_child"]
    plain = [share_below(columns[n["attribute"]], n["threshold"]) for n in (root, child)]
    assert plain[1].value == pytest.approx(expected["share_left_child"]["whole_column"])
    found = [percentile(singles(deploy[:, a]), share)[0] for a, share in enumerate(plain)]
    shifts = expected["no_prior_shift"]
    assert found == [shifts["root_threshold"], shifts["left_child_whole_column"]]
    under = [share_below(columns[n["attribute"]], n["threshold"], weights) for n in (root, child)]
    assert under[0].value == pytest.approx(expected["eq7"]["root_share"])
    assert under[1].value == pytest.approx(expected["eq7"]["left_child_share_whole_column"])
    assert (
        percentile(singles(deploy[:, 1]), under[1])[0]
        == (expected["eq7"]["left_child_threshold_whole_column"])
    )


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(-1, 10))
def test_a_batch_like_the_training_set_is_split_as_it_was(values: list[int], at: int) -> None:
    train = column([float(v) for v in values])
    threshold, attained = percentile(train.singles, share_below(train, at + 0.5))
    left = [v <= at + 0.5 for v in sorted(values)]
    assert [v <= threshold for v in sorted(values)] == left
    assert attained == sum(left) / len(left)


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(0, 40), st.integers(1, 40)
)
def test_the_smallest_value_whose_share_reaches(values: list[int], count: int, size: int) -> None:
    """By trying all of them, with integers."""
    count = min(count, size)
    batch = np.sort(np.array(values, float))
    threshold, _ = percentile(singles(batch), Share(count / size, count, size))
    reaching = [v for v in batch if (batch <= v).sum() * size >= count * len(batch)]
    assert threshold == (min(reaching) if count else -inf)


def test_single_precision_decides_as_the_tree_does() -> None:
    """A threshold from the batch sends the value itself, and its twin, to the left."""
    batch = np.sort(np.array([0.1, 0.1 + 1e-12, 0.7, 0.9]))
    threshold, attained = percentile(singles(batch), Share(0.25, 1, 4))
    assert (batch.astype(np.float32) <= threshold).mean() == attained == 0.5


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=30),
    st.lists(st.integers(-1, 10), min_size=1, max_size=5),
)
def test_class_weighted_shares_are_those_of_counting(
    rows: list[tuple[int, int]], thresholds: list[int]
) -> None:
    weights = np.array([0.5, 1.0, 3.0])
    values = np.array([float(v) for v, _ in rows])
    labels = np.array([label for _, label in rows])
    found = shares_below(TrainingColumn.of(values, labels, 3), np.array(thresholds, float), weights)
    for share, at in zip(found, thresholds, strict=True):
        left = weights[labels[values <= at]].sum()
        assert share.value == pytest.approx(left / weights[labels].sum(), abs=1e-12)
