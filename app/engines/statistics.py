"""The passes: what is asked of all rows in a round, answered chunk by chunk by the core's own.

Whatever a pass returns adds up over chunks, partitions and machines. Means of the core are
multiplied by their number of rows first; moments are taken about the source priors, which every
worker knows, so that nothing is lost when they are put together.
"""

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from app.core.arrays import AnyFloats, Floats
from app.core.lazy import cached_property
from app.core.prevalence.calibration import Calibration
from app.core.prevalence.estimators.confusion import decision_counts
from app.core.prevalence.likelihood.census import all_of
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.likelihood.moments import powers_at
from app.core.prevalence.matching.embedding import Embedded, Embedding
from app.core.prevalence.matching.posterior_fit import Bins
from app.engines.tallies import Sums

CURVED = 32
"""Up to so many classes a Hessian is computed along with the multipliers: a round costs more."""


@dataclass(frozen=True, eq=False)
class WorkerModel:
    """What workers must know of the model. ``bins``, ``embedding``: None where nobody asks.

    ``tidy``: an earlier round found every row fit for the likelihood as it is. Calibrated rows are
    so without a look: none of their posteriors is zero.
    """

    priors: Floats
    calibration: Calibration
    bins: Bins | None = None
    embedding: Embedding | None = None
    averages: bool = False
    tidy: bool = False

    def likelihood(self, rows: AnyFloats | list[AnyFloats]) -> Likelihood:
        """The likelihood of n × C raw posteriors, calibrated as it reads them."""
        return Likelihood.of(rows, self.priors, calibration=self.calibration)


@dataclass(frozen=True, eq=False)
class RowChunk:
    """A few rows, n × C, of one group: so few that they are calibrated once for all passes."""

    rows: AnyFloats
    source: WorkerModel

    @cached_property
    def likelihood(self) -> Likelihood:
        """The likelihood of these rows, calibrated once."""
        source = self.source
        likelihood = source.likelihood(self.rows)
        calibrated = source.calibration.method != "none" and source.priors.all()
        return (
            likelihood.counted(all_of(len(self.rows))) if source.tidy or calibrated else likelihood
        )

    @cached_property
    def raw(self) -> Floats:
        """The rows in double precision."""
        return self.rows.astype(np.float64, copy=False)


class Pass(Protocol):
    """A question to all rows; two with equal ``key`` are the same."""

    @property
    def key(self) -> str:
        """Tells it apart from others."""

    def over(self, chunk: RowChunk) -> Sums:
        """Its sums over a chunk."""


def _key(name: str, *arrays: Floats) -> str:
    return " ".join([name, *(array.astype("<f8").tobytes().hex() for array in arrays)])


def _sums(**added: Floats) -> Sums:
    return Sums({name: np.asarray(values, np.float64) for name, values in added.items()}, {})


def pack_triangle(hessian: Floats) -> Floats:
    """The upper triangle of a symmetric C × C matrix, C (C + 1) / 2 values."""
    upper: Floats = hessian[np.triu_indices(len(hessian))]
    return upper


def unpack_triangle(upper: Floats, classes: int) -> Floats:
    """The matrix of ``pack_triangle``."""
    hessian = np.zeros((classes, classes))
    rows, columns = np.triu_indices(classes)
    hessian[rows, columns] = hessian[columns, rows] = upper
    return hessian


@dataclass(frozen=True)
class Counting:
    """How many rows count in the likelihood, and whether all do: a ``Census`` but for its mass."""

    key = "census"

    def over(self, chunk: RowChunk) -> Sums:
        """The counts of a chunk: rows, informative and unsupported weight."""
        census = chunk.likelihood.census
        counts = np.array([census.rows, census.size, census.unsupported])
        return _sums(census=counts, untidy=np.array([float(not census.tidy)]))


@dataclass(frozen=True, eq=False)
class Derivatives:
    """Σ ln d_i at ``p``, and N times the derivatives of ℓ; the Hessian packed."""

    p: Floats
    curved: bool

    @property
    def key(self) -> str:
        """The kind of derivatives and the point, to the last bit."""
        return _key("curvature" if self.curved else "slope", self.p)

    def over(self, chunk: RowChunk) -> Sums:
        """Multipliers and packed Hessian of a chunk, times its rows; its log-density."""
        likelihood, p, C = chunk.likelihood, self.p, len(self.p)
        n = likelihood.size
        if n == 0:
            hessian = {"hessian": pack_triangle(np.zeros((C, C)))} if self.curved else {}
            return _sums(multipliers=np.zeros(C), log_density=np.zeros(1), **hessian)
        log_density = np.array([n * likelihood.gain(p) + likelihood.census.log_mass])
        # A row of subnormal density: its mean is finite, the sum may be infinite.
        with np.errstate(over="ignore"):
            if not self.curved:
                return _sums(multipliers=n * likelihood.multipliers(p), log_density=log_density)
            H, m = likelihood.hessian(p)
            return _sums(multipliers=n * m, log_density=log_density, hessian=pack_triangle(n * H))


@dataclass(frozen=True, eq=False)
class Along:
    """ℓ along a line, times the number of rows: a line search."""

    p: Floats
    target: Floats
    steps: tuple[float, ...]

    @property
    def key(self) -> str:
        """The line and its steps, to the last bit."""
        return _key("along", self.p, self.target, np.array(self.steps))

    def over(self, chunk: RowChunk) -> Sums:
        """The gains of a chunk at every step, times its rows."""
        n = chunk.likelihood.size
        if n == 0:
            return _sums(gains=np.zeros(len(self.steps)))
        return _sums(gains=n * chunk.likelihood.gains_along(self.p, self.target, self.steps))


@dataclass(frozen=True, eq=False)
class Total:
    """What a function of the core finds in a likelihood, a sum over its rows.

    ``of``: a ``functools.partial`` of a module's function, all of whose arguments are named.
    """

    of: "partial[Floats]"

    @property
    def key(self) -> str:
        """The function and its arguments."""
        arguments = sorted(self.of.keywords.items())
        function = self.of.func
        name = f"{function.__module__}.{function.__qualname__}"
        arrays = [np.asarray(values, np.float64) for _, values in arguments]
        return _key(name, *arrays)

    def over(self, chunk: RowChunk) -> Sums:
        """The value of the function on a chunk's likelihood."""
        return _sums(total=self.of(chunk.likelihood))


SURVEY = "survey"


@dataclass(frozen=True, eq=False)
class SurveyPass:
    """The first round: everything about the rows that one pass can tell.

    ``passes``: those that the likelihood is certain to ask for, taken along.
    """

    passes: tuple[Pass, ...]

    @property
    def key(self) -> str:
        """The same for every survey: a group has one."""
        return SURVEY

    def over(self, chunk: RowChunk) -> Sums:
        """Counts, decisions, the answers to ``passes``, and what else was asked of a chunk."""
        source = chunk.source
        sums = _sums(rows=np.array([len(chunk.rows)]), decisions=decision_counts(chunk.rows)).added
        for question in self.passes:
            sums |= question.over(chunk).added
        if source.averages:
            sums |= _sum_centred(source.calibration.apply(chunk.raw), source.priors).added
        if source.embedding is not None:
            sums |= _sum_embedded(chunk.raw, source.embedding).added
        return Sums(sums, {})


def survey(source: WorkerModel, likelihood: bool = True) -> SurveyPass:
    """With what a solver, or the test, asks first of a ``likelihood``."""
    # The moments' reading of the rows counts them as well: so it comes first.
    return SurveyPass((at_source(source), Counting()) if likelihood else ())


def at_source(source: WorkerModel) -> Total | Derivatives:
    """The pass at the source priors."""
    nothing = source.likelihood([])
    if len(nothing.known) == 2 == len(source.priors):
        return Total(powers_at(nothing, float(source.priors[1])))
    return Derivatives(source.priors, len(source.priors) <= CURVED)


def _sum_centred(rows: Floats, about: Floats) -> Sums:
    """Sums and products of rows about a point."""
    centred = rows - about
    return _sums(first=centred.sum(axis=0), second=np.dot(centred.T, centred))


def _sum_embedded(rows: Floats, embedding: Embedding) -> Sums:
    """Sums of features, and of their products along the axes."""
    embedded, n = Embedded.of(rows, embedding), len(rows)
    if embedded.spread is None or embedding.axes is None:
        return _sums(features=n * embedded.mean)
    inside = embedded.mean @ embedding.axes
    return _sums(
        features=n * embedded.mean, products=n * (embedded.spread + np.outer(inside, inside))
    )
