import numpy as np

from app.core.prevalence.mle import MleResult
from benchmarks.fuzz_likelihood import complaint, fuzz, problem


def test_two_thousand_random_problems() -> None:
    report = fuzz(map(problem, range(2000)))
    assert report.problems == 2000
    assert report.failures == []
    assert report.most_hessian_passes <= 20
    assert report.most_gradient_passes <= 30


class TestComplaint:
    GIVEN = problem(7)

    def test_a_good_answer(self) -> None:
        given = self.GIVEN
        assert complaint(given, given.solve()) is None

    def test_another_point(self) -> None:
        wrong = MleResult(self.GIVEN.source, "converged", 1, 1, 1, 0.0, 0.0)
        assert "gap" in str(complaint(self.GIVEN, wrong))

    def test_off_the_simplex(self) -> None:
        wrong = MleResult(2 * self.GIVEN.source, "converged", 1, 1, 1, 0.0, 0.0)
        assert "simplex" in str(complaint(self.GIVEN, wrong))

    def test_another_status(self) -> None:
        wrong = MleResult(self.GIVEN.source, "max-iterations", 1, 1, 1, 0.0, 0.5)
        assert "max-iterations" in str(complaint(self.GIVEN, wrong))

    def test_too_many_passes(self) -> None:
        given = self.GIVEN
        best = given.solve()
        slow = MleResult(best.prevalence, "converged", 99, 31, 21, best.gain, 0.0)
        assert "21 Hessian and 31 gradient" in str(complaint(given, slow))


def test_problems_are_reproducible() -> None:
    np.testing.assert_array_equal(problem(123).posteriors, problem(123).posteriors)
