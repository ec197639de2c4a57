"""One problem after the other, by every entrance."""

import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from app.core.prevalence.estimators.mle import MleResult
from benchmarks.fuzz_likelihood import checks
from benchmarks.fuzz_likelihood.problems import Problem, again

EVERY = 8
"""One of so many problems is profiled, another gets intervals, a third is tested."""
MOST_WORK = 2e5
"""Most N · C · √C of a problem that is asked more than once, but for every ``EVERY``-th."""
MOST_FOR_ALL = 1e5
"""Most of that times C, where all classes get intervals."""
LINES = 3
"""Of a traceback that are shown."""


@dataclass
class Report:
    """What a run of the fuzzer saw; ``failures`` as (number of the problem, complaint).

    ``asked``: how many maxima, profiles, intervals and regions were looked at. Passes are those of
    problems with ordinary starts and weights.
    """

    problems: int = 0
    answers: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)

    def check(self, number: int, ask: Callable[[], str | None]) -> None:
        """Note what ``ask`` complains about, or breaks with."""
        self.answers += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                wrong = ask()
        except Exception:
            # Whatever it is, it would have been a caller's 500.
            wrong = " ".join(traceback.format_exc().splitlines()[-LINES:])
        if wrong is not None:
            self.failures.append((number, wrong))


def fuzz(problems: Iterable[Problem]) -> Report:
    """Solve and check ``problems``."""
    report = Report()
    for problem in problems:
        report.problems += 1
        report.check(problem.number, partial(_by_every_entrance, problem, report))
    return report


def _by_every_entrance(problem: Problem, report: Report) -> str | None:
    """The problem as it is; with its answer in hand, what else is asked."""
    top = problem.solve()
    wrong = checks.maximum(problem, top)
    if wrong is None:
        for check in _others(problem, top):
            report.check(problem.number, check)
    return wrong


def _others(problem: Problem, top: MleResult) -> Iterable[Callable[[], str | None]]:
    """Other entrances to the same rows, as many as their size allows."""
    turn, classes, known = problem.number % EVERY, len(problem.source), problem.likelihood.known
    work = len(problem.posteriors) * classes**1.5
    if work <= MOST_WORK or turn == 0:
        yield partial(_warm, again(problem, top.prevalence, 1))
    if turn == 1 and work <= MOST_WORK and len(known) > 1 and top.status == "converged":
        yield partial(checks.profiled, problem, top, 2)
    if turn == 2 and work * classes <= MOST_FOR_ALL:
        yield partial(checks.intervals, problem, top, 3)
    if turn == 3:
        yield partial(checks.region, problem, top, 4)


def _warm(problem: Problem) -> str | None:
    return checks.maximum(problem, problem.solve())
