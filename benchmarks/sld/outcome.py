"""How good shares and posteriors are before and after adjusting, by EM and at the optimum."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.core.arrays import Floats
from app.core.prevalence.adjustment.posteriors import adjust
from app.core.prevalence.estimators.em import em
from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.measures import Bins, brier, normalised_absolute_error
from benchmarks.sld.corpus import Corpus
from benchmarks.sld.protocol import Calibrated, Trial, calibrated, scored, trial

STEP, MOST = 1e-6, 1000
"""The paper's EM stops at the first mean absolute step below 1e-6, or here."""
BINS: Bins = "equal-count"


@dataclass(frozen=True)
class Quality:
    """NAE of the shares, and Brier score, calibration and refinement error of the posteriors."""

    nae: float
    brier: float
    calibration: float
    refinement: float

    @classmethod
    def of(cls, trial: Trial, shares: Floats, posteriors: Floats) -> "Quality":
        score = brier(posteriors, trial.labels, BINS)
        nae = normalised_absolute_error(trial.truth, shares)
        return cls(nae, score.brier, score.calibration_error, score.refinement_error)


@dataclass(frozen=True)
class Outcome:
    """One trial with one learner and calibration.

    ``before``: shares by classifying and counting; ``mean_posterior``: NAE of the mean posterior.
    ``em``: the paper's; ``exact``: the maximum that EM is on its way to.
    """

    trial: int
    learner: str
    calibration: Calibrated
    shift: float
    before: Quality
    mean_posterior: float
    em: Quality
    exact: Quality
    iterations: int
    converged: bool
    gap: float
    gap_exact: float


def outcome(
    at: int, trial: Trial, learner: str, calibration: Calibrated, posteriors: Floats
) -> Outcome:
    """Adjust the calibrated ``posteriors`` of the batch of trial ``at`` both ways."""
    likelihood = Likelihood.of(posteriors, trial.source)
    stepped = em(likelihood, STEP, MOST)
    best = mle(likelihood)
    counted = np.bincount(posteriors.argmax(axis=1), minlength=trial.classes) / len(posteriors)

    def after(shares: Floats) -> Quality:
        return Quality.of(trial, shares, adjust(posteriors, trial.source, shares)[0])

    return Outcome(
        trial=at,
        learner=learner,
        calibration=calibration,
        shift=trial.shift,
        before=Quality.of(trial, counted, posteriors),
        mean_posterior=normalised_absolute_error(trial.truth, posteriors.mean(axis=0)),
        em=after(stepped.prevalence),
        exact=after(best.prevalence),
        iterations=stepped.iterations,
        converged=stepped.status == "converged",
        gap=stepped.optimality_gap,
        gap_exact=best.optimality_gap,
    )


@dataclass(frozen=True)
class Trials:
    """All outcomes at one number of classes, and how many priors were drawn again."""

    classes: int
    size: int
    count: int
    redrawn: int
    outcomes: tuple[Outcome, ...]


def trials(corpus: Corpus, classes: int, size: int, count: int, seed: int) -> Trials:
    """``count`` trials, each with priors, documents and (from three on) classes of its own."""
    rng = np.random.default_rng([seed, classes])
    drawn = [trial(corpus, classes, size, rng) for _ in range(count)]
    outcomes = [result for at, one in enumerate(drawn) for result in _outcomes(corpus, at, one)]
    redrawn = sum(one.redrawn for one in drawn)
    return Trials(classes, size, count, redrawn, tuple(outcomes))


def _outcomes(corpus: Corpus, at: int, trial: Trial) -> Iterator[Outcome]:
    for result in scored(corpus, trial, seed=at):
        for method in result.calibrations:
            rows = calibrated(result, trial.training_labels, method)
            yield outcome(at, trial, result.learner, method, rows)
