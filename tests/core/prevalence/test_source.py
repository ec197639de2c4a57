import numpy as np
import pytest

from app.core.errors import InvalidInput
from app.core.prevalence.estimators.confusion import ConfusionMatrix
from app.core.prevalence.source import Source, ValidationSet, derive

CLASSES = ("a", "b")
LABELS = np.array([0] * 80 + [1] * 20)
POSITIVE = np.concatenate([np.linspace(0.01, 0.6, 80), np.linspace(0.2, 0.95, 20)])
VALIDATION = ValidationSet(LABELS, np.column_stack([1 - POSITIVE, POSITIVE]))


class TestPriors:
    def test_of_a_validation_set_are_its_label_frequencies(self) -> None:
        model = derive(Source(CLASSES, validation=VALIDATION))
        for priors in (model.priors, model.output_priors, model.training_priors):
            np.testing.assert_allclose(priors, [0.8, 0.2])
        calibrated = model.calibration.apply(VALIDATION.posteriors)
        np.testing.assert_allclose(calibrated.mean(axis=0), model.priors, atol=1e-9)

    def test_without_calibration_posteriors_have_their_mean_and_outputs_the_frequency(
        self,
    ) -> None:
        model = derive(Source(CLASSES, validation=VALIDATION, calibration="none"))
        np.testing.assert_allclose(model.priors, VALIDATION.posteriors.mean(axis=0))
        np.testing.assert_allclose(model.output_priors, [0.8, 0.2])

    @pytest.mark.parametrize(
        ("stated", "disagrees"),
        [([0.8, 0.2], False), ([0.75, 0.25], False), ([0.99, 0.01], True), ([0.2, 0.8], True)],
    )
    def test_disagreement_beyond_sampling(self, stated: list[float], disagrees: bool) -> None:
        model = derive(Source(CLASSES, priors=np.array(stated), validation=VALIDATION))
        codes = [warning.code for warning in model.warnings]
        assert codes == (["priors-disagree"] if disagrees else [])

    def test_few_training_rows_disagree_less(self) -> None:
        for counts, disagrees in (([12.0, 8.0], False), ([1200.0, 800.0], True)):
            source = Source(CLASSES, class_counts=np.array(counts), validation=VALIDATION)
            assert bool(derive(source).warnings) == disagrees


class TestConfusion:
    def test_is_derived_from_raw_decisions(self) -> None:
        model = derive(Source(CLASSES, validation=VALIDATION))
        assert model.confusion is not None
        over = POSITIVE > 0.5
        expected = [
            [np.sum(~over[:80]), np.sum(over[:80])],
            [np.sum(~over[80:]), np.sum(over[80:])],
        ]
        np.testing.assert_array_equal(model.confusion.counts, expected)

    def test_a_stated_one_wins_and_bounds_the_reference_size(self) -> None:
        stated = ConfusionMatrix(np.array([[8.0, 2.0], [1.0, 9.0]]))
        model = derive(Source(CLASSES, confusion=stated, outputs=CLASSES, validation=VALIDATION))
        assert model.confusion is stated
        assert model.output_validation_size == 20
        assert model.validation_size == 100


def test_every_class_needs_a_validation_row() -> None:
    with pytest.raises(InvalidInput, match="no row is labelled c"):
        derive(
            Source(
                ("a", "b", "c"),
                validation=ValidationSet(np.array([0, 1]), np.full((2, 3), 1 / 3)),
            )
        )
