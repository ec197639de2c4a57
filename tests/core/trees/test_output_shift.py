"""Class shares that shift with the attributes, or instead of them."""

import numpy as np
import pytest

from app.core.arrays import Codes, Floats
from app.core.trees.adapt import adapt
from app.core.trees.batch import SortedBatch
from app.core.trees.ks import effective_size
from app.core.trees.model import VersatileTree
from app.core.trees.options import TreeOptions
from app.core.trees.output_shift import (
    adapt_and_estimate,
    adapt_under,
    labelled_priors,
    leaf_prevalence,
)
from app.training.trees import TreeTraining, grow
from benchmarks.trees_prior_shift import rates

NAMES = ("x", "y", "z")


def draw(seed: int, share: float, rows: int = 2_000) -> tuple[Floats, Codes]:
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < share).astype(np.intp)
    return rng.normal(size=(rows, 3)) + 1.5 * labels[:, None], labels


@pytest.fixture(scope="module")
def model() -> VersatileTree:
    return grow(TreeTraining(*draw(0, 0.5), ("a", "b"), NAMES, (), 5, 20))


def kinds(found: object) -> list[str]:
    return [shift.kind for shift in found.adapted.attributes]  # type: ignore[attr-defined]


def test_prior_shift_alone_is_not_taken_for_a_covariate_shift() -> None:
    found = rates(runs=200, seed=3)
    assert found.ignored > 0.9
    assert 0.03 <= found.known <= 0.065
    assert found.estimated <= 0.065
    assert found.prevalence.mean() == pytest.approx(0.8, abs=0.02)
    assert found.settled > 0.95


def test_known_priors_weigh_moments_and_tests(model: VersatileTree) -> None:
    """Against a training set with the target's shares, drawn row by row."""
    batch, _ = draw(1, 0.8)
    batch[:, 0] = 1.8 * batch[:, 0] + 32
    priors = np.array([0.2, 0.8])
    found = adapt_under(model, SortedBatch(batch), TreeOptions(), priors)
    assert kinds(found) == ["linear", "none", "none"]
    assert found.shift.status == "given"
    column = model.columns[0]
    weights = column.weights(model.class_weights(priors))
    copies = np.round(weights * 1000).astype(int)
    repeated = np.repeat(column.doubles, copies)
    shift = found.adapted.attributes[0]
    assert shift.alpha == pytest.approx(batch[:, 0].std() / repeated.std(), rel=1e-3)
    assert shift.alpha == pytest.approx(1.8, rel=0.05)
    assert shift.beta == pytest.approx(32, abs=0.3)
    assert shift.first is not None
    assert shift.first.effective_size == pytest.approx(effective_size(weights))
    unweighted = adapt(model, SortedBatch(batch), TreeOptions()).attributes[0]
    assert unweighted.beta is not None
    assert abs(unweighted.beta - 32) > 0.3


@pytest.mark.parametrize("moved", [0, 1, 2])
@pytest.mark.parametrize("share", [0.5, 0.8])
def test_both_are_found_together(model: VersatileTree, moved: int, share: float) -> None:
    batch, labels = draw(5, share)
    batch[:, :moved] = 1.8 * batch[:, :moved] + 32
    found, said = adapt_and_estimate(model, SortedBatch(batch), TreeOptions(correction="holm"))
    assert kinds(found) == ["linear"] * moved + ["none"] * (3 - moved)
    assert found.shift.status == "converged"
    assert found.shift.target_priors[1] == pytest.approx(labels.mean(), abs=0.06)
    assert len(found.shift.trace) == found.shift.rounds
    assert said == ()


def test_an_end_of_the_rounds_is_reported(model: VersatileTree) -> None:
    batch, _ = draw(6, 0.8)
    batch[:, :] = np.exp(batch)
    found, said = adapt_and_estimate(model, SortedBatch(batch), TreeOptions(), most_rounds=1)
    assert (found.shift.status, found.shift.rounds) == ("max-rounds", 1)
    assert said[0].code == "output-shift-unsettled"


def test_leaves_tell_the_prevalence(model: VersatileTree) -> None:
    for share in (0.1, 0.5, 0.95):
        rows, labels = draw(7, share, rows=20_000)
        found = leaf_prevalence(model, model.tree.leaves(rows))
        assert found.sum() == pytest.approx(1)
        assert found[1] == pytest.approx(labels.mean(), abs=0.03)


def test_a_class_may_vanish(model: VersatileTree) -> None:
    batch, _ = draw(8, 1.0)
    found = adapt_under(
        model, SortedBatch(batch), TreeOptions(strategy="percentile"), np.array([0.0, 1.0])
    )
    assert all(np.isfinite(change.adapted) for change in found.adapted.thresholds)
    assert not any(shift.shifted for shift in found.adapted.attributes)


def test_labels_of_some_rows_give_the_priors() -> None:
    priors, said = labelled_priors(np.array([0, 1, 1, 1]), 3)
    np.testing.assert_allclose(priors, [0.25, 0.75, 0])
    assert [w.code for w in said] == ["few-labels"]
    assert labelled_priors(np.zeros(30, dtype=np.intp), 2)[1] == ()


def test_class_order_leaves_no_trace() -> None:
    features, labels = draw(9, 0.5, rows=600)
    batch, _ = draw(10, 0.8, rows=600)
    tree = grow(TreeTraining(features, labels, ("a", "b"), NAMES, (), 3, 20)).tree
    found = []
    for codes, classes in ((labels, ("a", "b")), (1 - labels, ("b", "a"))):
        model = VersatileTree.of(tree, features, codes, classes, NAMES)
        search, _ = adapt_and_estimate(model, SortedBatch(batch), TreeOptions())
        found.append(dict(zip(classes, search.shift.target_priors.tolist(), strict=True)))
    assert found[0] == pytest.approx(found[1], abs=1e-6)
