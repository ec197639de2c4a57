"""A small, seeded version of the benchmark, with QuaPy's EM written out in its place."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.emq import (
    SIZES,
    Errors,
    Peer,
    batch,
    compare,
    published,
    quapys_em,
    registered,
    scikit_learn,
    stopped_early,
)
from tests.golden import GOLDEN

EARLY = Peer(
    "EM", lambda given: stopped_early(registered(given)), lambda given: pytest.fail("never asked")
)


@pytest.mark.parametrize(("name", "worst"), [("iris", 0.03), ("breast_cancer", 0.03)])
def test_the_default_is_not_worse_than_an_em_that_stops_early(name: str, worst: float) -> None:
    for errors in compare(name, scikit_learn(name), splits=12, seed=1, peer=EARLY):
        assert errors.upper < 0.01
        assert 0 < errors.ours.mean() < worst
        assert not errors.failed.any()


def test_a_batch_has_the_shares_it_says() -> None:
    rng = np.random.default_rng(1)
    split = scikit_learn("iris")(rng)
    rows, truth = batch(split, 100, rng)
    assert rows.shape == (100, 3)
    np.testing.assert_allclose(truth.sum(), 1.0, atol=1e-12)
    assert set(map(tuple, rows)) <= set(map(tuple, split.pool))


def test_published_posteriors_are_split_in_halves(tmp_path: Path) -> None:
    posteriors = np.random.default_rng(2).dirichlet(np.ones(4), 40).astype(np.float32)
    target = np.arange(40, dtype=np.uint8) % 4
    np.savez(tmp_path / "some.npz", posteriors=posteriors, target=target)
    split = published(tmp_path / "some.npz")(np.random.default_rng(3))
    both = np.concatenate([split.validation.posteriors, split.pool])
    assert len(split.pool) == len(split.validation.labels) == 20
    np.testing.assert_allclose(both.sum(axis=1), 1.0, atol=1e-15)
    assert sorted(np.concatenate([split.validation.labels, split.labels])) == sorted(target)


def test_an_em_with_time_reaches_the_maximum() -> None:
    golden = GOLDEN["L04_em_C3_N6_interior"]
    given = golden["inputs"]
    found = quapys_em(np.array(given["prior_train"]), np.array(given["posterior"]))
    np.testing.assert_allclose(found, golden["expected"]["prior_hat"], atol=0.01)


def test_a_peer_that_fails_falls_back_and_is_counted() -> None:
    failing = Peer("never", lambda given: lambda rows: np.full(3, np.nan), EARLY.fitted)
    found = list(compare("iris", scikit_learn("iris"), splits=3, seed=1, peer=failing))
    assert [errors.failed.sum() for errors in found] == [3] * len(SIZES)
    assert all(np.array_equal(errors.peer, errors.early) for errors in found)


def test_the_interval_is_of_the_paired_difference() -> None:
    peer = np.array([0.1, 0.2, 0.3])
    ours = peer + np.array([0.01, 0.02, 0.03])
    errors = Errors("set", 100, ours, peer, peer, np.zeros(3, np.bool_))
    mean, half = errors.difference
    assert mean == pytest.approx(0.02)
    assert half == pytest.approx(1.96 * 0.01 / 3**0.5)
    assert errors.upper == pytest.approx((mean + half) / 0.2)
