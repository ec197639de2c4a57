"""A small, seeded version of the benchmark on made-up documents."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array

from app.core.prevalence.measures import entropy
from benchmarks.sld.corpus import inverse_document_frequency, synthetic, weighted
from benchmarks.sld.outcome import Outcome, Trials, trials
from benchmarks.sld.protocol import FEWEST, normalised_uniforms, trial
from benchmarks.sld.tables import (
    Reduction,
    brier,
    calibration,
    details,
    exact,
    nae,
    quartiles,
    stepped,
    summary,
    with_calibration,
)
from tests.golden import GOLDEN

# Classes with fewer documents than folds belong to the protocol.
pytestmark = pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")

CORPUS = synthetic()


@cache
def measured() -> Trials:
    return trials(CORPUS, classes=3, size=120, count=4, seed=1)


class TestWeights:
    GOLDEN = GOLDEN["S07_tfidf"]
    COUNTS = csr_array(np.array(GOLDEN["inputs"]["counts"], np.float64))

    def test_are_those_of_the_corrected_formula(self) -> None:
        idf = inverse_document_frequency(self.COUNTS)
        found = weighted(self.COUNTS, idf).toarray()
        expected = self.GOLDEN["expected"]
        np.testing.assert_allclose(found, expected["one_plus_log_normalised"], atol=1e-12)
        assert np.abs(found - expected["as_printed_normalised"]).max() > 0.4

    def test_of_a_document_of_words_that_say_nothing_are_zero(self) -> None:
        counts = csr_array(np.array([[1.0, 0.0], [2.0, 3.0]]))
        found = weighted(counts, inverse_document_frequency(counts)).toarray()
        np.testing.assert_allclose(found, [[0.0, 0.0], [0.0, 1.0]])


def test_priors_are_normalised_uniforms() -> None:
    golden = GOLDEN["S10_prior_sampling_entropy"]
    rng = np.random.default_rng(1)
    for classes, expected, dirichlet in zip(
        golden["inputs"]["classes"],
        golden["expected"]["mean_entropy"],
        golden["expected"]["uniform_dirichlet_closed_form"],
        strict=True,
    ):
        found = np.mean([entropy(normalised_uniforms(classes, rng)) for _ in range(4000)])
        assert found == pytest.approx(expected, abs=golden["tolerance"])
        assert found > dirichlet + 0.05


@pytest.mark.parametrize("classes", [2, 3, 8])
def test_a_trial_takes_no_document_twice(classes: int) -> None:
    given = trial(CORPUS, classes, 100, np.random.default_rng(classes))
    rows = np.concatenate([given.training, given.batch])
    assert len(set(rows.tolist())) == len(rows)
    assert len(given.batch) == 100
    assert np.bincount(given.training_labels, minlength=classes).min() >= FEWEST
    for labels, some in ((given.training_labels, given.training), (given.labels, given.batch)):
        own = [set(CORPUS.labels[some[labels == k]].tolist()) for k in range(classes)]
        assert all(len(one) <= 1 for one in own[:-1])
    assert 0 <= given.shift <= 1


class TestOutcomes:
    def test_the_svm_is_always_calibrated(self) -> None:
        svm = {one.calibration for one in measured().outcomes if one.learner == "SVM"}
        assert svm == {"platt", "bcts"}
        assert len(measured().outcomes) == 4 * 11

    def test_the_optimum_is_certified_and_em_stops_before_it(self) -> None:
        outcomes = measured().outcomes
        assert max(one.gap_exact for one in outcomes) <= 1e-8
        assert all(one.gap >= 0 for one in outcomes)
        assert max(one.gap for one in outcomes) > 1e-6

    def test_a_converged_em_is_where_the_optimum_is(self) -> None:
        outcomes = with_calibration(measured().outcomes, "bcts")
        apart = [abs(one.em.nae - one.exact.nae) for one in outcomes if one.converged]
        assert len(apart) > 0
        assert np.median(apart) < 2e-3

    @pytest.mark.parametrize("side", [stepped, exact])
    def test_adjusting_calibrated_posteriors_of_few_classes_helps(self, side: object) -> None:
        outcomes = with_calibration(measured().outcomes, "bcts")
        for part in (nae, brier, calibration):
            assert Reduction.of(outcomes, part, stepped if side is stepped else exact).value > 0

    def test_calibration_first_leaves_the_smaller_error(self) -> None:
        def error(outcomes: list[Outcome]) -> float:
            return float(np.mean([one.exact.nae for one in outcomes if one.learner != "SVM"]))

        outcomes = measured().outcomes
        bare = error(with_calibration(outcomes, "none"))
        assert error(with_calibration(outcomes, "bcts")) < bare


def test_tables_have_a_line_for_everything() -> None:
    some = measured()
    assert len(details(some).splitlines()) == 2 + 11
    assert len(summary([some]).splitlines()) == 2 + 3
    again = tuple(replace(one, trial=one.trial + some.count) for one in some.outcomes)
    twice = replace(some, outcomes=some.outcomes + again)
    assert len(quartiles([twice]).splitlines()) == 2 + 4
