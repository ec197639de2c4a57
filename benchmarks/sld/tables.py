"""What the outcomes come to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, sqrt

import numpy as np

from app.core.arrays import Floats
from benchmarks.report import table
from benchmarks.sld.outcome import Outcome, Quality, Trials
from benchmarks.sld.protocol import Calibrated

CALIBRATIONS: dict[Calibrated, str] = {"none": "none", "platt": "Platt", "bcts": "BCTS"}
PAPER: dict[tuple[int, Calibrated], tuple[float, ...]] = {
    (2, "none"): (-0.727, -0.070, -0.098, 40.84, 0.0006),
    (5, "none"): (-0.616, -0.198, -0.278, 92.10, 0.0013),
    (10, "none"): (-1.854, -0.349, -0.634, 278.95, 0.0480),
    (20, "none"): (-3.405, -0.441, -1.157, 560.95, 0.2973),
    (2, "platt"): (0.435, 0.284, 0.803, 16.76, 0.0020),
    (5, "platt"): (-0.127, 0.064, 0.197, 35.62, 0.0010),
    (10, "platt"): (-0.504, -0.282, -1.423, 113.49, 0.0025),
    (20, "platt"): (-1.334, -0.570, -4.416, 267.44, 0.0180),
}
"""Tables 1 to 4, isomerous, and 11: reductions of NAE, Brier, CE; iterations, not converged."""

Part = Callable[[Quality], float]
Side = Callable[[Outcome], Quality]


def nae(of: Quality) -> float:
    return of.nae


def brier(of: Quality) -> float:
    return of.brier


def calibration(of: Quality) -> float:
    return of.calibration


def refinement(of: Quality) -> float:
    return of.refinement


def before(of: Outcome) -> Quality:
    return of.before


def stepped(of: Outcome) -> Quality:
    return of.em


def exact(of: Outcome) -> Quality:
    return of.exact


@dataclass(frozen=True)
class Reduction:
    """1 − mean after / mean before, and half its 95 % interval over trials (delta method)."""

    value: float
    half: float

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], part: Part, side: Side) -> "Reduction":
        was = by_trial(outcomes, lambda one: part(one.before))
        now = by_trial(outcomes, lambda one: part(side(one)))
        ratio = float(now.mean() / was.mean())
        if len(was) < 2:
            return cls(1 - ratio, inf)
        spread = float(np.std(now - ratio * was, ddof=1)) / float(was.mean())
        return cls(1 - ratio, 1.96 * spread / sqrt(len(was)))

    def __str__(self) -> str:
        return f"{self.value:+.1%} ± {self.half:.1%}"


def by_trial(outcomes: Sequence[Outcome], value: Callable[[Outcome], float]) -> Floats:
    """Mean over the learners of each trial."""
    _, place = np.unique([one.trial for one in outcomes], return_inverse=True)
    totals = np.bincount(place, [value(one) for one in outcomes])
    means: Floats = totals / np.bincount(place)
    return means


def with_calibration(outcomes: Sequence[Outcome], method: Calibrated) -> list[Outcome]:
    return [one for one in outcomes if one.calibration == method]


def summary(measured: Sequence[Trials]) -> str:
    """Reductions over all learners, with the paper's beside."""
    rows = []
    for method, name in CALIBRATIONS.items():
        for some in measured:
            outcomes = with_calibration(some.outcomes, method)
            rows.append([name, str(some.classes), *_summary(some.classes, method, outcomes)])
    names = (
        *("calibration", "classes", "NAE, EM", "NAE, exact", "paper"),
        *("Brier, EM", "Brier, exact", "paper", "CE, EM", "CE, exact", "paper"),
        *("iterations", "paper", "not converged", "paper", "gap of EM", "gap of exact"),
    )
    return table(names, rows)


def _summary(classes: int, method: Calibrated, outcomes: Sequence[Outcome]) -> list[str]:
    printed = PAPER.get((classes, method))
    cells: list[str] = []
    for at, part in enumerate((nae, brier, calibration)):
        cells += [str(Reduction.of(outcomes, part, side)) for side in (stepped, exact)]
        cells.append("–" if printed is None else f"{printed[at]:+.1%}")
    iterations = np.mean([one.iterations for one in outcomes])
    failed = np.mean([not one.converged for one in outcomes])
    return [
        *cells,
        f"{iterations:.0f}",
        "–" if printed is None else f"{printed[3]:.0f}",
        f"{failed:.2%}",
        "–" if printed is None else f"{printed[4]:.2%}",
        f"{max(one.gap for one in outcomes):.0e}",
        f"{max(one.gap_exact for one in outcomes):.0e}",
    ]


def details(some: Trials) -> str:
    """Levels, by learner and calibration."""
    keys = dict.fromkeys((one.learner, one.calibration) for one in some.outcomes)
    rows = []
    for learner, method in keys:
        outcomes = [
            one for one in with_calibration(some.outcomes, method) if one.learner == learner
        ]
        cells = [learner, CALIBRATIONS[method]]
        for part in (nae, brier, calibration, refinement):
            cells += [f"{_mean(outcomes, part, side):.4f}" for side in (before, stepped, exact)]
            if part is nae:
                cells.insert(3, f"{np.mean([one.mean_posterior for one in outcomes]):.4f}")
        iterations = np.mean([one.iterations for one in outcomes])
        failed = np.mean([not one.converged for one in outcomes])
        rows.append([*cells, f"{iterations:.0f}", f"{failed:.1%}"])
    measures = [f"{m}, {s}" for m in ("Brier", "CE", "RE") for s in ("before", "EM", "exact")]
    shares = ["NAE, counted", "NAE, mean posterior", "NAE, EM", "NAE, exact"]
    return table(
        ["learner", "calibration", *shares, *measures, "iterations", "not converged"], rows
    )


def _mean(outcomes: Sequence[Outcome], part: Part, side: Side) -> float:
    return float(np.mean([part(side(one)) for one in outcomes]))


def quartiles(measured: Sequence[Trials]) -> str:
    """Reductions at the optimum by amount of shift."""
    rows = []
    for some in measured:
        shift = {one.trial: one.shift for one in some.outcomes}
        edges = np.quantile(list(shift.values()), [0, 0.25, 0.5, 0.75, 1])
        for low, high in pairwise(edges):
            inside = [one for one in some.outcomes if _within(one.shift, low, high, edges[-1])]
            cells = [str(some.classes), f"{low:.3f} … {high:.3f}"]
            for part in (nae, brier):
                cells.append(str(Reduction.of(with_calibration(inside, "platt"), part, stepped)))
                cells.append(str(Reduction.of(with_calibration(inside, "bcts"), part, exact)))
            rows.append(cells)
    names = ("NAE, Platt, EM", "NAE, BCTS, exact", "Brier, Platt, EM", "Brier, BCTS, exact")
    return table(("classes", "shift (NAE)", *names), rows)


def _within(shift: float, low: float, high: float, last: float) -> bool:
    return bool(low <= shift < high or shift == high == last)
