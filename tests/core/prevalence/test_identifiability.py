import numpy as np
import pytest

from app.core.arrays import Floats
from app.core.prevalence.estimators.em import em
from app.core.prevalence.likelihood.identifiability import (
    definite,
    degrees_of_freedom,
    nearest,
    null_directions,
    taking_part,
    unseen_directions,
)
from app.core.prevalence.likelihood.likelihood import Likelihood
from tests.golden import GOLDEN

RNG = np.random.default_rng(11)


def rows(classes: int, count: int = 50) -> Floats:
    return RNG.dirichlet(np.ones(classes), count)


def undetermined(likelihood: Likelihood, prevalence: Floats) -> tuple[int, ...]:
    """Positions of the classes whose shares could be exchanged without changing the maximum."""
    return taking_part(unseen_directions(likelihood, prevalence > 1e-9))


class TestDegreesOfFreedom:
    def test_generic_rows_have_one_less_than_classes(self) -> None:
        for classes in (1, 2, 3, 6):
            likelihood = Likelihood.of(rows(classes), RNG.dirichlet(np.ones(classes)))
            assert degrees_of_freedom(likelihood) == classes - 1

    def test_golden_l08_constant_rows_have_none(self) -> None:
        source = np.array(GOLDEN["L08_lr_uninformative"]["inputs"]["prior_train"])
        likelihood = Likelihood.of(np.tile(source, (20, 1)), source)
        assert degrees_of_freedom(likelihood) == 0
        assert undetermined(likelihood, source) == (0, 1, 2)

    def test_twins_count_once(self) -> None:
        pair = rows(2)
        source = np.array([0.4, 0.2, 0.4])
        split = np.column_stack([pair[:, 0], pair[:, 1] / 3, pair[:, 1] * 2 / 3])
        likelihood = Likelihood.of(split, source)
        assert degrees_of_freedom(likelihood) == 1
        result = em(likelihood)
        assert undetermined(likelihood, result.prevalence) == (1, 2)
        ratio = result.prevalence[2] / result.prevalence[1]
        np.testing.assert_allclose(ratio, 2, rtol=1e-9)

    def test_columns_in_proportion_are_not_twins(self) -> None:
        posteriors = rows(2)
        likelihood = Likelihood.of(
            np.column_stack([posteriors[:, 0], posteriors[:, 1] / 2, posteriors[:, 1] / 2]),
            np.array([0.5, 0.1, 0.4]),
        )
        assert degrees_of_freedom(likelihood) == 2

    def test_a_class_that_no_row_may_be_still_counts(self) -> None:
        posteriors = np.column_stack([rows(2), np.zeros(50)])
        likelihood = Likelihood.of(posteriors, np.array([0.4, 0.4, 0.2]))
        assert degrees_of_freedom(likelihood) == 2
        assert undetermined(likelihood, em(likelihood).prevalence) == ()

    def test_rare_and_distinct_classes_count(self) -> None:
        source = np.array([1 - 1e-5, 1e-5])
        positive = 10.0 ** RNG.uniform(-9, -4, 100)
        likelihood = Likelihood.of(np.column_stack([1 - positive, positive]), source)
        assert degrees_of_freedom(likelihood) == 1

    def test_zero_source_priors_do_not_count(self) -> None:
        likelihood = Likelihood.of(rows(3), np.array([0.5, 0.5, 0.0]))
        assert degrees_of_freedom(likelihood) == 1

    def test_outputs_have_rank_minus_one(self) -> None:
        twins = np.array([[0.9, 0.2, 0.2], [0.1, 0.8, 0.8]])
        likelihood = Likelihood.of_outputs(twins, np.full(3, 1 / 3), np.ones(2))
        assert degrees_of_freedom(likelihood) == np.linalg.matrix_rank(twins) - 1


def test_unseen_directions_leave_every_density_alone() -> None:
    pair = rows(2)
    split = np.column_stack([pair[:, 0], pair[:, 1] / 3, pair[:, 1] * 2 / 3])
    source = np.array([0.4, 0.2, 0.4])
    basis = unseen_directions(Likelihood.of(split, source))
    assert basis.shape == (3, 1)
    np.testing.assert_allclose(split / source @ basis, 0, atol=1e-12)
    np.testing.assert_allclose(basis.sum(axis=0), 0, atol=1e-12)


def test_a_hessian_anywhere_shows_the_same_directions() -> None:
    pair = rows(2)
    split = np.column_stack([pair[:, 0], pair[:, 1] / 3, pair[:, 1] * 2 / 3])
    likelihood = Likelihood.of(split, np.array([0.4, 0.2, 0.4]))
    elsewhere, _ = likelihood.hessian(np.array([0.1, 0.8, 0.1]))
    everything = np.ones(3, bool)
    found = null_directions(elsewhere, everything)
    np.testing.assert_allclose(np.abs(found[:, 0]), [0, np.sqrt(0.5), np.sqrt(0.5)], atol=1e-6)
    assert not definite(elsewhere, everything)
    assert definite(elsewhere, np.array([True, True, False]))
    assert null_directions(elsewhere, np.array([True, False, False])).shape == (3, 0)


class TestNearest:
    TWINS = np.array([[0.0], [1.0], [-1.0]]) / np.sqrt(2)
    SOURCE = np.array([0.4, 0.15, 0.45])

    def test_twins_in_proportion_whatever_the_start(self) -> None:
        for start in ([0.2, 0.8, 0.0], [0.2, 0.0, 0.8], [0.2, 0.799, 0.001]):
            p = nearest(np.array(start), self.TWINS, self.SOURCE)
            np.testing.assert_allclose(p, [0.2, 0.2, 0.6], atol=1e-12)

    def test_nothing_to_share(self) -> None:
        p = nearest(np.array([1.0, 0.0, 0.0]), self.TWINS, self.SOURCE)
        np.testing.assert_array_equal(p, [1, 0, 0])

    def test_no_point_of_the_flat_has_a_smaller_divergence(self) -> None:
        basis, _ = np.linalg.qr(RNG.normal(size=(6, 3)) - RNG.normal(size=(1, 3)))
        basis -= basis.mean(axis=0)
        source, start = RNG.dirichlet(np.ones(6)), RNG.dirichlet(np.full(6, 5.0))
        p = nearest(start, basis, source)

        def divergence(q: Floats) -> float:
            return float(q @ np.log(q / source))

        assert p.sum() == pytest.approx(1)
        for _ in range(200):
            other = p + basis @ RNG.normal(size=3) * 0.01
            if (other > 0).all():
                assert divergence(p) <= divergence(other)
