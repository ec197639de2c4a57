import numpy as np
import pytest
from scipy.stats import chi2

from app.core.prevalence.estimators.em import em
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.numerics.chi_square import upper_tail
from app.core.prevalence.tests.shift import likelihood_ratio_test
from tests.golden import GOLDEN


class TestGolden:
    def test_l07_one_hot_rows_give_the_g_statistic(self) -> None:
        entry = GOLDEN["L07_lr_onehot_is_G_test"]
        posteriors = np.eye(3)[[0] * 5 + [1] * 3 + [2] * 2]
        likelihood = Likelihood.of(posteriors, np.array(entry["inputs"]["prior_train"]))
        result = em(likelihood, 1e-14)
        test = likelihood_ratio_test(result.gain, 10, 2, 0.3, None)
        np.testing.assert_allclose(result.prevalence, entry["expected"]["prior_hat"], atol=1e-10)
        assert test.statistic == pytest.approx(entry["expected"]["lr_statistic"], abs=1e-10)
        assert test.p_value == pytest.approx(entry["expected"]["p_value"], abs=1e-10)
        assert test.reference == "chi-square"

    def test_l11_scaled_by_the_validation_set(self) -> None:
        entry = GOLDEN["L11_lr_scaled_two_sample"]
        given, expected = entry["inputs"], entry["expected"]
        gain = given["lr_statistic"] / 2 / given["N_target"]
        test = likelihood_ratio_test(
            gain, given["N_target"], given["df"], 0.1, given["n_calibration"]
        )
        assert test.scale == pytest.approx(expected["scale"], abs=1e-12)
        assert test.statistic / test.scale == pytest.approx(expected["lr_scaled"], abs=1e-12)
        assert test.p_value == pytest.approx(expected["p_value"], abs=1e-12)
        assert test.raw_p_value == pytest.approx(expected["p_value_unscaled"], abs=1e-12)
        assert test.reference == "scaled-chi-square"

    @pytest.mark.parametrize("name", ["L01_em_C2_N2_exact", "L04_em_C3_N6_interior"])
    def test_p_values_of_maxima(self, name: str) -> None:
        expected = GOLDEN[name]["expected"]
        p = upper_tail(expected["lr_statistic"], expected["df"])
        assert p == pytest.approx(expected["p_value"], abs=1e-12)


class TestDecision:
    def test_needs_the_minimum_effect_too(self) -> None:
        loud = likelihood_ratio_test(0.1, 1000, 1, 0.05, None, minimum_effect=0.1)
        assert loud.p_value < 1e-6
        assert not loud.detected
        assert likelihood_ratio_test(0.1, 1000, 1, 0.15, None, minimum_effect=0.1).detected

    def test_nothing_can_vary(self) -> None:
        test = likelihood_ratio_test(0.0, 10, 0, 0.0, None)
        assert test.p_value == 1
        assert not test.detected

    def test_tails_agree_with_scipy_stats(self) -> None:
        for df in (1, 2, 9, 99):
            for x in (0.0, 0.5, 10.0, 300.0):
                assert upper_tail(x, df) == pytest.approx(chi2.sf(x, df), rel=1e-12)
