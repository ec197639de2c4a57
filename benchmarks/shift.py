"""Size and power of the shift test, scaled and resampled.

python -m benchmarks.shift [--runs 2000] [--forest-runs 500] [--replicates 199] [--seed 1]

Size: six fixed classifiers, calibrated at registration; validation set and batch are drawn anew in
every run, no shift, nominal 5 %. Power: true posteriors, share .3 to .4, against the noncentral
chi-square with noncentrality N δ² I / (1 + N/n), I the information of one row at .3.
"""

import argparse
from collections.abc import Callable
from math import sqrt

import numpy as np
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import chi2, ncx2, norm

from app.core.arrays import Codes, Floats
from app.core.prevalence.source import Source, ValidationSet, derive
from app.core.prevalence.tests import two_sample
from app.estimation import PosteriorBatch, Request, compare_priors
from benchmarks.false_alarms import (
    DISTANCE,
    ROWS,
    SOURCE_SHARE,
    TRAINING_ROWS,
    Classifier,
    classifiers,
    draw,
)
from benchmarks.report import heading, table


def all_classifiers(seed: int) -> dict[str, Classifier]:
    """Those of the false-alarm benchmark, two distorted ones, and a forest."""
    from sklearn.ensemble import RandomForestClassifier

    methods = classifiers(seed)
    exact = methods["calibrated"]

    def distorted(change: Callable[[Floats], Floats]) -> Classifier:
        def classify(x: Floats) -> Floats:
            positive = expit(change(logit(exact(x)[:, 1])))
            return np.column_stack([1 - positive, positive])

        return classify

    labels, features = draw(np.random.default_rng(seed), TRAINING_ROWS, SOURCE_SHARE)
    forest = RandomForestClassifier(n_estimators=100, random_state=seed).fit(features, labels)
    return {
        "calibrated": exact,
        "temperature 2": distorted(lambda z: z / 2),
        "logit bias 0.4": distorted(lambda z: z + 0.4),
        "naive Bayes, redundant features": methods["naive Bayes, redundant features"],
        "balanced-weight logistic": methods["balanced-weight logistic"],
        "random forest": forest.predict_proba,
    }


def size(classify: Classifier, runs: int, replicates: int, seed: int) -> tuple[float, float]:
    """Share of alarms at 5 % without a shift: scaled chi-square, and resampled."""
    rng = np.random.default_rng(seed)
    scaled, resampled = 0, 0
    for run in range(runs):
        labels, features = draw(rng, ROWS, SOURCE_SHARE)
        rows = classify(features)
        model = derive(Source(("no", "yes"), validation=ValidationSet(labels, rows)))
        batch = PosteriorBatch(classify(draw(rng, ROWS, SOURCE_SHARE)[1]))
        test = compare_priors(model, batch, Request()).shift
        scaled += test.p_value < 0.05
        if replicates:
            null = two_sample.null_statistics(
                ROWS, rows, labels, model.calibration, run, replicates
            )
            resampled += two_sample.p_value(test.statistic, null) <= 0.05
    return scaled / runs, resampled / runs


def power(distance: float, runs: int, seed: int, rows: int = 1000) -> tuple[float, float]:
    """Share of detections of .3 → .4 with n = N = rows, and what theory predicts."""
    rng = np.random.default_rng(seed)
    source, target = 0.3, 0.4

    def sample(share: float) -> tuple[Codes, Floats]:
        labels: Codes = (rng.random(rows) < share).astype(np.intp)
        x = rng.normal(labels * distance, 1.0)
        positive = expit(distance * x - distance**2 / 2 + logit(source))
        return labels, np.column_stack([1 - positive, positive])

    detections = 0
    for _ in range(runs):
        labels, posteriors = sample(source)
        validation = ValidationSet(labels, posteriors)
        model = derive(Source(("no", "yes"), validation=validation))
        test = compare_priors(model, PosteriorBatch(sample(target)[1]), Request()).shift
        detections += test.p_value < 0.05

    def information(x: float) -> float:
        zero, one = norm.pdf(x), norm.pdf(x, distance)
        return float((one - zero) ** 2 / ((1 - source) * zero + source * one))

    per_row = quad(information, -10, 10 + distance)[0]
    noncentrality = rows * (target - source) ** 2 * per_row / 2
    return detections / runs, float(ncx2.sf(chi2.ppf(0.95, 1), 1, noncentrality))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--forest-runs", type=int, default=500)
    parser.add_argument("--replicates", type=int, default=199)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rows = []
    for name, classify in all_classifiers(arguments.seed).items():
        runs = arguments.forest_runs if name == "random forest" else arguments.runs
        scaled, resampled = size(classify, runs, arguments.replicates, arguments.seed)
        error = sqrt(0.05 * 0.95 / runs)
        rows.append([name, str(runs), f"{scaled:.2%}", f"{resampled:.2%}", f"{error:.2%}"])
    print(heading("shift"))
    print(
        f"n = N = {ROWS}, share {SOURCE_SHARE}, class distance {DISTANCE}, "
        f"{arguments.replicates} replicates\n"
    )
    print(table(["classifier", "runs", "scaled chi-square", "resampled", "standard error"], rows))
    powers = []
    for distance in (1.0, 2.0):
        rate, theory = power(distance, arguments.runs, arguments.seed)
        powers.append([str(distance), f"{rate:.1%}", f"{theory:.1%}"])
    print(table(["class distance", "power .3 → .4, n = N = 1000", "theory"], powers))


if __name__ == "__main__":
    main()
