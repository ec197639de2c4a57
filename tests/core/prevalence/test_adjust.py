import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.prevalence.adjustment.posteriors import adjust, gains_from_nothing, log_weights
from tests.golden import GOLDEN
from tests.strategies import simplex


class TestAdjust:
    @pytest.mark.parametrize("case", ["1", "3", "4"])
    def test_golden_t03(self, case: str) -> None:
        entry = GOLDEN[f"T03_prior_adjust_exact_{case}"]
        inputs = {k: np.array(v) for k, v in entry["inputs"].items()}
        rows, impossible = adjust(
            inputs["posterior"][None], inputs["prior_train"], inputs["prior_new"]
        )
        np.testing.assert_allclose(
            rows[0], entry["expected"]["posterior_new"], rtol=0, atol=entry["tolerance"]
        )
        assert impossible == 0

    def test_published_even_row_at_known_target(self) -> None:
        rows, _ = adjust(np.array([[0.5, 0.5]]), np.array([0.5, 0.5]), np.array([0.9, 0.1]))
        np.testing.assert_allclose(rows, [[0.9, 0.1]], rtol=0, atol=1e-15)

    def test_golden_t05_ranking_is_not_preserved_for_three_classes(self) -> None:
        entry = GOLDEN["T05_ranking_not_preserved"]
        both = np.array([entry["inputs"]["posterior_a"], entry["inputs"]["posterior_b"]], float)
        ratio = np.array(entry["inputs"]["ratio_new_over_train"], float)
        source = np.array([0.45, 0.45, 0.1])
        target = source * ratio / (source * ratio).sum()
        rows, _ = adjust(both, source, target)
        assert rows[0, 0] == pytest.approx(entry["expected"]["class0_a"], abs=1e-12)
        assert rows[1, 0] == pytest.approx(entry["expected"]["class0_b"], abs=1e-12)
        assert both[1, 0] > both[0, 0]
        assert rows[0, 0] > rows[1, 0]

    def test_a_row_of_impossible_classes_gets_the_target_priors(self) -> None:
        rows, impossible = adjust(
            np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]),
            np.array([0.4, 0.3, 0.3]),
            np.array([0.0, 0.25, 0.75]),
        )
        np.testing.assert_array_equal(rows, [[0, 0.25, 0.75], [0, 1, 0]])
        assert impossible == 1

    def test_extreme_weights_neither_overflow_nor_vanish(self) -> None:
        source, target = np.array([1.0, 1e-200]), np.array([1e-200, 1.0])
        rows, impossible = adjust(np.array([[1.0, 1e-200], [1.0, 0.0]]), source, target)
        np.testing.assert_allclose(rows, [[0.0, 1.0], [1.0, 0.0]], atol=1e-100)
        assert impossible == 0

    def test_the_argument_is_left_alone(self) -> None:
        given_rows = np.array([[0.5, 0.5]])
        adjust(given_rows, np.array([0.5, 0.5]), np.array([0.9, 0.1]))
        np.testing.assert_array_equal(given_rows, [[0.5, 0.5]])

    @given(st.data())
    def test_there_and_back_again(self, data: st.DataObject) -> None:
        classes = data.draw(st.integers(1, 6))
        row, source, target = (data.draw(simplex(classes, smallest=1e-6)) for _ in range(3))
        there, _ = adjust(row[None], source, target)
        back, _ = adjust(there, target, source)
        np.testing.assert_allclose(back[0], row, rtol=1e-9, atol=1e-12)


class TestLogWeights:
    def test_golden_t02_bias_term(self) -> None:
        entry = GOLDEN["T02_bias_term"]
        shift = log_weights(
            np.array(entry["inputs"]["prior_train"]), np.array(entry["inputs"]["prior_new"])
        )
        np.testing.assert_allclose(shift, entry["expected"]["shift"], rtol=0, atol=1e-7)
        bias = np.array(entry["inputs"]["bias"]) + shift
        np.testing.assert_allclose(bias, entry["expected"]["new_bias"], rtol=0, atol=1e-7)

    def test_golden_t01_class_frequencies(self) -> None:
        entry = GOLDEN["T01_class_frequencies"]
        counts = np.array(entry["inputs"]["counts"], float)
        np.testing.assert_allclose(
            np.exp(log_weights(np.ones(4), counts / counts.sum())),
            entry["expected"]["prior"],
            rtol=0,
            atol=entry["tolerance"],
        )

    def test_a_class_at_zero_has_minus_infinity(self) -> None:
        weights = log_weights(np.array([0.5, 0.5, 0.0]), np.array([1.0, 0.0, 0.0]))
        np.testing.assert_array_equal(weights, [np.log(2), -np.inf, -np.inf])

    def test_no_class_gains_from_nothing(self) -> None:
        assert gains_from_nothing(np.array([1.0, 0.0]), np.array([0.5, 0.5]))
        assert not gains_from_nothing(np.array([1.0, 0.0]), np.array([1.0, 0.0]))
