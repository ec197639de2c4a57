import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score, recall_score

from app.core.prevalence import measures
from app.core.prevalence.measures import Bins
from tests.golden import GOLDEN
from tests.strategies import simplex


class TestShares:
    def test_golden_s01_nae(self) -> None:
        entry = GOLDEN["S01_nae"]
        for (true, estimated), expected in zip(
            entry["inputs"]["pairs"], entry["expected"]["nae"], strict=True
        ):
            found = measures.normalised_absolute_error(
                np.array(true, float), np.array(estimated, float)
            )
            assert found == pytest.approx(expected, abs=1e-12)

    def test_golden_t11_the_sum_of_squares(self) -> None:
        entry = GOLDEN["T11_mse_is_a_sum"]
        p, q = np.array(entry["inputs"]["p"]), np.array(entry["inputs"]["p_hat"])
        found = measures.squared_error_sum(p, q)
        assert found == pytest.approx(entry["expected"]["mse_as_defined"], abs=1e-12)

    def test_golden_s11_absolute_error(self) -> None:
        entry = GOLDEN["S11_stopping_rule"]
        old, new = np.array(entry["inputs"]["p_old"]), np.array(entry["inputs"]["p_new"])
        found = measures.absolute_error(old, new)
        assert found == pytest.approx(entry["expected"]["AE"], abs=1e-12)

    @given(st.integers(1, 6), st.data())
    @settings(deadline=None)
    def test_ranges_and_zero_at_equality(self, classes: int, data: st.DataObject) -> None:
        p, q = (data.draw(simplex(classes)) for _ in range(2))
        for measure in (
            measures.absolute_error,
            measures.normalised_absolute_error,
            measures.hellinger,
            measures.total_variation,
            measures.squared_error_sum,
        ):
            assert measure(p, p) == pytest.approx(0, abs=1e-7)
            assert 0 <= measure(p, q) <= 2 + 1e-9
        assert measures.normalised_absolute_error(p, q) <= 1 + 1e-9
        assert measures.kullback_leibler(p, q, 100) >= -1e-12
        assert measures.relative_absolute_error(p, p, 100) == 0
        assert -1e-12 <= measures.entropy(p) <= 1 + 1e-12

    def test_entropy_of_even_shares_is_one(self) -> None:
        assert measures.entropy(np.full(4, 0.25)) == pytest.approx(1)
        assert measures.entropy(np.array([1.0, 0.0])) == 0


class TestBrier:
    @pytest.mark.parametrize("classifier", ["perfect", "fence", "perverse"])
    def test_golden_s02(self, classifier: str) -> None:
        entry = GOLDEN[f"S02_brier_{classifier}"]
        labels = np.array([0] * 50 + [1] * 50)
        rows = {
            "perfect": np.eye(2)[labels],
            "fence": np.full((100, 2), 0.5),
            "perverse": np.eye(2)[1 - labels],
        }[classifier]
        bins: Bins
        for bins in ("equal-length", "equal-count"):
            found = measures.brier(rows, labels, bins)
            assert found.brier == pytest.approx(entry["expected"]["brier"], abs=1e-12)
            assert found.calibration_error == pytest.approx(entry["expected"]["CE"], abs=1e-12)
            assert found.refinement_error == pytest.approx(entry["expected"]["RE"], abs=1e-12)

    def test_golden_s03_decomposition(self) -> None:
        entry = GOLDEN["S03_brier_decomposition_equal_length"]
        positive = np.array(entry["inputs"]["posterior_class1"])
        rows, labels = (
            np.column_stack([1 - positive, positive]),
            np.array(entry["inputs"]["labels"]),
        )
        found = measures.brier(rows, labels, count=entry["inputs"]["b"])
        expected = entry["expected"]
        assert found.brier == pytest.approx(expected["brier"], abs=1e-12)
        assert found.calibration_error == pytest.approx(expected["CE"], abs=1e-12)
        assert found.refinement_error == pytest.approx(expected["RE"], abs=1e-12)
        remainder = expected["within_bin_variance"] - 2 * expected["within_bin_covariance"]
        assert found.remainder == pytest.approx(remainder, abs=1e-12)

    def test_golden_s06_ranges(self) -> None:
        entry = GOLDEN["S06_brier_range"]
        for classes, worst in zip(
            entry["inputs"]["classes"], entry["expected"]["max_brier"], strict=True
        ):
            labels = np.arange(classes)
            wrong = np.eye(classes)[(labels + 1) % classes]
            assert measures.brier(wrong, labels).brier == pytest.approx(worst)

    def test_edges_of_bins_are_half_open(self) -> None:
        values = np.array([0.0, 0.1, 0.3, 0.6, 0.7, 0.9, 1.0])
        np.testing.assert_array_equal(
            measures._bin(values, "equal-length", 10), [0, 1, 3, 6, 7, 9, 9]
        )

    def test_equal_counts_keep_ties_together_whatever_the_order(self) -> None:
        labels = np.array([0] * 50 + [1] * 50)
        found = measures.brier(np.full((100, 2), 0.5), labels, "equal-count")
        assert found.calibration_error == 0
        values = np.array([0.1, 0.5, 0.5, 0.5, 0.9, 0.95])
        np.testing.assert_array_equal(measures._bin(values, "equal-count", 3), [0, 0, 0, 0, 2, 2])


class TestDecisions:
    @pytest.mark.parametrize("case", ["1", "2", "3"])
    def test_golden_t12(self, case: str) -> None:
        entry = GOLDEN[f"T12_f1_{case}"]
        found = measures.decision_quality(np.array(entry["inputs"]["confusion_rows_actual"]))
        expected = entry["expected"]
        assert found.recall[1] == pytest.approx(expected["recall_w1"], abs=1e-9)
        assert found.precision[1] == pytest.approx(expected["precision_w1"], abs=1e-9)
        assert found.f1[1] == pytest.approx(expected["f1_w1"], abs=1e-9)
        assert found.macro_f1 == pytest.approx(expected["f1_macro"], abs=1e-9)
        assert found.accuracy == pytest.approx(expected["f1_micro_equals_accuracy"], abs=1e-9)

    def test_against_scikit_learn_with_a_class_never_decided(self) -> None:
        labels, decided = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 1, 1, 0, 1])
        counts = np.zeros((3, 3))
        np.add.at(counts, (labels, decided), 1)
        found = measures.decision_quality(counts)
        options = {"average": None, "zero_division": 0}
        np.testing.assert_allclose(found.precision, precision_score(labels, decided, **options))
        np.testing.assert_allclose(found.recall, recall_score(labels, decided, **options))
        np.testing.assert_allclose(found.f1, f1_score(labels, decided, **options))


def test_log_loss() -> None:
    rows, labels = np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([0, 0])
    assert measures.log_loss(rows, labels) == pytest.approx(-np.log(0.5 * 0.9) / 2)
    assert measures.log_loss(np.array([[1.0, 0.0]]), np.array([1])) == np.inf
