"""How often the shift test cries wolf, and how far the estimates are off.

python -m benchmarks.false_alarms [--runs 2000] [--seed 1]

Three classifiers, fixed; in every run the validation set (n rows) and the batch (N rows) are
drawn anew. Without shift, at a true share of .2, the test at 5 % should alarm in 5 % of the runs.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.special import expit

from app.core.arrays import Codes, Floats
from app.core.prevalence.calibration import METHODS, Method
from app.core.prevalence.source import Source, SourceModel, ValidationSet, derive
from app.estimation import PosteriorBatch, Request, estimate
from benchmarks.report import heading, table

SOURCE_SHARE = 0.2
SHIFTED_SHARE = 0.5
DISTANCE = 2.0
ROWS = 500
TRAINING_ROWS = 2000
CALIBRATIONS = METHODS

Classifier = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Outcome:
    """Of one classifier and calibration: alarms without shift, mean estimates of the share."""

    classifier: str
    calibration: Method
    runs: int
    alarms: float
    raw_alarms: float
    mean_unshifted: float
    mean_shifted: float


def draw(rng: np.random.Generator, rows: int, share: float) -> tuple[Codes, Floats]:
    """Labels and three features; the last two repeat the first with noise."""
    labels = (rng.random(rows) < share).astype(np.intp)
    first = rng.normal(DISTANCE * labels, 1.0)
    noise = rng.normal(0.0, 0.3, (rows, 2))
    return labels, np.column_stack([first, first + noise[:, 0], first + noise[:, 1]])


def classifiers(seed: int) -> dict[str, Classifier]:
    """Calibrated by construction; balanced weights; redundant features counted thrice."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    labels, features = draw(np.random.default_rng(seed), TRAINING_ROWS, SOURCE_SHARE)
    balanced = LogisticRegression(class_weight="balanced").fit(features, labels)
    naive = GaussianNB().fit(features, labels)

    def calibrated(x: Floats) -> Floats:
        logit = DISTANCE * x[:, 0] - DISTANCE**2 / 2 + np.log(SOURCE_SHARE / (1 - SOURCE_SHARE))
        positive = expit(logit)
        return np.column_stack([1 - positive, positive])

    return {
        "calibrated": calibrated,
        "balanced-weight logistic": balanced.predict_proba,
        "naive Bayes, redundant features": naive.predict_proba,
    }


def simulate(name: str, classify: Classifier, calibration: Method, runs: int, seed: int) -> Outcome:
    """Repeat registration and estimate with everything drawn anew."""
    rng = np.random.default_rng(seed)
    alarms, raw_alarms, unshifted, shifted = 0, 0, 0.0, 0.0
    request = Request(method="em")
    for _ in range(runs):
        model = _register(rng, classify, calibration)
        result = estimate(model, _batch(rng, classify, SOURCE_SHARE), request)
        assert result.shift is not None
        alarms += result.shift.p_value < 0.05
        raw_alarms += result.shift.raw_p_value < 0.05
        unshifted += result.prevalence[1]
        moved = estimate(model, _batch(rng, classify, SHIFTED_SHARE), request)
        shifted += moved.prevalence[1]
    return Outcome(
        name, calibration, runs, alarms / runs, raw_alarms / runs, unshifted / runs, shifted / runs
    )


def _register(rng: np.random.Generator, classify: Classifier, calibration: Method) -> SourceModel:
    labels, features = draw(rng, ROWS, SOURCE_SHARE)
    validation = ValidationSet(labels, classify(features))
    return derive(Source(("no", "yes"), validation=validation, calibration=calibration))


def _batch(rng: np.random.Generator, classify: Classifier, share: float) -> PosteriorBatch:
    return PosteriorBatch(classify(draw(rng, ROWS, share)[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rows = []
    for name, classify in classifiers(arguments.seed).items():
        for calibration in CALIBRATIONS:
            rates = simulate(name, classify, calibration, arguments.runs, arguments.seed)
            error = sqrt(rates.alarms * (1 - rates.alarms) / arguments.runs)
            rows.append(
                [
                    name,
                    calibration,
                    f"{rates.alarms:.2%} ± {error:.2%}",
                    f"{rates.raw_alarms:.1%}",
                    f"{rates.mean_unshifted:.4f}",
                    f"{rates.mean_shifted:.4f}",
                ]
            )
    print(heading("false_alarms"))
    print(
        f"n = N = {ROWS}, {arguments.runs} runs, true shares {SOURCE_SHARE} and {SHIFTED_SHARE}\n"
    )
    print(
        table(
            [
                "classifier",
                "calibration",
                "false alarms at 5 %",
                "raw test",
                f"mean estimate at {SOURCE_SHARE}",
                f"mean estimate at {SHIFTED_SHARE}",
            ],
            rows,
        )
    )


if __name__ == "__main__":
    main()
