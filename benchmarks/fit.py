"""How often the fit calls a batch no prior shift: where it is one, and where it is none.

python -m benchmarks.fit [--runs 2000] [--power-runs 400] [--seed 1]

Normal classes of unit variance. In every run the labelled rows (n) and the batch (N) are drawn
anew, at other class shares; the posteriors are those of a fixed, calibrated classifier. Then the
same with every row of the batch moved by 0.3 sd in one informative feature, and with a tenth of
the batch replaced by a new normal class two sd away from the first one, on its far side.
"""

import argparse
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.special import softmax

from app.core.arrays import Codes, Floats
from app.core.prevalence.matching import bandwidth
from app.core.prevalence.matching.embedding import Embedded, Embedding
from app.core.prevalence.matching.feature_fit import features_fit
from app.core.prevalence.matching.posterior_fit import Bins
from app.core.prevalence.matching.random_features import FourierMap, Standard
from benchmarks.report import heading, table

ROWS = 2000
DIMENSION = 500
LEVEL = 0.05
MOVED = 0.3
STRANGERS = 0.1
AWAY = 2.0
KINDS = ("prior shift", "covariate shift", "contamination")


@dataclass(frozen=True)
class Setup:
    """Classes by their centres, C × d, with their shares in source and batch."""

    name: str
    centres: Floats
    source: Floats
    target: Floats

    def draw(self, rng: np.random.Generator, shares: Floats) -> tuple[Codes, Floats]:
        """Labels and features of ``ROWS`` rows; every class occurs."""
        labels = rng.choice(len(shares), ROWS, p=shares)
        return labels, rng.normal(self.centres[labels], 1.0)

    def batch(self, rng: np.random.Generator, kind: str) -> Floats:
        """Features of a batch."""
        rows = self.draw(rng, self.target)[1]
        if kind == "covariate shift":
            rows[:, 0] += MOVED
        if kind == "contamination":
            away = self.centres[0] - self.centres.mean(axis=0)
            centre = self.centres[0] + AWAY * away / np.linalg.norm(away)
            count = round(STRANGERS * ROWS)
            rows[:count] = rng.normal(centre, 1.0, (count, len(centre)))
        return rows

    def posteriors(self, rows: Floats) -> Floats:
        """Of the classifier."""
        centres = self.centres
        scores = rows @ centres.T - 0.5 * (centres**2).sum(axis=1) + np.log(self.source)
        return np.asarray(softmax(scores, axis=1))


SETUPS = (
    Setup(
        "two classes, four features",
        np.array([[0.0, 0.0, 0.0, 0.0], [1.2, 1.2, 1.2, 0.0]]),
        np.array([0.8, 0.2]),
        np.array([0.5, 0.5]),
    ),
    Setup(
        "three classes, five features",
        np.array([[0.0, 0, 0, 0, 0], [1.5, 1.5, 0, 0, 0], [0, 1.5, 1.5, 0, 0]]),
        np.array([0.5, 0.3, 0.2]),
        np.array([0.2, 0.3, 0.5]),
    ),
)


def p_values(setup: Setup, kind: str, runs: int, seed: int) -> tuple[Floats, Floats]:
    """Of the fits by features and by posteriors."""
    rng = np.random.default_rng(seed)
    classes = len(setup.source)
    values = np.empty((2, runs))
    labels, rows = setup.draw(rng, setup.source)
    sigma = bandwidth.choose(Standard.of(rows, True).apply(rows), labels, classes, "delta-min", 0)
    drawn = FourierMap.of(rows.shape[1], DIMENSION, sigma, 0)
    for run in range(runs):
        labels, rows = setup.draw(rng, setup.source)
        batch = setup.batch(rng, kind)
        embedding = Embedding.of(rows, labels, classes, Standard.of(rows, True), drawn)
        by_features = features_fit(embedding, Embedded.of(batch, embedding), setup.source, run)
        bins = Bins.of(setup.posteriors(rows), labels)
        assert bins is not None
        by_posteriors = bins.fit(bins.count(setup.posteriors(batch)), setup.source, run)
        assert by_features is not None
        assert by_posteriors is not None
        values[:, run] = by_features.p_value, by_posteriors.p_value
    return values[0], values[1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--power-runs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    lines = []
    for setup in SETUPS:
        for kind in KINDS:
            runs = arguments.runs if kind == "prior shift" else arguments.power_runs
            values = p_values(setup, kind, runs, arguments.seed)
            for reference, p in zip(("features", "posteriors"), values, strict=True):
                rate = float((p <= LEVEL).mean())
                error = sqrt(rate * (1 - rate) / runs)
                rare = float((p <= LEVEL / 5).mean())
                cells = [setup.name, kind, reference, str(runs)]
                lines.append([*cells, f"{rate:.3f} ± {error:.3f}", f"{rare:.3f}"])
    print("# Is prior shift a believable explanation?\n")
    print(heading("fit", ("numpy", "scipy")))
    print(f"Share of runs with p ≤ {LEVEL} and ≤ {LEVEL / 5:g}; n = N = {ROWS}, D = {DIMENSION}.\n")
    names = ["set-up", "batch", "fit of", "runs", f"p ≤ {LEVEL}", f"p ≤ {LEVEL / 5:g}"]
    print(table(names, lines))


if __name__ == "__main__":
    main()
