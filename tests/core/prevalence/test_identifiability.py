import numpy as np

from app.core.prevalence.arrays import Floats
from app.core.prevalence.em import em
from app.core.prevalence.identifiability import (
    degrees_of_freedom,
    undetermined,
    unseen_directions,
)
from app.core.prevalence.likelihood import Likelihood
from tests.golden import GOLDEN

RNG = np.random.default_rng(11)


def rows(classes: int, count: int = 50) -> Floats:
    return RNG.dirichlet(np.ones(classes), count)


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
