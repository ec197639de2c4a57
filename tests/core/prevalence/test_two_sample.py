import numpy as np
import pytest

from app.core.prevalence.calibration import Method, Scaling, fit, scaling
from app.core.prevalence.calibration.false_alarms import raw_false_alarm_rate
from app.core.prevalence.tests import two_sample
from benchmarks.coverage import Setting, draw
from tests.golden import GOLDEN

SETTING = Setting("", (0.8, 0.2), (0.8, 0.2), 300, 2.0, 1, overconfidence=2.0)


class TestNull:
    @pytest.mark.parametrize("method", ["bcts", "none"])
    def test_is_about_the_scaled_chi_square(self, method: str) -> None:
        labels, rows = draw(np.random.default_rng(0), SETTING, SETTING.source, 400)
        calibration = scaling("bcts", rows, labels) if method == "bcts" else Scaling.identity(2)
        null = two_sample.null_statistics(800, rows, labels, calibration, seed=1)
        assert null.mean() == pytest.approx(1 + 800 / 400, rel=0.2)
        again = two_sample.null_statistics(800, rows, labels, calibration, seed=1)
        np.testing.assert_array_equal(null, again)

    def test_a_class_may_fall_out_of_a_resample(self) -> None:
        rng = np.random.default_rng(1)
        rows = rng.dirichlet([3, 1], 30)
        labels = np.array([0] * 29 + [1])
        null = two_sample.null_statistics(
            20, rows, labels, scaling("bcts", rows, labels), 0, replicates=60
        )
        assert np.isfinite(null).all()
        assert (null >= 0).all()

    @pytest.mark.parametrize("rarest", [0.0, 5e-324, 1e-308, 1e-30, 1e-13])
    @pytest.mark.parametrize("method", ["none", "temperature", "bcts"])
    def test_a_class_of_hardly_any_share(self, rarest: float, method: Method) -> None:
        rows = np.random.default_rng(2).dirichlet([2, 1, 0], 40)
        rows[:, 2] = rarest
        labels = np.array([0] * 20 + [1] * 19 + [2])
        null = two_sample.null_statistics(50, rows, labels, fit(method, rows, labels), 0, 20)
        assert np.isfinite(null).all()
        assert (null >= 0).all()

    def test_p_values_count_the_statistic_itself(self) -> None:
        null = np.array([1.0, 2.0, 3.0])
        assert two_sample.p_value(4.0, null) == 0.25
        assert two_sample.p_value(2.0, null) == 0.75


class TestPredictedFalseAlarms:
    @pytest.mark.parametrize("case", ["1", "3", "4"])
    def test_golden_l12(self, case: str) -> None:
        entry = GOLDEN[f"L12_false_alarm_prediction_{case}"]
        given = entry["inputs"]
        gap = given["mean_posterior_gap"] * np.array([1.0, -1.0])
        moment = given["second_moment_about_prior"] * np.array([[1.0, -1.0], [-1.0, 1.0]])
        rate = raw_false_alarm_rate(gap, moment, given["N"], given["level"])
        assert rate == pytest.approx(entry["expected"]["rejection_probability"], abs=1e-9)

    def test_no_gap_is_the_level(self) -> None:
        moment = np.diag([0.2, 0.1, 0.0])
        assert raw_false_alarm_rate(np.zeros(3), moment, 100, 0.05) == pytest.approx(0.05)
        assert raw_false_alarm_rate(np.zeros(1), np.zeros((1, 1)), 100, 0.05) == 0.05

    def test_rounding_of_the_moment_is_no_endless_shift(self) -> None:
        """Where V is rounding, δᵀV⁻δ may be anything; chi-square's tail ends before that."""
        rate = raw_false_alarm_rate(np.array([1e-3, -1e-3]), np.eye(2) * 1e-40, 1e6, 0.05)
        assert rate == pytest.approx(1)
