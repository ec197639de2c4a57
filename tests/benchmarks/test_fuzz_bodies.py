"""Random bodies: a short run of ``make fuzz-bodies``."""

from benchmarks.fuzz_bodies.check import MOST_GROWTH, run
from benchmarks.fuzz_bodies.inputs import KINDS


def test_nothing_but_the_documented_errors_comes_out() -> None:
    report = run(range(3000))
    assert report.failures == []
    assert report.growth < MOST_GROWTH
    assert {kind for kind, _ in report.counts} == set(KINDS)
    accepted = {kind for kind, outcome in report.counts if outcome == "accepted"}
    assert {"good JSON", "large matrices", "NPY", "gzip and zstd"} <= accepted
