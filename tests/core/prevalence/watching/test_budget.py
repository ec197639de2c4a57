import numpy as np
import pytest
from scipy.stats import norm, poisson

from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.watching.budget import (
    LARGEST,
    Budget,
    advice,
    level_per_stream,
    level_per_window,
    power_loss,
    smallest_shift,
)
from app.core.prevalence.watching.source_set import SourceSet
from app.core.prevalence.watching.window import window_test

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

    def test_a_period_that_is_to_keep_the_budget_rather_than_the_average(self) -> None:
        level = level_per_window(MONTH, 720, 10, certainty=0.9)
        assert poisson.cdf(1, 7200 * level) == pytest.approx(0.9)
        assert 0.5 < 7200 * level < 0.6

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

    @pytest.mark.parametrize(
        ("rows", "words"),
        [(100, "not when it vanishes; that takes 723 rows"), (1, "take 2 rows"), (723, None)],
    )
    def test_what_no_window_can_show(self, rows: int, words: str | None) -> None:
        """Windows whose every row is certain, by the test itself."""
        priors = np.array([0.99, 0.01])
        found = advice(1e9, rows, 1 / 7200, priors)
        assert [warning.code for warning in found] == ["level-out-of-reach"] * (words is not None)
        if words is not None:
            assert words in found[0].message
        sources = SourceSet(priors, np.eye(2), np.inf, 0.1)
        reached = []
        for counts in ([0.0, rows], [rows, 0.0]):
            window = Likelihood.of_outputs(np.eye(2), priors, np.array(counts, np.float64))
            reached.append(window_test(window, mle(window), sources, 1 / 7200).detected)
        assert reached == [rows > 1, rows == 723]

    def test_the_shift_found_half_the_time(self) -> None:
        assert smallest_shift(0.05) == pytest.approx(1.959964, rel=1e-6)
