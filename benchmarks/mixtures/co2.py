"""CO2 emissions on income of 1980, carried to 1999."""

import csv
from pathlib import Path

import numpy as np

from app.core.arrays import Floats
from app.core.mixtures.adapt import adapt
from app.core.mixtures.fit import fit
from app.core.mixtures.mixture import RegressionMixture
from benchmarks.mixtures.simulated import score
from benchmarks.report import table

FILE = "co2_gnp_1980_1999.csv"
SHARES = (0.3, 0.5, 0.7)


def _year(path: Path, year: int) -> tuple[Floats, Floats]:
    """Log income and tonnes per person of the countries that have both years."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [
            (float(row["gnp_per_capita_usd"]), float(row["target"]))
            for row in csv.DictReader(file)
            if int(row["year"]) == year and row["in_both_years"] in ("1", "True", "true")
        ]
    income, tonnes = np.array(rows).T
    return np.log(income), tonnes


def report(data: Path, repeats: int, seed: int) -> str:
    """Every link on all rows of 1999, then what each criterion chooses on parts of them."""
    x80, y80 = _year(data / FILE, 1980)
    x, y = _year(data / FILE, 1999)
    centre = float(x80.mean())  # powers of a centred covariate; the links act on these terms
    x80, x = x80 - centre, x - centre
    source = fit(x80, y80, 2, degree=2, starts=30, seed=seed)
    whole = adapt(source.mixture, x, y, criterion="press", seed=seed)
    rows = []
    for one in whole.table:
        assert one.cross is not None
        rows.append(
            [
                one.name,
                f"{one.bic:.1f}",
                f"{one.cross.mean:.2f}",
                f"{one.cross.log_density:.1f}",
                f"{one.error:.2f}",
                f"{one.oracle_error:.2f}",
                ", ".join(warning.code for warning in one.warnings),
            ]
        )
    least = min((f for f in whole.table if f.sound), key=lambda f: f.bic)
    names = ["link", "BIC", "PRESS / n", "log predictive density", "MSE", "oracle MSE", "flags"]
    text = (
        f"1980: {len(y80)} countries, two components with proportions "
        f"{np.round(source.mixture.proportions, 2)}, BIC {source.bic:.1f} (one component: "
        f"{fit(x80, y80, 1, degree=2).bic:.1f}). 1999: {len(y)} countries; BIC prefers "
        f"{least.name}, PRESS {whole.chosen.name}. Log income is centred at its mean of 1980, "
        "the vintage of the data is another than the paper's.\n\n" + table(names, rows)
    )
    return text + "\n" + _parts(source.mixture, x, y, repeats, seed)


def _parts(source: RegressionMixture, x: Floats, y: Floats, repeats: int, seed: int) -> str:
    random = np.random.default_rng(seed)
    rows = []
    for share in SHARES:
        scores: dict[str, list[tuple[float, float, float]]] = {}
        chosen: dict[str, int] = {}
        for _ in range(repeats):
            some = random.permutation(len(y)) < round(share * len(y))
            out = ~some
            auto = adapt(source, x[some], y[some], seed=seed)
            chosen[auto.chosen.name] = chosen.get(auto.chosen.name, 0) + 1
            by_name = {one.name: one.mixture for one in auto.table}
            for name, mixture in (
                ("source as it is", source),
                ("chosen by BIC", auto.chosen.mixture),
                ("pM2b", by_name["pM2b"]),
                ("pM5", by_name["pM5"]),
                ("single", by_name["single"]),
            ):
                got = score(mixture, x[out], y[out])
                scores.setdefault(name, []).append((got.honest, got.oracle, got.log_density))
        most = ", ".join(f"{k} {v}" for k, v in sorted(chosen.items(), key=lambda c: -c[1])[:4])
        for name, values in scores.items():
            honest, oracle, density = np.median(values, axis=0)
            row = [f"{share:.0%}", name, f"{honest:.2f}", f"{oracle:.2f}", f"{density:.2f}"]
            rows.append([*row, most if name == "chosen by BIC" else ""])
    names = ["rows", "model", "MSE", "oracle MSE", "ln p(y given x)", "choices"]
    heading = f"On the rows that were left out, medians of {repeats} draws of the rows:\n\n"
    return heading + table(names, rows)
