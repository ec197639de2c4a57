"""Late truth: how right an estimate and its adjusted posteriors were."""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Codes, Floats
from app.core.prevalence import measures
from app.core.prevalence.estimators.confusion import ConfusionMatrix, decisions
from app.core.prevalence.measures import Brier, Decisions
from app.estimation.request import Batch, PosteriorBatch
from app.estimation.results import Estimate


@dataclass(frozen=True)
class SharesError:
    """Every measure of estimated shares against the true ones (``core.prevalence.measures``).

    All are ≥ 0, and 0 for the true shares.

    ``absolute_error``: mean over the classes of |estimated − true|.
    ``normalised_absolute_error``: the same over its largest possible value.
    ``relative_absolute_error``: mean of |estimated − true| / true, both smoothed by 1/2N.
    ``squared_error_sum``: Σ (estimated − true)².
    ``kullback_leibler``: Σ true ln(true / estimated), both smoothed by 1/2N.
    ``hellinger``: √(1 − Σ √(true · estimated)), at most 1.
    ``total_variation``: ½ Σ|estimated − true|, at most 1.
    """

    absolute_error: float
    normalised_absolute_error: float
    relative_absolute_error: float
    squared_error_sum: float
    kullback_leibler: float
    hellinger: float
    total_variation: float

    @classmethod
    def of(cls, true: Floats, estimated: Floats, size: int) -> "SharesError":
        """Of C estimated shares; ``size``: rows behind the true ones, for the smoothing."""
        return cls(
            measures.absolute_error(true, estimated),
            measures.normalised_absolute_error(true, estimated),
            measures.relative_absolute_error(true, estimated, size),
            measures.squared_error_sum(true, estimated),
            measures.kullback_leibler(true, estimated, size),
            measures.hellinger(true, estimated),
            measures.total_variation(true, estimated),
        )


@dataclass(frozen=True)
class PosteriorQuality:
    """Quality of N × C posteriors and of their decisions.

    ``equal_length``: the Brier score, decomposed by bins of equal length.
    ``equal_count``: the same by bins of equal count.
    ``log_loss``: −mean ln g of the true class; infinite where it was excluded.
    ``confusion``: C × C counts, rows actual, columns decided.
    ``decisions``: precision, recall and F1 by class, and accuracy.
    """

    equal_length: Brier
    equal_count: Brier
    log_loss: float
    confusion: Floats
    decisions: Decisions

    @classmethod
    def of(cls, posteriors: Floats, labels: Codes) -> "PosteriorQuality":
        """The quality of N × C posteriors against N labels."""
        decided = decisions(posteriors)
        counts = ConfusionMatrix.of_decisions(labels, decided, posteriors.shape[1]).counts
        return cls(
            measures.brier(posteriors, labels, "equal-length"),
            measures.brier(posteriors, labels, "equal-count"),
            measures.log_loss(posteriors, labels),
            counts,
            measures.decision_quality(counts),
        )


@dataclass(frozen=True)
class Evaluation:
    """What N labels say of an estimate.

    ``size``: N.
    ``truth``: label frequencies, C.
    ``counted``: error of the shares by counting decisions; None where there are none, or a class
        has no output of its name.
    ``estimate``: error of the estimated shares.
    ``covered``: C, whether each class's interval holds its true share; None without intervals.
    ``before``: quality of the posteriors as sent; None where there are none.
    ``after``: quality of the posteriors as adjusted; None where there are none.
    """

    size: int
    truth: Floats
    counted: SharesError | None
    estimate: SharesError
    covered: tuple[bool, ...] | None
    before: PosteriorQuality | None = None
    after: PosteriorQuality | None = None


def true_shares(labels: Codes, classes: int) -> Floats:
    """The shares of the classes among N labels, C."""
    shares: Floats = np.bincount(labels, minlength=classes) / len(labels)
    return shares


def evaluate(batch: Batch, estimate: Estimate, labels: Codes) -> Evaluation:
    """Evaluate an estimate of ``batch`` that came with its adjusted posteriors."""
    shares = compare(
        estimate.prevalence,
        estimate.counted,
        None if estimate.interval is None else (estimate.interval.lower, estimate.interval.upper),
        labels,
    )
    if not isinstance(batch, PosteriorBatch) or estimate.posteriors is None:
        return shares
    return Evaluation(
        shares.size,
        shares.truth,
        shares.counted,
        shares.estimate,
        shares.covered,
        PosteriorQuality.of(batch.posteriors, labels),
        PosteriorQuality.of(estimate.posteriors, labels),
    )


def compare(
    prevalence: Floats,
    counted: Floats | None,
    interval: tuple[Floats, Floats] | None,
    labels: Codes,
) -> Evaluation:
    """The shares alone, against N labels."""
    size = len(labels)
    truth = true_shares(labels, len(prevalence))
    usable = counted is not None and bool(np.isfinite(counted).all())
    covered = None
    if interval is not None:
        lower, upper = interval
        covered = tuple((lower - 1e-12 <= truth) & (truth <= upper + 1e-12))
    return Evaluation(
        size=size,
        truth=truth,
        counted=SharesError.of(truth, counted, size) if usable and counted is not None else None,
        estimate=SharesError.of(truth, prevalence, size),
        covered=None if covered is None else tuple(bool(c) for c in covered),
    )
