import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.learners.folds import fold_count, stratified_folds


@given(
    st.lists(st.integers(2, 30), min_size=2, max_size=5),
    st.integers(2, 20),
    st.integers(0, 2**32 - 1),
)
def test_every_part_holds_every_class(counts: list[int], asked: int, seed: int) -> None:
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    folds = fold_count(labels, asked)
    assert folds == min(asked, min(counts))
    fold = stratified_folds(labels, folds, seed)
    sizes = np.bincount(fold, minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    for k in range(folds):
        for part in (labels[fold == k], labels[fold != k]):
            assert set(part.tolist()) == set(range(len(counts)))
    for k in range(len(counts)):
        shares = np.bincount(fold[labels == k], minlength=folds)
        assert shares.max() - shares.min() <= 1


def test_the_seed_decides() -> None:
    labels = np.arange(60) % 2
    one, again, other = (stratified_folds(labels, 5, seed) for seed in (1, 1, 2))
    assert (one == again).all()
    assert (one != other).any()


@pytest.mark.parametrize("count", [2, 3])
def test_rare_classes_lower_the_count(count: int) -> None:
    assert fold_count(np.repeat([0, 1], [50, count]), 5) == count
