import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic

from benchmarks.report import heading
from benchmarks.thesis import __doc__ as description
from benchmarks.thesis import paper, tables
from benchmarks.thesis.datasets import DataSet, load
from benchmarks.thesis.experiment import Plan, Trial, repetition
from benchmarks.thesis.protocol import LEARNERS

LEGEND = """Ours ± standard error over the runs (the thesis's figure). Error: (estimated − true)²,
the mean over classes, in table 7.2 the sum. raw: the training shares; cc: counting; acc: clipped
and rescaled; default: what `derive` and `estimate` answer when nothing is asked for (BCTS on the
out-of-fold rows, then maximum likelihood). The row *mean* is over the β shown. About the thesis's
figures:
"""


def trials(
    sets: Sequence[DataSet], plan: Plan, most_seconds: float | None = None
) -> Iterator[Trial]:
    """Run by run over all sets; no new run after ``most_seconds``."""
    start = monotonic()
    for run in range(max(plan.runs.values())):
        if most_seconds is not None and monotonic() - start > most_seconds:
            return
        for data in sets:
            yield from repetition(data, plan, run)
        print(f"run {run}: {monotonic() - start:.0f} s", file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--forest-runs", type=int, default=4)
    parser.add_argument("--betas", type=float, nargs="+", default=list(paper.BETAS))
    parser.add_argument("--sets", nargs="+", default=[])
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    options = arguments()
    sets = load(options.data, options.sets)
    runs = {
        name: options.forest_runs if name == "forest" else options.runs for name in options.learners
    }
    plan = Plan(runs, options.betas, options.trees, options.rows, options.seed)
    print(heading("thesis"), flush=True)
    results = list(trials(sets, plan, options.seconds))
    done = {name: len({t.run for t in results if t.learner == name}) for name in options.learners}
    counted = ", ".join(f"{name} {count}" for name, count in done.items())
    print(
        f"Runs: {counted}; the thesis has 100 (50 in table 7.7). Training halves hold at most "
        f"{plan.rows} rows, test halves all of theirs; {plan.trees} trees.\n"
    )
    print("\n- ".join([LEGEND, *paper.REMARKS]) + "\n")
    print(tables.sets_used(sets, results, plan))
    for name in options.learners:
        print(f"## {name}\n")
        for text in (tables.summary, tables.by_set):
            print(text(results, name))
        print(tables.chapter(results, name, sets))
    print(tables.linear_systems(results))


if __name__ == "__main__":
    main()
