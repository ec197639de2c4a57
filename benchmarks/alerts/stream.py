"""A population whose classifier is known, its registered sources, and many windows at once.

The statistics of many windows of equal size are found together here, by bracketed Newton steps; the
service's own test is made of some of them, and must say the same (``tests/benchmarks``).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, expit, logit

from app.core.arrays import Codes, Floats
from app.core.prevalence.calibration import Scaling
from app.core.prevalence.source import Source, SourceModel, ValidationSet, derive
from app.core.prevalence.watching.source_set import SourceSet

NEWTON_STEPS = 60
NEAR = 1e-10


@dataclass(frozen=True)
class Population:
    """Scores N(0, 1) and N(``distance``, 1) of two classes, the second one's share ``share``.

    The classifier is twice as sure as it should be, which calibration has to find out.
    """

    share: float
    distance: float

    def scores(self, rng: np.random.Generator, shape: tuple[int, ...], share: float) -> Floats:
        """The classifier's log-odds of rows among which the second class has ``share``."""
        x = rng.normal(size=shape)
        x += self.distance * (rng.random(shape) < share)
        return np.asarray(2 * (self.log_ratio(x) + logit(self.share)))

    def log_ratio(self, x: Floats) -> Floats:
        """The true ln f_1 / f_0 of a score."""
        return np.asarray(self.distance * x - self.distance**2 / 2)

    def true_log_ratio(self, scores: Floats) -> Floats:
        """The same of the classifier's log-odds."""
        return np.asarray(scores / 2 - logit(self.share))

    def labelled(self, rng: np.random.Generator, rows: int) -> tuple[Codes, Floats]:
        """Labels and posteriors of a validation set."""
        labels = (rng.random(rows) < self.share).astype(np.intp)
        x = rng.normal(size=rows) + self.distance * labels
        positive = expit(2 * (self.log_ratio(x) + logit(self.share)))
        return labels, np.column_stack([1 - positive, positive])


@dataclass(frozen=True)
class Registered:
    """A version, and the set of its source."""

    model: SourceModel
    sources: SourceSet

    @classmethod
    def of(
        cls, population: Population, rng: np.random.Generator, rows: int, source_level: float
    ) -> "Registered":
        """From ``rows`` validation rows, as at registration."""
        labels, posteriors = population.labelled(rng, rows)
        source = Source(("no", "yes"), validation=ValidationSet(labels, posteriors))
        model = derive(source, reporting=False)
        return cls(model, SourceSet.of(model, source_level=source_level))

    def excess(self, scores: Floats) -> Floats:
        """r_1 / r_0 − 1 of the classifier's log-odds, calibrated."""
        calibration = self.model.calibration
        assert isinstance(calibration, Scaling)
        offset = float(np.diff(calibration.bias)[0]) - float(logit(self.model.priors[1]))
        return np.asarray(np.expm1(calibration.scale[0] * scores + offset))


@dataclass(frozen=True)
class Statistics:
    """Of W windows: the estimates, and the statistics at the source priors and over the set."""

    estimate: Floats
    point: Floats
    composite: Floats


def statistics(excess: Floats, registered: Registered) -> Statistics:
    """Of W × N ratios, less one."""
    theta = maxima(excess, float(registered.model.priors[1]))
    top = log_likelihood(excess, theta)
    centre = np.full(len(theta), registered.model.priors[1])
    nearest = np.clip(theta, *registered.sources.interval)
    return Statistics(
        theta,
        2 * (top - log_likelihood(excess, centre)),
        2 * (top - log_likelihood(excess, nearest)),
    )


def log_likelihood(excess: Floats, theta: Floats) -> Floats:
    """Of W windows at W shares, over that at a share of zero."""
    return np.asarray(np.log1p(theta[:, None] * excess).sum(axis=1))


def maxima(excess: Floats, start: float) -> Floats:
    """The estimated shares of W windows, W × N ratios less one."""
    theta = np.full(len(excess), start)
    low, high = np.zeros(len(excess)), np.ones(len(excess))
    # A ratio of zero, excess −1, has no density at a share of one.
    with np.errstate(divide="ignore"):
        low_end, high_end = excess.sum(axis=1) <= 0, (excess / (1 + excess)).sum(axis=1) >= 0
    theta[low_end], theta[high_end] = 0.0, 1.0
    open_ = np.flatnonzero(~low_end & ~high_end)
    for _ in range(NEWTON_STEPS):
        if len(open_) == 0:
            break
        rows, at = excess[open_], theta[open_]
        w = rows / (1 + at[:, None] * rows)
        slope = w.sum(axis=1)
        step = slope / np.einsum("ij,ij->i", w, w)
        low[open_] = np.where(slope > 0, at, low[open_])
        high[open_] = np.where(slope > 0, high[open_], at)
        following = at + step
        outside = (following <= low[open_]) | (following >= high[open_])
        following = np.where(outside, 0.5 * (low[open_] + high[open_]), following)
        theta[open_] = following
        open_ = open_[np.abs(following - at) > NEAR]
    return theta


def threshold(level: float) -> float:
    """Of the statistic, for one degree of freedom."""
    return float(chdtri(1, level))
