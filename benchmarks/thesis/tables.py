"""The tables of chapter 7: ours ± standard error, the thesis's in brackets.

A cell is the mean over data sets of the mean over runs. The standard error is that of the runs:
the data sets are given, not drawn.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.report import table
from benchmarks.thesis.datasets import LARGE, THESIS, DataSet
from benchmarks.thesis.experiment import Plan, Trial
from benchmarks.thesis.methods import F1, OWN_ROWS, UNTRANSPOSED
from benchmarks.thesis.paper import TABLE_7_2, TABLE_7_3, TABLE_7_4, TABLE_7_7, TABLE_7_9, Printed

Value = Callable[[Trial], float]
SUMMARY = ("raw", "cc", "acc-qp", "em", "em-stop", "default")


@dataclass(frozen=True)
class Cell:
    """Mean, and its standard error over the runs; NaN where a set has a single run."""

    mean: float
    error: float

    @classmethod
    def of(cls, trials: Iterable[Trial], value: Value) -> "Cell":
        """Over β within a run, over runs within a set, over sets."""
        runs: dict[tuple[str, int], list[float]] = {}
        for trial in trials:
            runs.setdefault((trial.data, trial.run), []).append(value(trial))
        sets: dict[str, list[float]] = {}
        for (name, _), values in runs.items():
            sets.setdefault(name, []).append(float(np.mean(values)))
        mean = float(np.mean([np.mean(values) for values in sets.values()]))
        if min(len(values) for values in sets.values()) < 2:
            return cls(mean, float("nan"))
        squares = [float(np.var(values, ddof=1)) / len(values) for values in sets.values()]
        return cls(mean, sum(squares) ** 0.5 / len(sets))


@dataclass(frozen=True)
class Column:
    """A column of a table, how it is measured, and which printed one belongs beside it."""

    name: str
    value: Value
    beside: str


def total(method: str) -> Value:
    """Σ (estimated − true)²."""
    return lambda trial: trial.quality[method].total


def mean(method: str) -> Value:
    """The mean over classes of (estimated − true)²."""
    return lambda trial: trial.quality[method].mean


def _f1(method: str, measure: Callable[[F1], float]) -> Value:
    if method == "oracle":
        return lambda trial: measure(trial.oracle)
    return lambda trial: measure(trial.quality[method].f1)


def weighted_f1(method: str) -> Value:
    """F1 after adjusting to the estimate, the mean over classes weighted by their shares."""
    return _f1(method, lambda f1: f1.weighted)


def macro_f1(method: str) -> Value:
    """The same, the plain mean over classes."""
    return _f1(method, lambda f1: f1.macro)


def _columns(measure: Callable[[str], Value], *methods: str) -> list[Column]:
    printed = {"raw": "base", "cc": "base", OWN_ROWS: "em-stop", UNTRANSPOSED: "acc-qp"}
    return [Column(name, measure(name), printed.get(name, name)) for name in methods]


def compared(
    printed: Printed, trials: Sequence[Trial], learner: str, columns: Sequence[Column], digits: int
) -> str:
    """One table: a row per β, and the mean over β."""
    chosen = [trial for trial in trials if trial.learner == learner]
    if not chosen:
        return ""
    betas = sorted({trial.beta for trial in chosen})
    rows = []
    for some in [*([beta] for beta in betas), betas]:
        part = [trial for trial in chosen if trial.beta in some]
        row = [str(some[0]) if some is not betas else "mean"]
        for column in columns:
            theirs = printed.mean(learner, column.beside, some)
            row.append(_text(Cell.of(part, column.value), theirs, digits))
        rows.append(row)
    count = len({trial.data for trial in chosen})
    title = f"### {printed.title}, {learner}, {count} sets (in the thesis {printed.sets})\n\n"
    return title + table(["β", *(column.name for column in columns)], rows)


def _text(cell: Cell, printed: float | None, digits: int) -> str:
    spread = "" if np.isnan(cell.error) else f" ± {cell.error:.{digits}f}"
    beside = "" if printed is None else f" ({printed:.{digits}f})"
    return f"{cell.mean:.{digits}f}{spread}{beside}"


def chapter(trials: Sequence[Trial], learner: str, sets: Sequence[DataSet]) -> str:
    """Tables 7.2 and 7.3, 7.4, 7.7 and 7.9 of one learner."""
    binary = {data.name for data in sets if data.classes == 2}
    small = [trial for trial in trials if trial.data not in LARGE]
    two = [trial for trial in trials if trial.data in binary]
    stopped = ("em-stop", OWN_ROWS, "raw", "cc")
    inverted = ("acc", "acc-qp", UNTRANSPOSED, "default")
    classified = ("em", "em-stop", OWN_ROWS, "oracle-bayes", "oracle", "cc", "default")
    tables = [
        compared(TABLE_7_2, trials, learner, [Column("raw", total("raw"), "raw")], 5),
        compared(TABLE_7_3, trials, learner, _columns(mean, "em", *stopped, "default"), 5),
        compared(TABLE_7_4, trials, learner, _columns(weighted_f1, *classified), 4),
        compared(TABLE_7_7, small, learner, _columns(mean, *stopped, *inverted), 5),
        ratios(small, learner),
        compared(TABLE_7_9, two, learner, _columns(mean, "cde", "em", *stopped, "default"), 5),
    ]
    return "\n".join(text for text in tables if text)


def ratios(trials: Sequence[Trial], learner: str) -> str:
    """The error of acc-qp over the printed one, in either measure, and over the untransposed."""
    chosen = [trial for trial in trials if trial.learner == learner]
    if not chosen:
        return ""
    betas = sorted({trial.beta for trial in chosen})
    rows = []
    for some in [*([beta] for beta in betas), betas]:
        part = [trial for trial in chosen if trial.beta in some]
        theirs = TABLE_7_7.mean(learner, "acc-qp", some)
        ours = Cell.of(part, mean("acc-qp")).mean
        rows.append(
            [
                str(some[0]) if some is not betas else "mean",
                _ratio(ours, theirs),
                _ratio(Cell.of(part, total("acc-qp")).mean, theirs),
                _ratio(ours, Cell.of(part, mean(UNTRANSPOSED)).mean),
            ]
        )
    names = ["β", "acc-qp / printed", "its sum over classes / printed", "acc-qp / untransposed"]
    return f"### The error of acc-qp against the printed one, {learner}\n\n" + table(names, rows)


def _ratio(ours: float, theirs: float | None) -> str:
    return f"{ours / theirs:.2f}" if theirs else "–"


def by_set(trials: Sequence[Trial], learner: str) -> str:
    """Mean error over β of every set: where the averages come from."""
    chosen = [trial for trial in trials if trial.learner == learner]
    rows = []
    for name in dict.fromkeys(trial.data for trial in chosen):
        part = [trial for trial in chosen if trial.data == name]
        cells = [Cell.of(part, mean(method)) for method in SUMMARY]
        rows.append([name, *(_text(cell, None, 5) for cell in cells)])
    return f"### By data set, {learner}: mean error over β\n\n" + table(["set", *SUMMARY], rows)


def summary(trials: Sequence[Trial], learner: str) -> str:
    """Each method over all draws: typical and bad errors, F1, and how it compares draw by draw."""
    chosen = [trial for trial in trials if trial.learner == learner]
    strong = [trial for trial in chosen if trial.beta <= 0.3]
    rows = []
    for method in SUMMARY:
        values = [trial.quality[method].mean for trial in chosen]
        quantiles = np.quantile(values, (0.5, 0.9))
        rows.append(
            [
                method,
                _text(Cell.of(chosen, mean(method)), None, 5),
                *(f"{quantile:.5f}" for quantile in quantiles),
                f"{Cell.of(chosen, macro_f1(method)).mean:.4f}",
                *("–" if method == "default" else _closer(t, method) for t in (chosen, strong)),
            ]
        )
    names = ["method", "mean error", "median", "9 in 10 below", "macro-F1", "default is closer"]
    title = f"### Over all draws, {learner}\n\n"
    return title + table([*names, "the same, β ≤ 0.3"], rows)


def _closer(trials: Sequence[Trial], method: str) -> str:
    wins = [t.quality["default"].mean < t.quality[method].mean for t in trials]
    return f"{np.mean(wins):.0%}" if wins else "–"


def linear_systems(trials: Sequence[Trial]) -> str:
    """How often acc has no solution in either orientation (the thesis's table 7.6)."""
    rows = []
    for learner in dict.fromkeys(trial.learner for trial in trials):
        for beta in sorted({trial.beta for trial in trials}):
            part = [t for t in trials if t.learner == learner and t.beta == beta]
            ours = [trial.solvable["acc"] for trial in part]
            theirs = [trial.solvable["acc, untransposed"] for trial in part]
            shares = [
                np.mean([system.singular for system in ours]),
                np.mean([system.inadmissible for system in ours]),
                np.mean([system.inadmissible for system in theirs]),
            ]
            rows.append([learner, str(beta), *(f"{share:.0%}" for share in shares)])
    names = ["learner", "β", "singular", "inadmissible", "inadmissible, untransposed"]
    return "### The linear system of acc, share of the draws\n\n" + table(names, rows)


def sets_used(sets: Sequence[DataSet], trials: Sequence[Trial], plan: Plan) -> str:
    """What was used, and how many draws were refused because a class kept a single row."""
    drawn = {(t.data, t.beta, t.run): t.redrawn for t in trials}
    betas = sorted({trial.beta for trial in trials})
    rows = []
    for data in sets:
        half = min(len(data.labels) // 2, plan.rows)
        facts = (len(data.labels), data.inputs.shape[1], data.classes, half)
        refused = [
            sum(count for (name, b, _), count in drawn.items() if (name, b) == (data.name, beta))
            for beta in betas
        ]
        rows.append([data.name, *map(str, (*facts, *refused))])
    names = ["set", "rows", "inputs", "classes", "training half", *(f"β = {b}" for b in betas)]
    return _remarks(sets, drawn.values()) + table(names, rows)


def _remarks(sets: Sequence[DataSet], refused: Iterable[int]) -> str:
    counts = list(refused)
    lines = [
        f"Draws in which a class kept a single row, refused and drawn again (by β below): "
        f"{sum(counts)}, beside {len(counts)} that were used.",
        *(
            f"{d.name}: left out, too few rows: {', '.join(d.left_out)}."
            for d in sets
            if d.left_out
        ),
    ]
    missing = [listed.name for listed in THESIS if listed.name not in {d.name for d in sets}]
    if missing:
        lines.append(f"Sets of the thesis not used here: {', '.join(missing)}.")
    return "\n\n".join([*lines, ""])
