"""The default estimate against QuaPy's EMQ with BCTS, on the same splits.

python -m benchmarks.emq [--data DIR] [--splits 2000] [--seed 1]

Both get the same validation posteriors and labels and the same batches. Without QuaPy (and the
package abstention, which its BCTS needs) in the environment, its EM is written out here and runs
behind this project's calibration.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from app.core.arrays import Codes, Floats, Mask
from app.core.prevalence.measures import absolute_error
from app.core.prevalence.source import Source, SourceModel, ValidationSet, derive
from app.estimation import PosteriorBatch, Request, estimate
from benchmarks.report import heading, table

SIZES = (100, 1000)
"""Rows of a batch."""
FOLDS = 5
SCIKIT_LEARN = ("iris", "wine", "breast_cancer", "digits")
PUBLISHED = ("cifar10_vgg", "cifar10_wideresnet164")
PATIENCE, STEP, MOST = 10, 1e-4, 1000
"""QuaPy's EM stops after ten iterations at the first mean absolute step below 1e-4."""
GOAL = 0.02


@dataclass(frozen=True)
class Split:
    """Labelled validation posteriors, and a pool of labelled ones to draw batches from."""

    validation: ValidationSet
    pool: Floats
    labels: Codes


Draw = Callable[[np.random.Generator], Split]
Estimator = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Peer:
    """The other side of the comparison: from a validation set to an estimator of batches.

    ``fallback`` answers where ``fitted`` says NaN.
    """

    name: str
    fitted: Callable[[ValidationSet], Estimator]
    fallback: Callable[[ValidationSet], Estimator]
    packages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Errors:
    """Absolute errors on one set at one batch size, one number per split.

    ``early``: EM as QuaPy stops it, on this project's calibration. ``failed``: splits at which
    the peer fell back.
    """

    name: str
    size: int
    ours: Floats
    peer: Floats
    early: Floats
    failed: Mask

    @property
    def difference(self) -> tuple[float, float]:
        """Mean of ours − peer, and half the width of its 95 % interval."""
        difference = self.ours - self.peer
        return float(difference.mean()), 1.96 * float(difference.std(ddof=1)) / sqrt(len(self.ours))

    @property
    def upper(self) -> float:
        """Upper end of the interval, relative to the peer's mean error."""
        mean, half = self.difference
        return (mean + half) / float(self.peer.mean())

    def where_both_calibrate(self) -> "Errors":
        """The splits at which the peer did not fall back."""
        fine = ~self.failed
        return replace(
            self,
            ours=self.ours[fine],
            peer=self.peer[fine],
            early=self.early[fine],
            failed=self.failed[fine],
        )

    def cells(self) -> list[str]:
        mean, half = self.difference
        return [
            self.name,
            str(self.size),
            f"{self.ours.mean():.5f}",
            f"{self.peer.mean():.5f}",
            f"{mean:+.6f} ± {half:.6f}",
            f"{self.upper:+.2%}",
            str(int(self.failed.sum())),
            f"{self.where_both_calibrate().upper:+.2%}",
            f"{self.early.mean():.5f}",
        ]


def scikit_learn(name: str) -> Draw:
    """A set that ships with scikit-learn; half trains and validates, half is the pool.

    The validation posteriors are out-of-fold, those of the pool come from the model of the half.
    """
    from sklearn import datasets
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features, labels = getattr(datasets, f"load_{name}")(return_X_y=True)

    def draw(rng: np.random.Generator) -> Split:
        state = int(rng.integers(2**31))
        x, pool, y, truth = train_test_split(
            features, labels, test_size=0.5, stratify=labels, random_state=state
        )
        learner = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=state)
        scores = cross_val_predict(learner, x, y, cv=folds, method="predict_proba")
        return Split(ValidationSet(y, scores), learner.fit(x, y).predict_proba(pool), truth)

    return draw


def published(path: Path) -> Draw:
    """Posteriors of a network: half of the rows validate, half are the pool."""
    stored = np.load(path, allow_pickle=False)
    posteriors = stored["posteriors"].astype(np.float64)
    posteriors /= posteriors.sum(axis=1, keepdims=True)
    labels = stored["target"].astype(np.intp)

    def draw(rng: np.random.Generator) -> Split:
        order = rng.permutation(len(labels))
        first, second = order[: len(order) // 2], order[len(order) // 2 :]
        validation = ValidationSet(labels[first], posteriors[first])
        return Split(validation, posteriors[second], labels[second])

    return draw


def batch(split: Split, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Posteriors of a batch at priors uniform on the simplex, and its true shares."""
    classes = split.pool.shape[1]
    counts = rng.multinomial(size, rng.dirichlet(np.ones(classes)))
    rows = [
        rng.choice(np.flatnonzero(split.labels == k), count)
        for k, count in enumerate(counts)
        if count > 0
    ]
    return split.pool[np.concatenate(rows)], counts / size


def registered(validation: ValidationSet) -> SourceModel:
    """As a caller registers a version, nothing said about calibration."""
    classes = validation.posteriors.shape[1]
    return derive(Source(tuple(map(str, range(classes))), validation=validation))


def default(model: SourceModel) -> Estimator:
    """What a caller gets who asks for nothing in particular."""
    return lambda rows: estimate(model, PosteriorBatch(rows), Request()).prevalence


def stopped_early(model: SourceModel) -> Estimator:
    """EM as QuaPy stops it, on posteriors calibrated by this project."""
    return lambda rows: quapys_em(model.priors, model.calibration.apply(rows))


def quapys_em(source: Floats, posteriors: Floats) -> Floats:
    """EM until the mean absolute step is below 1e-4, after more than ten iterations."""
    ratios = posteriors / source
    shares = source
    for iteration in range(MOST):
        mixture = ratios * shares
        updated = (mixture / mixture.sum(axis=1, keepdims=True)).mean(axis=0)
        step = float(np.abs(updated - shares).mean())
        shares = updated
        if iteration > PATIENCE and step < STEP:
            break
    return shares


def the_peer() -> Peer:
    """QuaPy's EMQ with BCTS, or its EM alone where it is not installed."""
    if find_spec("quapy") is None or find_spec("abstention") is None:
        return Peer("EM", _em_alone, _em_alone)
    return Peer("QuaPy", _quapy, _quapy_uncalibrated, ("quapy", "abstention"))


def _em_alone(validation: ValidationSet) -> Estimator:
    return stopped_early(registered(validation))


def _quapy(validation: ValidationSet) -> Estimator:
    """EMQ with BCTS; NaN where its calibration overflows or does not converge."""
    from quapy.method.aggregative import EMQ

    scored = (validation.posteriors, validation.labels)
    classifier = _scored(validation.posteriors.shape[1])
    try:
        method = EMQ.EMQ_BCTS(classifier, fit_classifier=False, val_split=scored).fit(*scored)
    except RuntimeError:
        return lambda rows: np.full(rows.shape[1], np.nan)
    return _predictions(method)


def _quapy_uncalibrated(validation: ValidationSet) -> Estimator:
    """EMQ without calibration, which is what QuaPy falls back to."""
    from quapy.method.aggregative import EMQ

    scored = (validation.posteriors, validation.labels)
    method = EMQ(
        _scored(validation.posteriors.shape[1]),
        fit_classifier=False,
        val_split=scored,
        exact_train_prev=False,
    )
    return _predictions(method.fit(*scored))


def _scored(classes: int) -> Any:
    """A trained classifier whose features are its posteriors."""
    from sklearn.base import BaseEstimator

    class Scored(BaseEstimator):  # type: ignore[misc]
        def __init__(self) -> None:
            self.classes_ = np.arange(classes)

        def fit(self, X: Floats, y: Codes) -> "Scored":
            return self

        def predict_proba(self, X: Floats) -> Floats:
            return X

    return Scored()


def _predictions(method: Any) -> Estimator:
    def predict(rows: Floats) -> Floats:
        shares: Floats = method.predict(rows)
        return shares

    return predict


def compare(name: str, draw: Draw, splits: int, seed: int, peer: Peer) -> Iterator[Errors]:
    """Errors of both sides at each batch size, every split with a batch of its own."""
    rng = np.random.default_rng(seed)
    errors = np.empty((len(SIZES), 3, splits))
    failed = np.zeros((len(SIZES), splits), np.bool_)
    for at in range(splits):
        split = draw(rng)
        model = registered(split.validation)
        ours, theirs, early = default(model), peer.fitted(split.validation), stopped_early(model)
        for line, size in enumerate(SIZES):
            rows, truth = batch(split, size, rng)
            other = theirs(rows)
            if not np.isfinite(other).all():
                failed[line, at] = True
                other = peer.fallback(split.validation)(rows)
            answers = (ours(rows), other, early(rows))
            errors[line, :, at] = [absolute_error(truth, shares) for shares in answers]
    for size, (own, others, stopped), fell_back in zip(SIZES, errors, failed, strict=True):
        yield Errors(name, size, own, others, stopped, fell_back)


def sets(data: Path | None) -> Iterator[tuple[str, Draw]]:
    for name in SCIKIT_LEARN:
        yield name, scikit_learn(name)
    for name in PUBLISHED if data is not None else ():
        assert data is not None
        yield name, published(data / f"post_{name}.npz")


TEXT = """\
Mean absolute error (over classes) of the shares of a batch whose priors are drawn uniformly on the
simplex, against the shares that it really has. *Ours* is what a caller gets who registers a
validation set and asks for nothing in particular: BCTS and the certified maximum of the likelihood.
{peer}
Every split is drawn anew, one batch of each size from it, and both sides get the same posteriors
and labels. The scikit-learn sets: standardised logistic regression on one half, its five-fold
out-of-fold posteriors as the validation set, batches drawn with replacement from the other half.
CIFAR-10: published posteriors of two networks, 5,000 rows to validate and 5,000 to draw from.

*Upper end*: of the paired 95 % interval, relative to the peer's mean error; the goal is at most
{goal:+.0%}. *Failed*: splits at which the peer's BCTS raised an error or overflowed to NaN, on
validation sets that the classifier (nearly) separates; the peer is then run without calibration,
its own way out of an error (`on_calib_error="backup"`); the column after it leaves these splits
out. *EM early*: this project's calibration with an EM that stops as QuaPy's does. The splits are of
one data set each: the intervals say how well these sets are measured, not how others would come
out.
"""

WHO = {
    "QuaPy": "*QuaPy* is `EMQ.EMQ_BCTS` at its defaults.",
    "EM": "*EM* is QuaPy's EM behind this project's calibration: QuaPy is not installed.",
}


def reading(measured: list[Errors]) -> str:
    """What the table comes to, in a sentence."""
    worst = max(measured, key=lambda errors: errors.upper)
    strictly = max(measured, key=lambda errors: errors.where_both_calibrate().upper)
    return (
        f"The largest upper end is {worst.upper:+.2%} ({worst.name}, {worst.size} rows); where "
        f"both calibrate, {strictly.where_both_calibrate().upper:+.2%} ({strictly.name}, "
        f"{strictly.size} rows).\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with the CIFAR-10 posteriors")
    parser.add_argument("--splits", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    # QuaPy's calibration overflows and its EM runs out of iterations; both are in the table.
    warnings.simplefilter("ignore")
    peer = the_peer()
    measured = [
        errors
        for name, draw in sets(arguments.data)
        for errors in compare(name, draw, arguments.splits, arguments.seed, peer)
    ]
    print(f"# The default against {peer.name}\n")
    print(reading(measured))
    print(TEXT.format(peer=WHO[peer.name], goal=GOAL))
    print(heading("emq", ("numpy", "scipy", "scikit-learn", *peer.packages)))
    print(f"{arguments.splits} splits per set\n")
    columns = (
        *("set", "rows", "ours", peer.name, "ours − peer", "upper end", "failed"),
        *("upper end without these", "EM early"),
    )
    print(table(columns, [errors.cells() for errors in measured]))


if __name__ == "__main__":
    main()
