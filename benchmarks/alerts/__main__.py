"""False alarms and delays of alerts under a budget.

python -m benchmarks.alerts [--months 300] [--sources 150] [--streams 200] [--seed 1]
"""

import argparse

import numpy as np

from app.core.arrays import Floats
from benchmarks.alerts.delays import Watched, always_valid, delays
from benchmarks.alerts.looking import LEVEL as LOOKING_LEVEL
from benchmarks.alerts.looking import looking
from benchmarks.alerts.months import (
    LEVEL,
    PLAIN,
    SIZE,
    TESTS,
    VALIDATION,
    decisions,
    expected,
    months,
)
from benchmarks.alerts.rates import tail
from benchmarks.alerts.stream import Population
from benchmarks.alerts.three import three
from benchmarks.report import heading, table

POPULATIONS = (
    Population(0.01, 3.0),
    Population(0.01, 2.0),
    Population(0.05, 3.0),
    Population(0.2, 2.0),
)
TAIL_LEVELS = (1e-2, 1e-4, 1e-6, 1e-8)
SIZES = ((100, 1000, 1), (1000, 10_000, 1), (1000, 1000, 1), (100, 10_000, 2), (100, 10_000, 3))
"""N, n, and how many rejected windows in a row make an alert."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--months", type=int, default=300)
    parser.add_argument("--sources", type=int, default=150)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(heading("alerts"))
    _months(arguments.months, arguments.seed)
    _sizes(arguments.sources, arguments.seed)
    _three(arguments.sources)
    _tails(arguments.seed)
    _delays(arguments.sources, arguments.seed)
    _looking(arguments.streams, arguments.seed)


def _within(values: Floats) -> str:
    return f"{(values <= 1).mean():.1%}"


def _spread(values: Floats) -> str:
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return f"{middle:.2f} ({low:.2f} – {high:.2f})"


def _months(count: int, seed: int) -> None:
    rows = []
    for kind, simulated in (("posteriors", months), ("decisions", decisions)):
        for population in POPULATIONS if kind == "posteriors" else POPULATIONS[::3]:
            results = simulated(population, count, seed)
            for test in TESTS:
                alarms, each = results.alarms[test], results.expected[test]
                rows.append(
                    [
                        f"{kind}, share {population.share}, distance {population.distance:g}",
                        test,
                        f"{each.mean():.2f}",
                        _within(each),
                        _spread(each),
                        f"{alarms.mean():.2f} ± {alarms.std() / np.sqrt(count):.2f}",
                        _within(alarms),
                    ]
                )
    print(
        f"## Months without a shift\n\n720 hours × 10 segments, N = {SIZE}, n = {VALIDATION}, "
        f"budget 1 a month, level 1/{1 / LEVEL:.0f}, {count} months, each with its own source.\n"
    )
    names = ["windows of", "test against", "mean expected", "sources within the budget"]
    names += ["median (90 % range)", "counted", "months with at most one"]
    print(table(names, rows))


def _sizes(count: int, seed: int) -> None:
    rows = []
    for population in (POPULATIONS[0], POPULATIONS[3]):
        for size, validation, row in SIZES:
            results = expected(population, size, validation, count, seed, row)
            for test, each in results.items():
                label = f"share {population.share}, N = {size}, n = {validation}"
                label += f", {row} in a row" if row > 1 else ""
                rows.append(
                    [label, test, f"{each.mean():.2f}", _within(each)]
                    + [f"{q:.2f}" for q in np.quantile(each, [0.5, 0.9, 1.0])]
                )
    print(f"## Expected false alarms a month, other sizes\n\n{count} sources.\n")
    names = ["", "test against", "mean", "sources within the budget", "median", "ninth decile"]
    print(table([*names, "worst"], rows))


def _three(count: int) -> None:
    rows = []
    for size in (100, 1000):
        results = three(size, VALIDATION, count // 3, 400, LEVEL)
        for test, each in zip(PLAIN, results.T, strict=False):
            label = f"N = {size}, n = {VALIDATION}"
            rows.append([label, test, f"{each.mean():.2f}", _within(each), f"{each.max():.2f}"])
    print(f"## Three classes, shares .7, .2, .1: the same\n\n{count // 3} sources.\n")
    print(table(["", "test against", "mean", "sources within the budget", "worst"], rows))


def _tails(seed: int) -> None:
    rows = []
    for population in (*POPULATIONS, Population(0.4, 2.0)):
        for size in (20, 100, 1000):
            tails = [tail(population, size, level, 2000, seed) for level in TAIL_LEVELS]
            label = f"share {population.share}, distance {population.distance:g}, N = {size}"
            rows.append([label, *(f"{ratio:.2f} ± {error:.2f}" for ratio, error in tails)])
    print("## The chi-square tail: rejections over the level, the source known exactly\n")
    print(table(["windows", *(f"level {level:g}" for level in TAIL_LEVELS)], rows))


def _delays(count: int, seed: int) -> None:
    rows: list[list[str]] = []
    for distance in (2.0, 3.0, 4.0):
        results = delays(distance, count, seed)
        rows.extend([f"{distance:g}", each.name, *_watched(each)] for each in results)
        for batch, quiet in ((100, 0), (1000, 336)):
            watched = always_valid(distance, count // 3, seed, batch, quiet)
            name = f"always valid, every {batch} rows, after {quiet} quiet hours"
            rows.append([f"{distance:g}", name, *_watched(watched)])
    print(
        "## A rise from 1 % to 2 % at 1,000 rows an hour\n\nWindows of an hour, n = 10000, budget "
        f"1 a month; {count} sources, a stream each ({count // 3} for always valid).\n"
    )
    names = ["distance", "test", "threshold", "false alarms a month, mean", "ninth decile"]
    print(table([*names, "sources within the budget", "delay in hours, median (90 %)"], rows))


def _watched(watched: Watched) -> list[str]:
    each, (low, middle, high) = watched.expected, np.quantile(watched.delays, [0.05, 0.5, 0.95])
    alarms = ["at most 0.05", "", ""]
    if len(each):
        alarms = [f"{each.mean():.2f}", f"{np.quantile(each, 0.9):.2f}", _within(each)]
    return [f"{watched.threshold:.2f}", *alarms, f"{middle:.1f} ({low:.1f} – {high:.1f})"]


def _looking(count: int, seed: int) -> None:
    rows = []
    for population in (POPULATIONS[0], POPULATIONS[3]):
        results = looking(population, count, 720, seed)
        rows.append(
            [
                f"share {population.share}, distance {population.distance:g}",
                f"{results.always_valid:.1%}",
                f"{results.repeated:.1%}",
                f"{np.quantile(results.highest, 0.95):.2f}",
            ]
        )
    print(
        f"## Looking after every batch, without a shift\n\n720 batches of 100 rows, n = 10000, "
        f"level {LOOKING_LEVEL:.0%} with the source's error, {count} streams.\n"
    )
    names = ["", "always valid: any alarm", "scaled test repeated: any alarm"]
    print(table([*names, "ln E at its highest, 95 %"], rows))


if __name__ == "__main__":
    main()
