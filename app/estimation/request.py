"""A batch, and what is asked of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from app.core.arrays import Codes, Floats
from app.core.prevalence.estimators.cde import CdeResult
from app.core.prevalence.uncertainty.covariance import Of
from app.core.warnings import Warning

Refit = Callable[[], tuple[CdeResult, tuple[Warning, ...]]]
"""cde by refitting the classifier on costs, and what to say of the fits."""


@dataclass(frozen=True)
class PosteriorBatch:
    """N rows of raw posteriors, checked; ``renormalised`` of them were rescaled.

    ``labels``: of the N rows, -1 where unknown; None if none is known. ``features``: the table that
    they were scored from, where it was; ``notes``: what to say of it. ``weights``: where each row
    stands for several, of which ``decided`` were decided for each class (C counts).
    """

    posteriors: Floats
    renormalised: int = 0
    labels: Codes | None = None
    notes: tuple[Warning, ...] = ()
    features: Floats | None = None
    weights: Floats | None = None
    decided: Floats | None = None

    @property
    def size(self) -> int:
        """Number of rows, or of those that the rows stand for."""
        return len(self.posteriors) if self.weights is None else round(float(self.weights.sum()))


@dataclass(frozen=True)
class SummedBatch(PosteriorBatch):
    """``rows`` rows of posteriors that stay where they are: whoever has them answers with sums."""

    rows: int = 0

    @property
    def size(self) -> int:
        """Number of rows, wherever they are."""
        return self.rows


@dataclass(frozen=True)
class OutputBatch:
    """N predicted outputs as J counts, in the order of the version's outputs.

    ``codes``: the output of each row where the batch came row by row, None for bare counts.
    ``labels``: the class of each of these rows, -1 where unknown; None if none is known.
    """

    counts: Floats
    codes: Codes | None = None
    labels: Codes | None = None

    @property
    def size(self) -> int:
        """Number of rows, the sum of the counts."""
        return int(self.counts.sum())


@dataclass(frozen=True)
class FeatureBatch:
    """N × d features, in the order of the version's; no classifier has scored them."""

    features: Floats
    labels: None = None

    @property
    def size(self) -> int:
        """Number of rows of features."""
        return len(self.features)


Batch = PosteriorBatch | OutputBatch | FeatureBatch


@dataclass(frozen=True)
class EmOptions:
    """The stopping rule of EM, em-stop and cde.

    ``tolerance``: the optimality gap at which em and em-stop have converged.
    ``max_iterations``: steps at most.
    """

    tolerance: float = 1e-6
    max_iterations: int = 1000


@dataclass(frozen=True)
class BayesOptions:
    """The prior of method bayes.

    ``prior``: α of a Dirichlet over the target priors, C values above zero; None: all one.
    ``seed``: of the draws.
    """

    prior: Floats | None = None
    seed: int = 0


@dataclass(frozen=True)
class ShiftOptions:
    """What counts as a detected shift, and what the statistic is compared with.

    ``significance``: the p-value below which a shift is detected.
    ``minimum_effect``: the total variation from the source priors that a detected shift must have.
    ``reference``: the distribution of the statistic without a shift; ``auto``: what suits the
        version.
    ``seed``: of the bootstrap.
    """

    significance: float = 0.05
    minimum_effect: float = 0.0
    reference: Literal["auto", "chi-square", "scaled-chi-square", "bootstrap"] = "auto"
    seed: int = 0


@dataclass(frozen=True)
class IntervalOptions:
    """Which intervals.

    ``level``: the nominal coverage, in (0, 1).
    ``method``: ``auto`` takes what suits the method of the estimate.
    ``of``: the shares of the population, or the realised ones of these rows.
    ``seed``: of the bootstrap.
    """

    level: float = 0.95
    method: Literal["auto", "wald", "profile", "bootstrap"] = "auto"
    of: Of = "population"
    seed: int = 0


@dataclass(frozen=True)
class Request:
    """What is asked of a batch.

    ``method``: by name, or ``auto``.
    ``em``: of methods that iterate.
    ``bayes``: of method bayes.
    ``shift``: None: no shift test.
    ``interval``: None: no interval.
    ``trace``: whether to give the priors of every step.
    ``posteriors``: whether to give adjusted posteriors.
    ``histogram``: whether to count the scores before and after.
    ``only_if_shifted``: whether rows keep the source priors unless a shift is detected.
    ``refit``: of cde, the learner fitted again at other costs; None: posteriors are thresholded.
    ``soft``: whether shares may sum to less than one, the rest being none of the classes.
    """

    method: str = "auto"
    em: EmOptions = EmOptions()
    bayes: BayesOptions = BayesOptions()
    shift: ShiftOptions | None = ShiftOptions()
    interval: IntervalOptions | None = None
    trace: bool = False
    posteriors: bool = False
    histogram: bool = False
    only_if_shifted: bool = False
    refit: Refit | None = None
    soft: bool = False
