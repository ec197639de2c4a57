import numpy as np
import pytest

from app.core.prevalence.estimators.mle import MleResult
from app.core.prevalence.likelihood.likelihood import CHEAP
from app.core.prevalence.replicates import Intervals
from benchmarks.fuzz_likelihood.checks import ends, maximum
from benchmarks.fuzz_likelihood.problems import again, problem
from benchmarks.fuzz_likelihood.run import fuzz


def test_random_problems_by_every_entrance() -> None:
    report = fuzz(map(problem, range(400)))
    assert report.failures == []
    assert report.problems == 400
    assert report.answers > 800


def test_problems_are_of_every_kind() -> None:
    """Labels, weights, calibrations, starts, and one block of rows without a Hessian at hand."""
    some = [problem(number) for number in range(400)]
    assert {2, 100} <= {len(given.source) for given in some}
    for name in ("weights", "labels", "calibration", "start"):
        assert any(getattr(given, name) is not None for given in some)
    blocks = [given.likelihood for given in some if given.likelihood.blocks.few]
    assert any(not likelihood.curved for likelihood in blocks)
    assert any(len(given.posteriors) * len(given.source) ** 2 > CHEAP for given in some)


class TestMaximum:
    GIVEN = problem(7)

    def test_a_good_answer(self) -> None:
        given = self.GIVEN
        assert maximum(given, given.solve()) is None

    def test_another_point(self) -> None:
        wrong = MleResult(self.GIVEN.source, "converged", 1, 1, 1, 0.0, 0.0)
        assert "gap" in str(maximum(self.GIVEN, wrong))

    @pytest.mark.parametrize("factor", [2.0, np.nan])
    def test_off_the_simplex(self, factor: float) -> None:
        wrong = MleResult(factor * self.GIVEN.source, "converged", 1, 1, 1, 0.0, 0.0)
        assert "simplex" in str(maximum(self.GIVEN, wrong))

    def test_another_status(self) -> None:
        wrong = MleResult(self.GIVEN.source, "max-iterations", 1, 1, 1, 0.0, 0.5)
        assert "max-iterations" in str(maximum(self.GIVEN, wrong))

    def test_too_many_passes(self) -> None:
        given = self.GIVEN
        best = given.solve()
        slow = MleResult(best.prevalence, "converged", 99, 31, 21, best.gain, 0.0)
        assert "21 Hessian and 31 gradient" in str(maximum(given, slow))


class TestEnds:
    GIVEN = next(given for given in map(problem, range(99)) if len(given.source) == 2)
    TOP = np.array([0.25, 0.75])

    @pytest.mark.parametrize(
        ("lower", "upper", "wrong"),
        [
            ([0.2, 0.7], [0.3, 0.8], None),
            ([0.2, 0.7], [0.3, 0.9], "mirror"),
            ([0.3, 0.7], [0.3, 0.7], "intervals"),
            ([-0.1, 0.7], [0.3, 1.1], "intervals"),
            ([np.nan, 0.7], [0.3, 0.8], "intervals"),
        ],
    )
    def test_complaints(self, lower: list[float], upper: list[float], wrong: str | None) -> None:
        found = Intervals(np.array(lower), np.array(upper), 0.95)
        said = ends(found, self.TOP, self.GIVEN.likelihood)
        assert (said is None) if wrong is None else (wrong in str(said))


def test_problems_are_reproducible() -> None:
    np.testing.assert_array_equal(problem(123).posteriors, problem(123).posteriors)
    top = problem(123).solve().prevalence
    first, second = (again(problem(123), top, 1) for _ in range(2))
    np.testing.assert_array_equal(first.priors, second.priors)
