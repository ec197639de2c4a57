"""How often a change of the class shares alone is taken for a shift of an attribute.

Two normal classes, three attributes one deviation apart; 1,000 training rows with half of the
first class, a batch of 1,000 rows with a fifth of it. Trees of depth 4.
"""

import argparse
from dataclasses import dataclass

import numpy as np

from app.core.arrays import Codes, Floats
from app.core.trees.adaptation import TreeAdaptation, adaptation
from app.core.trees.model import VersatileTree
from app.core.trees.options import TreeOptions
from app.training.trees import TreeTraining, grow
from benchmarks.report import heading, table

ROWS = 1_000
ATTRIBUTES = ("x", "y", "z")
APART = 1.0
SOURCE, TARGET = 0.5, 0.8
KNOWN = np.array([1 - TARGET, TARGET])


@dataclass(frozen=True)
class Rates:
    """Shares of attributes flagged: no shift; priors ignored, known and estimated."""

    unshifted: float
    ignored: float
    known: float
    estimated: float
    prevalence: Floats
    settled: float


def rates(runs: int, seed: int) -> Rates:
    rng = np.random.default_rng(seed)
    flags = np.zeros((runs, 4))
    prevalence, settled = np.empty(runs), 0
    for run in range(runs):
        model = grown(*draw(rng, SOURCE))
        same, _ = draw(rng, SOURCE)
        batch, _ = draw(rng, TARGET)
        estimated = adaptation(model, batch, TreeOptions(), "estimate")
        assert estimated.output_shift is not None
        flags[run] = [
            flagged(adaptation(model, same, TreeOptions())),
            flagged(adaptation(model, batch, TreeOptions())),
            flagged(adaptation(model, batch, TreeOptions(), KNOWN)),
            flagged(estimated),
        ]
        prevalence[run] = estimated.output_shift.target_priors[1]
        settled += estimated.output_shift.status == "converged"
    unshifted, ignored, known, estimating = flags.mean(axis=0).tolist()
    return Rates(unshifted, ignored, known, estimating, prevalence, settled / runs)


def draw(rng: np.random.Generator, share: float) -> tuple[Floats, Codes]:
    labels = (rng.random(ROWS) < share).astype(np.intp)
    return rng.normal(size=(ROWS, len(ATTRIBUTES))) + APART * labels[:, None], labels


def grown(features: Floats, labels: Codes) -> VersatileTree:
    training = TreeTraining(features, labels, ("a", "b"), ATTRIBUTES, (), 4, 20)
    return grow(training)


def flagged(found: TreeAdaptation) -> float:
    return float(np.mean([shift.shifted for shift in found.attributes]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    found = rates(asked.runs, asked.seed)
    error = float(np.sqrt(0.05 * 0.95 / (asked.runs * len(ATTRIBUTES))))
    print("# Prior shift that is not taken for a covariate shift\n")
    print(heading("trees_prior_shift"))
    print(f"{asked.runs} runs; standard error of a rate of 5 %: {100 * error:.2f} points.\n")
    rows = [
        ["no shift", f"{100 * found.unshifted:.2f}"],
        ["priors 0.5 to 0.8, ignored", f"{100 * found.ignored:.2f}"],
        ["priors 0.5 to 0.8, known", f"{100 * found.known:.2f}"],
        ["priors 0.5 to 0.8, estimated", f"{100 * found.estimated:.2f}"],
    ]
    print(table(["batch", "% of attributes flagged at 5 %"], rows))
    mean, spread = found.prevalence.mean(), found.prevalence.std()
    print(f"Estimated share (true: {TARGET}): mean {mean:.4f}, deviation {spread:.4f}; ", end="")
    print(f"{100 * found.settled:.2f} % of the searches converged.")


if __name__ == "__main__":
    main()
