import numpy as np
import pytest
from scipy.stats import chi2

from app.core.prevalence.calibration.maps import Method
from app.core.prevalence.estimators.confusion import ConfusionMatrix
from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.source import Source, ValidationSet, derive
from app.core.prevalence.watching.source_set import SourceSet
from tests.core.prevalence.watching.examples import draw, registered

TWO, THREE = np.array([0.9, 0.1]), np.array([0.7, 0.2, 0.1])


class TestPosteriors:
    @pytest.mark.parametrize("distance", [1.0, 2.0, 4.0])
    @pytest.mark.parametrize("calibration", ["bcts", "none"])
    def test_the_ends_are_those_of_the_validation_rows_own_likelihood(
        self, distance: float, calibration: Method
    ) -> None:
        rng = np.random.default_rng(3)
        model, rows, _ = registered(rng, 20_000, TWO, distance, calibration)
        sources = SourceSet.of(model)
        own = Likelihood.of(rows, model.priors, calibration=model.calibration)
        for end in sources.interval:
            deviance = -2 * len(rows) * own.gain(np.array([1 - end, end]))
            assert deviance == pytest.approx(chi2.ppf(0.9, 1), rel=0.1)
            assert sources.distance(np.array([1 - end, end])) == pytest.approx(sources.limit)

    def test_has_the_information_of_the_validation_rows_for_three_classes(self) -> None:
        model, rows, _ = registered(np.random.default_rng(4), 30_000, THREE, 2.0)
        own = Likelihood.of(rows, model.priors, calibration=model.calibration)
        H, _ = own.hessian(model.priors)
        sources = SourceSet.of(model)
        np.testing.assert_allclose(sources.information, H, rtol=0.03)
        assert sources.rows == pytest.approx(30_000, rel=0.03)
        assert sources.degrees_of_freedom == 2
        assert sources.limit == pytest.approx(chi2.ppf(0.9, 2))

    def test_holds_the_effective_priors_of_nine_sources_in_ten(self) -> None:
        """p*: what a very large batch without a shift is estimated at."""
        rng = np.random.default_rng(5)
        _, batch = draw(rng, 200_000, TWO, 2.0, TWO)
        inside = 0
        for _ in range(200):
            model, _, _ = registered(rng, 500, TWO, 2.0)
            sources = SourceSet.of(model)
            found = mle(Likelihood.of(batch, model.priors, calibration=model.calibration))
            inside += sources.distance(found.prevalence) <= sources.limit
        # 90 % ± 2.1 %, and three times that.
        assert 0.836 <= inside / 200 <= 0.964

    def test_a_class_of_which_there_is_nothing_stays_out(self) -> None:
        given = Source(("a", "b", "c"), priors=np.array([0.5, 0.5, 0.0]))
        sources = SourceSet.of(derive(given))
        assert sources.exact
        assert sources.degrees_of_freedom == 1

    def test_the_ends_stay_on_the_simplex(self) -> None:
        labels = np.array([0] * 60 + [1], np.intp)
        rows = np.column_stack([np.where(labels == 0, 0.99, 0.3), np.where(labels == 0, 0.01, 0.7)])
        model = derive(Source(("a", "b"), validation=ValidationSet(labels, rows)))
        low, high = SourceSet.of(model).interval
        assert 0 <= low < 1 / 61 < high < 1


class TestOutputs:
    counts = np.array([[900.0, 100.0], [30.0, 70.0]])

    def test_validation_rows_count_as_they_are(self) -> None:
        model, _, _ = registered(np.random.default_rng(6), 4000, TWO, 2.0)
        sources = SourceSet.of(model, outputs=True)
        assert model.confusion is not None
        np.testing.assert_allclose(sources.conditional, model.confusion.conditional)
        assert sources.rows == 4000

    def test_a_bare_confusion_matrix_varies_by_its_counts(self) -> None:
        given = Source(
            ("a", "b"), priors=TWO, confusion=ConfusionMatrix(self.counts), outputs=("a", "b")
        )
        sources = SourceSet.of(derive(given), outputs=True)
        low, high = sources.interval
        # The delta method: θ* = (v − m0) / (m1 − m0) with v the true share of output b.
        m0, m1 = 0.1, 0.7
        v = 0.9 * m0 + 0.1 * m1
        variance = 0.9**2 * m0 * (1 - m0) / 1000 + 0.1**2 * m1 * (1 - m1) / 100
        error = np.sqrt(variance) / (m1 - m0)
        assert high - low == pytest.approx(2 * np.sqrt(chi2.ppf(0.9, 1)) * error, rel=0.05)
        assert low < 0.1 < high
        assert v < 0.2
