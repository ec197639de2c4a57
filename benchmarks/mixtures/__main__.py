"""Adaptive mixtures of regressions on the experiments of the paper they come from.

python -m benchmarks.mixtures [--data DIR] [--repeats 100] [--seed 1] [--picture FILE]

Prints the introductory example, table 2 (which link BIC selects), figure 5 (rows of the target from
6 to 200; with --picture drawn too) and, with --data, CO2 from 1980 to 1999.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.core.arrays import Floats
from app.core.mixtures.adapt import adapt
from app.core.mixtures.fit import fit
from benchmarks.charts import charts
from benchmarks.mixtures import co2
from benchmarks.mixtures.simulated import (
    MODELS,
    SCENARIOS,
    SOURCE,
    TRIPLED,
    VALIDATION,
    Score,
    compared,
    linked,
    rows_of,
    score,
)
from benchmarks.report import heading, table

SIZES = (6, 10, 20, 50, 100, 200)
PRINTED_EXAMPLE = {"MR": "3704.4", "AMRp, pM3c": "26.4", "AMRb, A = I": "45.2"}
PRINTED_COUNTS = {
    "M2a": (81, 1, 6, 4, 7, 0, 1, 0, 0, 0),
    "M2b": (0, 65, 5, 9, 0, 20, 0, 0, 1, 0),
    "M2c": (4, 0, 69, 4, 1, 0, 21, 0, 1, 0),
    "M2d": (0, 0, 22, 48, 2, 0, 5, 8, 10, 4),
    "M3a": (31, 0, 1, 1, 57, 0, 0, 1, 9, 0),
    "M3b": (0, 0, 22, 6, 1, 55, 3, 6, 6, 1),
    "M3c": (0, 0, 35, 3, 1, 0, 46, 1, 9, 4),
    "M3d": (1, 0, 5, 10, 2, 3, 22, 37, 9, 10),
    "M4a": (89, 0, 0, 1, 10, 0, 0, 0, 0, 0),
    "M4b": (0, 16, 2, 37, 0, 2, 1, 10, 2, 30),
}
"""How often BIC selected M2a … M4b in the paper; what is missing to 100 chose no link."""


def by_size(repeats: int, seed: int) -> dict[int, dict[str, list[Score]]]:
    """The introductory example again and again, at every size."""
    scores: dict[int, dict[str, list[Score]]] = {size: {} for size in SIZES}
    for repeat in range(repeats):
        random = np.random.default_rng([seed, repeat])
        source = fit(*rows_of(SOURCE, 1000, -3, random), 2, degree=2, starts=4).mixture
        held = rows_of(TRIPLED, VALIDATION, -3, random)
        for size in SIZES:
            x, y = rows_of(TRIPLED, size, 0, random)
            for name, one in compared(source, x, y, held, repeat).items():
                scores[size].setdefault(name, []).append(one)
    return scores


def example(scores: dict[str, list[Score]]) -> str:
    """Medians and quartiles at 20 rows, beside the paper's."""
    rows = []
    for name, each in scores.items():
        oracle = np.quantile([s.oracle for s in each], [0.25, 0.5, 0.75])
        honest = np.quantile([s.honest for s in each], [0.25, 0.5, 0.75])
        rows.append(
            [
                name,
                f"{oracle[1]:.1f} ({oracle[0]:.1f} to {oracle[2]:.1f})",
                PRINTED_EXAMPLE.get(name, ""),
                f"{honest[1]:.1f} ({honest[0]:.1f} to {honest[2]:.1f})",
                f"{np.median([s.log_density for s in each]):.2f}",
            ]
        )
    known = score(TRIPLED, *rows_of(TRIPLED, 100_000, -3, np.random.default_rng(0)))
    truth = [f"{known.oracle:.1f}", "", f"{known.honest:.1f}", f"{known.log_density:.2f}"]
    rows.append(["the population itself", *truth])
    return table(["model", "oracle MSE", "the paper's", "MSE", "ln p(y given x)"], rows)


def medians(scores: dict[int, dict[str, list[Score]]]) -> Floats:
    """The median log10 of the oracle MSE: sizes × models."""
    return np.array(
        [
            [float(np.median([np.log10(s.oracle) for s in each])) for each in scores[size].values()]
            for size in SIZES
        ]
    )


def figure(names: Sequence[str], curves: Floats) -> str:
    """The same as a table."""
    rows = [
        [str(n), *(f"{value:.2f}" for value in row)] for n, row in zip(SIZES, curves, strict=True)
    ]
    return table(["n*", *names], [[cell.replace("nan", "–") for cell in row] for row in rows])


def selections(repeats: int, seed: int, low: float) -> str:
    """How often BIC selects each link among the ten, per 100, with the paper's in brackets."""
    rows = []
    for place, scenario in enumerate(SCENARIOS):
        counts = dict.fromkeys(MODELS, 0)
        errors = []
        for repeat in range(repeats):
            random = np.random.default_rng([seed, place, repeat])
            source = fit(*rows_of(SOURCE, 500, -3, random), 2, degree=2, starts=4).mixture
            x, y = rows_of(linked(scenario), 20, low, random)
            held = rows_of(linked(scenario), VALIDATION, -3, random)
            fits = [adapt(source, x, y, name, starts=4, seed=repeat).chosen for name in MODELS]
            chosen = min([f for f in fits if f.sound] or fits, key=lambda f: f.bic)
            counts[chosen.name] += 1
            errors.append(score(chosen.mixture, *held).oracle)
        shares = [f"{100 * counts[m] / repeats:.0f}" for m in MODELS]
        both = [f"{a} ({b})" for a, b in zip(shares, PRINTED_COUNTS[scenario], strict=True)]
        rows.append([scenario, *both, f"{np.median(errors):.2f}"])
    return table(["truth", *MODELS, "median oracle MSE of the choice"], rows)


def main() -> None:
    """Print the tables, and write the picture."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    head = heading("mixtures", ("numpy", "scipy"))
    half = max(1, arguments.repeats // 2)
    scores = by_size(half, arguments.seed)
    names, curves = list(scores[SIZES[0]]), medians(scores)
    parts = [
        "# Adaptive mixtures of regressions",
        head,
        "The oracle MSE takes, for every row, the component nearest to the response, as the paper "
        "does; nobody can predict so. The MSE beside it is by the mixture mean.\n",
        f"## Introductory example: 20 rows on [0, 3], {half} repetitions\n\nMedian and quartiles; "
        "the paper shows one run. Deviations are tripled with the coefficients. "
        "Errors are on [-3, 3], so half of them extrapolate. MSE and density of AMRb are on a "
        "tenth of the 5,000 validation rows.\n",
        example(scores[20]),
        f"## Figure 5: rows of the target, {half} repetitions\n\nMedian log10 of the oracle MSE. "
        "MR cannot be fitted to 6 rows.\n",
    ]
    if arguments.picture is not None:
        title, label = "Median log10 of the oracle MSE", "rows of the target"
        drawing = charts(
            [title], names, SIZES, curves[None], label, logarithmic=True, width=640, height=320
        )
        arguments.picture.write_text(drawing, encoding="utf-8")
        parts.append(f"![Median error by rows]({arguments.picture.name})\n")
    parts.append(figure(names, curves))
    for low in (-3.0, 0.0):
        parts += [
            f"## Table 2: selections by BIC, {arguments.repeats} repetitions, x on [{low:g}, 3]\n\n"
            "Percent, the paper's in brackets (it does not say on which interval its rows lie).\n",
            selections(arguments.repeats, arguments.seed, low),
        ]
    if arguments.data:
        parts += ["## CO2, 1980 to 1999\n", co2.report(arguments.data, 20, arguments.seed)]
    print("\n".join(parts))


if __name__ == "__main__":
    main()
