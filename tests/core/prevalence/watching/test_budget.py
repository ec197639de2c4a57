import pytest
from scipy.stats import norm

from app.core.prevalence.watching.budget import (
    LARGEST,
    Budget,
    advice,
    level_per_stream,
    level_per_window,
    power_loss,
    smallest_shift,
)

MONTH = Budget(1, 30 * 86400)


class TestLevel:
    def test_one_false_alarm_a_month_among_ten_segments_by_the_hour(self) -> None:
        assert MONTH.windows(3600) == 720
        assert level_per_window(MONTH, 720, 10) == pytest.approx(1 / 7200)

    def test_runs_of_rejections_may_be_rejected_more_easily(self) -> None:
        assert level_per_window(MONTH, 720, 10, 2) == pytest.approx(7200**-0.5)

    def test_the_expected_number_of_runs_keeps_the_budget(self) -> None:
        """A Markov chain of two states: the runs of k that are completed in W windows."""
        level, windows, k = level_per_window(MONTH, 720, 1, 3), 720, 3
        at, alerts = [1.0] + [0.0] * k, 0.0
        for _ in range(windows):
            rejected = [level * mass for mass in at]
            alerts += rejected[k - 1]
            stay = rejected[k]
            at = [1 - sum(rejected), *rejected[:-1]]
            at[k] += stay
        assert 0.8 < alerts <= 1

    def test_no_level_is_beyond_what_anybody_would_call_evidence(self) -> None:
        assert level_per_window(Budget(100, 3600), 1, 1) == LARGEST
        assert level_per_stream(Budget(100, 3600), 1) == LARGEST

    def test_streams_that_start_again_share_the_budget(self) -> None:
        level = level_per_stream(Budget(0.2, 3600), 10)
        assert 10 * level / (1 - level) == pytest.approx(0.2)


class TestAdvice:
    def test_comfortable(self) -> None:
        assert advice(10_000, 1000, 1e-4) == ()

    def test_few_validation_rows(self) -> None:
        (found,) = advice(1000, 1000, 1 / 7200)
        factor = power_loss(1000, 1000, 1 / 7200)
        assert found.code == "small-validation-set"
        assert factor == pytest.approx(1 + norm.isf(0.05) / norm.isf(0.5 / 7200))
        assert "43% larger" in found.message

    def test_no_validation_rows(self) -> None:
        assert [found.code for found in advice(None, 1000, 1e-4)] == ["no-validation-set"]

    def test_the_shift_found_half_the_time(self) -> None:
        assert smallest_shift(0.05) == pytest.approx(1.959964, rel=1e-6)
