"""How fast the likelihood's maximum is found, against a pass over the batch and the peers.

python -m benchmarks.likelihood [--large] [--repeats 5] > docs/results/likelihood.md

All times are of one process with one BLAS thread, the best of the repeats. EMQ is QuaPy's at its
defaults, where it is installed.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from app.core.arrays import Floats
from app.core.prevalence.calibration import Calibration, Scaling
from app.core.prevalence.estimators.em import em
from app.core.prevalence.estimators.mle import MleResult, mle
from app.core.prevalence.likelihood.likelihood import Likelihood
from benchmarks.report import heading, table

OVERLAPS = {"separated": 3.0, "overlapping": 0.6}
"""Distance of the class centres, in standard deviations."""
SHIFTS = ("mild", "zeros", "fraud", "miscalibrated")
SIZES = ((100, 2), (100, 3), (10_000, 2), (10_000, 5), (100_000, 2), (1_000_000, 2))
SIZES_MANY = ((100_000, 5), (1_000_000, 5), (250_000, 20), (50_000, 100))
LARGE = ((10_000_000, 2),)
PEERS = 1_000_000
"""Rows up to which the peers are waited for."""
CALIBRATED = ((100, 2), (100_000, 2), (100_000, 5))


@dataclass(frozen=True)
class Case:
    """A batch of simulated posteriors under ``source``."""

    name: str
    posteriors: Floats
    source: Floats


def case(rows: int, classes: int, overlap: str, shift: str, seed: int = 1) -> Case:
    """Unit normal classes in the plane's corners, scored with the exact posteriors.

    ``mild``: source and target a little apart; ``zeros``: half the target shares are zero;
    ``fraud``: the last class goes from 1 % to 0.1 %; ``miscalibrated``: ``mild`` with logits
    of half the size.
    """
    rng = np.random.default_rng([rows, classes, seed])
    source, target = _priors(classes, shift)
    dimensions = min(classes - 1, 10)
    centres = rng.normal(size=(classes, dimensions))
    centres *= OVERLAPS[overlap] / np.sqrt(2 * dimensions)
    if classes == 2:
        centres = np.array([[0.0], [OVERLAPS[overlap]]])
    heat = 0.5 if shift == "miscalibrated" else 1.0
    posteriors = np.empty((rows, classes))
    for start in range(0, rows, 100_000):
        part = posteriors[start : start + 100_000]
        x = centres[rng.choice(classes, len(part), p=target)]
        x = x + rng.normal(size=x.shape)
        logits = heat * (np.log(source) + x @ centres.T - 0.5 * (centres**2).sum(axis=1))
        part[:] = np.exp(logits - logits.max(axis=1, keepdims=True))
        part /= part.sum(axis=1, keepdims=True)
    return Case(f"{overlap}, {shift}", posteriors, source)


def _priors(classes: int, shift: str) -> tuple[Floats, Floats]:
    uneven = np.linspace(1.0, 2.0, classes)
    source = uneven / uneven.sum()
    if shift == "fraud":
        source = np.append(uneven[:-1] / uneven[:-1].sum() * 0.99, 0.01)
        return source, np.append(uneven[:-1] / uneven[:-1].sum() * 0.999, 0.001)
    target = source[::-1].copy()
    if shift == "zeros":
        target[classes // 2 :] = 0
    return source, target / target.sum()


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Best time of one call; short work is called often enough to be measured."""
    start = time.perf_counter()
    work()
    calls = max(1, int(0.01 / (time.perf_counter() - start)))
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(calls):
            work()
        best = min(best, (time.perf_counter() - start) / calls)
    return float(best)


@dataclass(frozen=True)
class Line:
    """One line of the table, times in seconds; None where a peer was not asked."""

    case: Case
    own: float
    a_pass: float
    em: float | None
    emq: float | None
    result: MleResult
    gap_of_em: float | None
    calibrated: bool

    def cells(self) -> list[str]:
        def times(other: float | None) -> str:
            return "–" if other is None else f"{other / self.own:.1f}"

        rows, classes = self.case.posteriors.shape
        return [
            f"{rows:,} × {classes}",
            self.case.name + (", BCTS" if self.calibrated else ""),
            f"{self.own * 1e3:.3g}",
            f"{self.own / self.a_pass:.1f}",
            times(self.em),
            times(self.emq),
            f"{self.result.gradient_passes} + {self.result.hessian_passes}",
            f"{self.result.optimality_gap:.0e}",
            "–" if self.gap_of_em is None else f"{self.gap_of_em:.0e}",
        ]


def line(case: Case, repeats: int, calibration: Calibration | None = None) -> Line:
    """Measure one case."""
    rows, source = case.posteriors, case.source
    few = max(1, repeats // 3)

    def fresh() -> Likelihood:
        return Likelihood.of(rows, source, None, calibration)

    a_pass = seconds(lambda: rows @ source, repeats)
    own = seconds(lambda: mle(fresh()), repeats)
    plain, stopped, peer = None, None, None
    if len(rows) <= PEERS:
        plain, stopped = seconds(lambda: em(fresh()), few), em(fresh()).optimality_gap
        maximise = None if calibration else emq()
        peer = None if maximise is None else seconds(lambda: maximise(source, rows), few)
    calibrated = calibration is not None
    return Line(case, own, a_pass, plain, peer, mle(fresh()), stopped, calibrated)


def emq() -> Callable[[Floats, Floats], Any] | None:
    """QuaPy's EMQ, or None where QuaPy is not installed."""
    if find_spec("quapy") is None:
        return None
    from quapy.method.aggregative import EMQ

    maximise: Callable[[Floats, Floats], Any] = EMQ.EM
    return maximise


def cases(large: bool) -> Iterator[tuple[Case, Calibration | None]]:
    for rows, classes in (*SIZES, *SIZES_MANY, *(LARGE if large else ())):
        for overlap in OVERLAPS:
            for shift in SHIFTS:
                yield case(rows, classes, overlap, shift), None
    for rows, classes in CALIBRATED:
        bias = np.linspace(-0.2, 0.2, classes)
        for overlap in OVERLAPS:
            calibration = Scaling("bcts", np.full(len(bias), 1.2), bias, 1e-300)
            yield case(rows, classes, overlap, "mild"), calibration


COLUMNS = (
    "batch",
    "case",
    "ms",
    "passes",
    "EM / mle",
    "EMQ / mle",
    "gradient + Hessian passes",
    "gap",
    "gap of EM",
)


TEXT = """\
How long the certified maximum takes. A *pass* is one float64 matrix-vector product with the
batch; `EM / mle` and `EMQ / mle` say how many times longer this project's EM and QuaPy's EMQ, both
at their defaults, take to stop, and the last column where EM then is. Separated classes are 3
standard deviations apart, overlapping ones 0.6. *mild*: the target is the source reversed;
*zeros*: half the target shares are zero; *fraud*: the last class falls from 1 % to 0.1 %;
*miscalibrated*: logits of half their size. BCTS rows are calibrated on the way, in every pass.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="10,000,000 rows as well")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    # QuaPy warns where its EM runs out of iterations; which the table is about.
    warnings.simplefilter("ignore")
    lines = [line(case, arguments.repeats, how) for case, how in cases(arguments.large)]
    peers = ["quapy"] if find_spec("quapy") else []
    print("# The maximum of the likelihood\n")
    print(TEXT)
    print(heading("likelihood", ("numpy", "scipy", *peers)))
    print(table(("batch", "median passes", "worst"), summary(lines)))
    print(table(COLUMNS, [measured.cells() for measured in lines]))


def summary(lines: list[Line]) -> list[list[str]]:
    """Median and worst number of passes of each size, uncalibrated."""
    by_size: dict[str, list[float]] = {}
    for measured in lines:
        if not measured.calibrated:
            size = measured.cells()[0]
            by_size.setdefault(size, []).append(measured.own / measured.a_pass)
    return [
        [size, f"{np.median(passes):.1f}", f"{max(passes):.1f}"] for size, passes in by_size.items()
    ]


if __name__ == "__main__":
    main()
