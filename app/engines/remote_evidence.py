"""Likelihood and evidence of rows that are elsewhere: every pass is answered by sums.

Whoever asks for a sum that is not here yet is interrupted by ``SumMissing``, and asked again when a
round has brought it; what was found until then is found again from the sums that are here. So the
core's solvers run as they are, those of many groups share their rounds, and all that has to be kept
for going on elsewhere or later are the sums.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from app.core.arrays import Floats
from app.core.errors import MethodUnavailable
from app.core.lazy import cached_property
from app.core.prevalence.likelihood.census import Census
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.likelihood.means import RowMean
from app.core.prevalence.likelihood.moments import log_density
from app.core.prevalence.matching.embedding import Embedded
from app.core.prevalence.matching.posterior_fit import Bins
from app.engines.statistics import (
    CURVED,
    SURVEY,
    Along,
    Counting,
    Derivatives,
    Pass,
    SurveyPass,
    Total,
    WorkerModel,
    at_source,
    unpack_triangle,
)
from app.engines.tallies import SAMPLED, Sums
from app.estimation.evidence import Evidence
from app.estimation.request import PosteriorBatch


class SumMissing(Exception):
    """A sum that the next round must bring."""

    def __init__(self, missing: Pass) -> None:
        self.missing = missing
        super().__init__(missing.key)


@dataclass
class Answers:
    """The sums of one group, by the keys of the passes that they answer."""

    sums: dict[str, Sums] = field(default_factory=dict)

    def ask(self, question: Pass) -> dict[str, Floats]:
        """The answer, or ``SumMissing``."""
        sums = self.sums.get(question.key)
        if sums is None:
            raise SumMissing(question)
        return {name: values.astype(np.float64) for name, values in sums.added.items()}

    def add(self, question: Pass, sums: Sums) -> None:
        """What a round brought; the survey has the answers to other passes with it."""
        self.sums[question.key] = sums
        if isinstance(question, SurveyPass):
            self.sums |= {taken.key: Sums(sums.added, {}) for taken in question.passes}

    @property
    def survey(self) -> Sums:
        """The first round's, which there is by the time that anybody asks."""
        return self.sums[SURVEY]

    @property
    def tidy(self) -> bool:
        """Whether all rows are known to be fit for the likelihood as they are."""
        counting = self.sums.get(Counting.key)
        return counting is not None and not counting.added["untidy"].any()


@dataclass(frozen=True, eq=False)
class SummedLikelihood(Likelihood):
    """The likelihood of rows whose sums are ``answers``."""

    answers: Answers
    start: Total | Derivatives

    @classmethod
    def by(cls, source: WorkerModel, answers: Answers) -> "SummedLikelihood":
        """Of the rows that were surveyed."""
        nothing = source.likelihood([])
        return cls(nothing.blocks, nothing.source, answers, at_source(source))

    @property
    def at_hand(self) -> bool:
        """False: a pass over these rows costs a round."""
        return False

    @property
    def curved(self) -> bool:
        """A round costs more than the Hessian of few classes."""
        return len(self.source) <= CURVED

    @cached_property
    def census(self) -> Census:
        """The census that the survey took, with the mass of the first pass."""
        added = self.answers.ask(Counting())
        rows, size, unsupported = (float(value) for value in added["census"])
        tidy = not added["untidy"].any()
        return Census(int(rows), size, unsupported, self._log_mass(size), tidy)

    def _log_mass(self, size: float) -> float:
        """Σ ln d_i at the source priors, where ℓ is to be zero."""
        sums = self.answers.ask(self.start)
        if isinstance(self.start, Derivatives):
            return float(sums["log_density"][0])
        return log_density(self, float(self.source[1]), float(sums["total"][0]), size)

    def strided(self, step: int) -> Likelihood:
        """What was sent of the rows, whatever the ``step``."""
        return self._sample

    @cached_property
    def _sample(self) -> Likelihood:
        joined = self.answers.survey.joined
        step = -(-joined["sample"].size // (2 * SAMPLED)) or 1
        rows, weights = joined["sample"][::step], joined["weights"][::step]
        return Likelihood.of(rows, self.source, weights / weights.mean(), self.blocks.calibration)

    def total(self, of: Callable[[Likelihood], Floats]) -> Floats:
        """A sum over the rows; ``TypeError`` for functions that another process cannot find."""
        if not isinstance(of, partial):
            raise TypeError("rows elsewhere are summed by a partial of a module's function")
        return self.answers.ask(Total(of))["total"]

    def multipliers(self, p: Floats) -> Floats:
        """The gradient of ℓ at ``p``, C values."""
        return self._at(p, self.curved)["multipliers"] / self._n

    def hessian(self, p: Floats) -> tuple[Floats, Floats]:
        """The negative Hessian of ℓ at ``p``, and its gradient."""
        sums = self._at(p, True)
        hessian = unpack_triangle(sums["hessian"], len(p))
        return hessian / self._n, sums["multipliers"] / self._n

    def gain(self, p: Floats) -> float:
        """ℓ(p), the mean log-likelihood over that of the source priors."""
        log_density = float(self._at(p, self.curved)["log_density"][0])
        return (log_density - self.census.log_mass) / self._n

    def gains_along(self, p: Floats, target: Floats, steps: Sequence[float]) -> Floats:
        """ℓ along a line, over ℓ(p)."""
        return self.answers.ask(Along(p, target, tuple(steps)))["gains"] / self._n

    @property
    def _n(self) -> float:
        return self.size or 1.0

    def _at(self, p: Floats, curved: bool) -> dict[str, Floats]:
        return self.answers.ask(Derivatives(p, curved))


@dataclass
class SummedEvidence(Evidence):
    """What a data set, or a group of its rows, says under a source model."""

    answers: Answers = field(default_factory=Answers)
    worker_model: WorkerModel | None = None

    @property
    def _survey(self) -> dict[str, Floats]:
        return {name: np.asarray(v, np.float64) for name, v in self.answers.survey.added.items()}

    def likelihood_of_rows(self, batch: PosteriorBatch) -> Likelihood:
        """The likelihood whose passes are answered by sums."""
        assert self.worker_model is not None
        return SummedLikelihood.by(self.worker_model, self.answers)

    @cached_property
    def output_counts(self) -> Floats:
        """Counts of the decisions."""
        return self._survey["decisions"]

    @cached_property
    def row_mean(self) -> RowMean:
        """Of the calibrated posteriors, from sums about the source priors."""
        sums, size = self._survey, float(self.batch.size)
        offset = sums["first"] / size
        products = sums["second"] - size * np.outer(offset, offset)
        return RowMean(size, self.source + offset, products)

    @cached_property
    def unlabelled_mean(self) -> RowMean:
        """The same: no row came with its class."""
        return self.row_mean

    @cached_property
    def embedded(self) -> Embedded:
        """The mean of the random features of the rows."""
        sums, size, axes = self._survey, self.batch.size, self.matching.embedding.axes
        mean = sums["features"] / size
        if axes is None:
            return Embedded(mean, size, None)
        inside = mean @ axes
        return Embedded(mean, size, sums["products"] / size - np.outer(inside, inside))

    def binned(self, batch: PosteriorBatch, bins: Bins) -> Floats:
        """Counts of as many rows as of a batch."""
        return bins.thinned(self._survey["bins"])

    def adjusted(self, source: Floats, target: Floats) -> Floats:
        """``MethodUnavailable``: the rows are elsewhere."""
        reason = "they are as many as the rows of the data set; a job of their own writes them"
        raise MethodUnavailable("posteriors with an estimate", reason)
