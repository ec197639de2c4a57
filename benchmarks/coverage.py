"""How often the intervals cover what they are for.

python -m benchmarks.coverage [--runs 10000] [--seed 1] [--level 0.95]

Normal classes; the batch, and where the source is estimated the validation set too, are drawn
anew in every run. One class of each setting is looked at.
"""

import argparse
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Codes, Floats
from app.core.prevalence.estimators.confusion import ConfusionMatrix
from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.source import Source, ValidationSet, derive
from app.core.prevalence.uncertainty.covariance import Of, SourceError, Uncertainty
from app.core.prevalence.uncertainty.intervals import likelihood_intervals
from app.estimation import IntervalOptions, OutputBatch, Request, estimate
from benchmarks.report import heading, table


@dataclass(frozen=True)
class Setting:
    """Class means at the corners of a simplex with edge ``distance``; class k is looked at."""

    name: str
    source: tuple[float, ...]
    target: tuple[float, ...]
    rows: int
    distance: float
    k: int
    validation_rows: int | None = None
    overconfidence: float = 1.0


SETTINGS = (
    Setting("interior, two classes", (0.5, 0.5), (0.7, 0.3), 500, 2.0, 1),
    Setting("interior, two classes, overlapping", (0.5, 0.5), (0.6, 0.4), 2000, 1.0, 1),
    Setting("interior, three classes", (0.4, 0.3, 0.3), (0.5, 0.3, 0.2), 1000, 2.0, 2),
    Setting("estimated source", (0.8, 0.2), (0.7, 0.3), 500, 2.0, 1, 500),
    Setting("estimated source, strong shift", (0.8, 0.2), (0.4, 0.6), 500, 2.0, 1, 500, 3.0),
    Setting("estimated source, large batch", (0.5, 0.5), (0.7, 0.3), 5000, 2.0, 1, 500, 3.0),
    Setting("estimated source, three", (0.4, 0.3, 0.3), (0.5, 0.3, 0.2), 500, 2.0, 2, 500, 2.0),
    Setting("rare class", (0.99, 0.01), (0.998, 0.002), 5000, 3.0, 1),
    Setting("rare class, well separated", (0.99, 0.01), (0.998, 0.002), 5000, 6.0, 1),
    Setting("at the boundary", (0.8, 0.2), (1.0, 0.0), 500, 2.0, 1),
    Setting("at the boundary, separated", (0.8, 0.2), (1.0, 0.0), 500, 6.0, 1),
    Setting("at the boundary, three", (0.4, 0.3, 0.3), (0.6, 0.4, 0.0), 500, 2.0, 2),
    Setting("boundary, estimated source", (0.8, 0.2), (1.0, 0.0), 500, 2.0, 1, 500, 2.0),
)


def draw(
    rng: np.random.Generator, setting: Setting, shares: tuple[float, ...], rows: int
) -> tuple[Codes, Floats]:
    """Labels, and posteriors under the source priors, sharpened by ``overconfidence``."""
    classes = len(shares)
    labels: NDArray[np.intp] = rng.choice(classes, rows, p=shares)
    means = np.eye(classes) * setting.distance / sqrt(2)
    x = means[labels] + rng.normal(size=(rows, classes))
    logits = x @ means.T - 0.5 * (means**2).sum(axis=1) + np.log(setting.source)
    logits *= setting.overconfidence
    posteriors = np.exp(logits - logits.max(axis=1, keepdims=True))
    return labels, posteriors / posteriors.sum(axis=1, keepdims=True)


def covers(rng: np.random.Generator, setting: Setting, of: Of, level: float) -> tuple[bool, float]:
    """Whether one interval covers, and how wide it is."""
    labels, posteriors = draw(rng, setting, setting.target, setting.rows)
    source = np.array(setting.source)
    uncertainty: Uncertainty | None = None
    calibration = None
    if setting.validation_rows is not None:
        validation = ValidationSet(*draw(rng, setting, setting.source, setting.validation_rows))
        names = tuple(map(str, range(len(source))))
        model = derive(Source(names, validation=validation))
        source, calibration = model.priors, model.calibration
        assert model.nuisance is not None
        uncertainty = SourceError(model.nuisance, calibration)
    likelihood = Likelihood.of(posteriors, source, calibration=calibration)
    intervals = likelihood_intervals(likelihood, mle(likelihood), level, of, "auto", uncertainty)
    k = setting.k
    share = setting.target[k] if of == "population" else float(np.mean(labels == k))
    lower, upper = float(intervals.lower[k]), float(intervals.upper[k])
    return lower - 1e-9 <= share <= upper + 1e-9, upper - lower


def coverage(setting: Setting, of: Of, level: float, runs: int, seed: int) -> tuple[float, float]:
    """The share of runs that cover, and the mean width."""
    rng = np.random.default_rng(seed)
    results = [covers(rng, setting, of, level) for _ in range(runs)]
    return float(np.mean([r[0] for r in results])), float(np.mean([r[1] for r in results]))


COUNTED = (
    (30, 0.97, 0.05, 500),
    (100, 0.97, 0.02, 1000),
    (1000, 0.97, 0.02, 1000),
    (20, 0.9, 0.3, 500),
)
"""Labelled rows per class, accuracy, true share, rows of the batch."""


def counted(
    rows: int,
    accuracy: float,
    share: float,
    batch: int,
    method: str,
    level: float,
    runs: int,
    seed: int,
) -> tuple[float, float]:
    """Coverage and width for predicted counts, the confusion matrix redrawn in every run."""
    rng = np.random.default_rng(seed)
    M = np.array([[accuracy, 1 - accuracy], [1 - accuracy, accuracy]])
    request = Request(method, interval=IntervalOptions(level))
    covered, width = 0, 0.0
    for _ in range(runs):
        confusion = ConfusionMatrix(np.array([rng.multinomial(rows, row) for row in M]) + 0.0)
        source = Source(
            ("no", "yes"),
            class_counts=np.array([100.0, 100.0]),
            confusion=confusion,
            outputs=("no", "yes"),
        )
        counts = rng.multinomial(batch, np.array([1 - share, share]) @ M).astype(float)
        interval = estimate(derive(source), OutputBatch(counts), request).interval
        assert interval is not None
        covered += interval.lower[1] - 1e-9 <= share <= interval.upper[1] + 1e-9
        width += float(interval.upper[1] - interval.lower[1])
    return covered / runs, width / runs


def counted_table(level: float, runs: int, seed: int) -> str:
    lines = []
    for setting in COUNTED:
        cells = [str(value) for value in setting]
        for method in ("mle", "acc-qp"):
            rate, width = counted(*setting, method, level, runs, seed)
            cells += [f"{rate:.1%}", f"{width:.4f}"]
        lines.append(cells)
    names = ["rows per class", "accuracy", "share", "N", "mle", "width", "acc-qp", "width"]
    return table(names, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--level", type=float, default=0.95)
    arguments = parser.parse_args()
    rows = []
    for setting in SETTINGS:
        cells = []
        of: Of
        for of in ("population", "batch"):
            rate, width = coverage(setting, of, arguments.level, arguments.runs, arguments.seed)
            cells += [f"{rate:.2%}", f"{width:.4f}"]
        n = setting.validation_rows
        rows.append([setting.name, str(setting.rows), "exact" if n is None else str(n), *cells])
    print(heading("coverage"))
    error = sqrt(arguments.level * (1 - arguments.level) / arguments.runs)
    print(f"level {arguments.level}, {arguments.runs} runs each, standard error {error:.2%}\n")
    print(table(["setting", "N", "n", "population", "width", "batch", "width"], rows))
    few = max(arguments.runs // 10, 10)
    print(f"Predicted counts, the confusion matrix redrawn in every run, {few} runs each\n")
    print(counted_table(arguments.level, few, arguments.seed))


if __name__ == "__main__":
    main()
