"""What a batch says under a source model: everything that several answers need, found once."""

from dataclasses import dataclass, field

import numpy as np

from app.core.arrays import Floats
from app.core.errors import MethodUnavailable
from app.core.lazy import cached_property
from app.core.prevalence.adjustment.posteriors import adjust, gains_from_nothing, log_weights
from app.core.prevalence.calibration import Scaling
from app.core.prevalence.estimators.confusion import ConfusionMatrix, decision_counts
from app.core.prevalence.estimators.mle import MleResult, mle
from app.core.prevalence.likelihood.blocks import with_labels
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.likelihood.means import RowMean
from app.core.prevalence.likelihood.moments import moments
from app.core.prevalence.matching.embedding import Embedded
from app.core.prevalence.matching.exact import Kernels
from app.core.prevalence.matching.feature_fit import Fit, features_fit
from app.core.prevalence.matching.kernels import Name as KernelName
from app.core.prevalence.matching.posterior_fit import Bins
from app.core.prevalence.matching.version import Matching
from app.core.prevalence.source import SourceModel
from app.core.prevalence.uncertainty.covariance import OutputError, SourceError, Uncertainty
from app.core.warnings import Warning, WarningCode
from app.estimation.methods import LABEL_SCALE, Method
from app.estimation.request import Batch, FeatureBatch, OutputBatch, PosteriorBatch
from app.estimation.results import Adjustment
from app.estimation.validation_rows import SourceRows

MOST_PAIRS = 1_000_000_000
"""Most pairs of rows, of batch and version, whose exact kernel is computed."""
LOOSE = 0.05
"""A log-likelihood that may lack this much in all (N · gap) is worth a warning."""


@dataclass
class Evidence:
    """A batch under a source model. Everything is computed when first asked for, then kept."""

    model: SourceModel
    batch: Batch
    source_rows: SourceRows | None = None
    _warnings: dict[str, Warning] = field(default_factory=dict)
    _kernels: dict[KernelName, Kernels] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for warning in self.model.warnings:
            self._warnings[warning.code] = warning
        if isinstance(self.batch, PosteriorBatch) and self.batch.renormalised:
            self.warn(
                WarningCode.RENORMALISED,
                f"{self.batch.renormalised} rows did not sum to 1 within 1e-6 and were rescaled",
            )
        if isinstance(self.batch, PosteriorBatch):
            for note in self.batch.notes:
                self.warn(note.code, note.message)

    @property
    def warnings(self) -> tuple[Warning, ...]:
        """The warnings so far."""
        return tuple(self._warnings.values())

    def warn(self, code: WarningCode, message: str) -> None:
        """Add a warning, unless one of this code is there already."""
        self._warnings.setdefault(code, Warning(code, message))

    @property
    def source(self) -> Floats:
        """The source priors of the likelihood of this kind of batch."""
        if isinstance(self.batch, PosteriorBatch):
            return self.model.priors
        return self.model.output_priors

    def source_of(self, method: Method | None) -> Floats:
        """The source priors that an estimate of ``method`` compares with; None: stated priors."""
        if method is None or method in LABEL_SCALE:
            return self.model.output_priors
        return self.source

    @property
    def confusion(self) -> ConfusionMatrix:
        """The confusion matrix, where a caller made sure that there is one."""
        assert self.model.confusion is not None
        return self.model.confusion

    @property
    def has_likelihood(self) -> bool:
        """Whether the rows have posteriors, of their own or through the confusion matrix."""
        if isinstance(self.batch, FeatureBatch):
            return False
        return isinstance(self.batch, PosteriorBatch) or self.model.confusion is not None

    def require_likelihood(self, what: str) -> None:
        """``MethodUnavailable`` where there is none."""
        if isinstance(self.batch, FeatureBatch):
            reason = "features that no classifier has scored have no posteriors; send posteriors"
            raise MethodUnavailable(f"{what} of features", reason)
        if not self.has_likelihood:
            reason = "the version has no confusion matrix; register one, or send posteriors"
            raise MethodUnavailable(f"{what} of predicted outputs", reason)

    @property
    def labelled(self) -> int:
        """How many rows came with their class."""
        labels = self.batch.labels
        return 0 if labels is None else int(np.count_nonzero(labels >= 0))

    @property
    def label_counts(self) -> Floats | None:
        """The labelled rows by class, C; None if there are none."""
        labels = self.batch.labels
        if labels is None:
            return None
        counts = np.bincount(labels[labels >= 0], minlength=len(self.model.classes))
        return counts.astype(np.float64)

    @property
    def unlabelled_counts(self) -> Floats:
        """Counts of the outputs of a batch of outputs, J, but for the labelled rows."""
        assert isinstance(self.batch, OutputBatch)
        if self.batch.labels is None or self.batch.codes is None:
            return self.batch.counts
        open_rows = self.batch.codes[self.batch.labels < 0]
        counts = np.bincount(open_rows, minlength=len(self.batch.counts))
        return counts.astype(np.float64)

    @cached_property
    def unlabelled_rows(self) -> Floats:
        """Calibrated posteriors of the rows, as if none came with its class."""
        assert isinstance(self.batch, PosteriorBatch)
        return self.model.calibration.apply(self.batch.posteriors)

    @cached_property
    def rows(self) -> Floats:
        """Calibrated posteriors of the rows, or P(class | output) of the outputs."""
        if isinstance(self.batch, PosteriorBatch):
            rows = self.unlabelled_rows
            return rows if self.batch.labels is None else with_labels(rows, self.batch.labels)
        joint = self.confusion.conditional * self.source
        total = joint.sum(axis=1, keepdims=True)
        rows = np.tile(self.source, (len(joint), 1))
        np.divide(joint, total, out=rows, where=total > 0)
        return rows

    @cached_property
    def row_mean(self) -> RowMean:
        """The mean of ``rows``, and their spread."""
        return RowMean.of(self.rows, self.row_weights)

    @cached_property
    def unlabelled_mean(self) -> RowMean:
        """The same of ``unlabelled_rows``."""
        return RowMean.of(self.unlabelled_rows, self.row_weights)

    def likelihood_of_rows(self, batch: PosteriorBatch) -> Likelihood:
        """Calibration is applied block by block."""
        calibration = self.model.calibration
        return Likelihood.of(
            batch.posteriors, self.source, batch.weights, calibration, batch.labels
        )

    @cached_property
    def likelihood(self) -> Likelihood:
        """The likelihood of the batch."""
        if isinstance(self.batch, PosteriorBatch):
            likelihood = self.likelihood_of_rows(self.batch)
            if self.model.validation_size is None:
                self.warn(
                    WarningCode.UNCALIBRATED,
                    "posteriors are taken as calibrated at the source priors; register a "
                    "validation set, with which they are calibrated",
                )
        else:
            likelihood = Likelihood.of_outputs(
                self.confusion.conditional, self.source, self.unlabelled_counts, self.label_counts
            )
        # A row of posteriors has mass on some class; only then is it worth counting now.
        sure = isinstance(self.batch, PosteriorBatch) and bool((self.source > 0).all())
        if not sure and likelihood.unsupported:
            self.warn(
                WarningCode.UNSUPPORTED_ROWS,
                f"{likelihood.unsupported:.0f} rows are impossible under the source model and were "
                "left out of the likelihood",
            )
        return likelihood

    @cached_property
    def information(self) -> Floats:
        """The Hessian at the source priors, C × C."""
        if len(self.likelihood.known) == 2 == len(self.source):
            return moments(self.likelihood, float(self.source[1])).hessian_at(0.0)
        return self.likelihood.hessian(self.likelihood.source)[0]

    @cached_property
    def maximum(self) -> MleResult:
        """The certified maximum of the likelihood."""
        maximum = mle(self.likelihood)
        self.warn_if_short(maximum.status, maximum.optimality_gap)
        return maximum

    def warn_if_short(self, status: str, gap: float) -> None:
        """Say so if a search ended where the log-likelihood lacks something that matters."""
        lack = gap * self.likelihood.size
        if lack > LOOSE:
            self.warn(
                WarningCode.STOPPED_SHORT,
                f"the search stopped ({status}) where the log-likelihood may still lack "
                f"{lack:.3g}; prefer mle, or lower options.tolerance",
            )

    @property
    def uncertainty(self) -> Uncertainty | None:
        """What is uncertain about the source: calibration and priors, or the confusion matrix."""
        if isinstance(self.batch, OutputBatch):
            return OutputError(self.confusion, self.unlabelled_counts)
        if self.model.nuisance is None:
            return None
        return SourceError(self.model.nuisance, self.model.calibration)

    @cached_property
    def output_counts(self) -> Floats:
        """Counts of the J predicted outputs; decisions are on raw posteriors."""
        if isinstance(self.batch, OutputBatch):
            return self.batch.counts
        assert isinstance(self.batch, PosteriorBatch)
        if self.batch.decided is not None:
            return self.batch.decided
        return decision_counts(self.batch.posteriors)

    @property
    def class_counts(self) -> Floats:
        """Counts of decisions by class; NaN for a class that no output is named after."""
        if isinstance(self.batch, PosteriorBatch) or self.model.decides_outputs:
            return self.output_counts
        named = dict(zip(self.model.outputs, self.output_counts, strict=True))
        return np.array([named.get(name, np.nan) for name in self.model.classes])

    @property
    def counted(self) -> Floats | None:
        """Class shares by counting what was decided to be in a class; None if nothing was."""
        if isinstance(self.batch, FeatureBatch):
            return None
        counts = self.class_counts
        total = np.nansum(counts)
        return counts / total if total > 0 else None

    @property
    def matching(self) -> Matching:
        """What features are matched with, where a caller made sure that there is something."""
        assert self.model.matching is not None
        return self.model.matching

    @property
    def row_weights(self) -> Floats | None:
        """How many rows each row stands for; None for itself alone."""
        return self.batch.weights if isinstance(self.batch, PosteriorBatch) else None

    @property
    def summed_up(self) -> bool:
        """Whether the rows stand for several each."""
        return isinstance(self.batch, PosteriorBatch) and self.batch.weights is not None

    @property
    def matched_rows(self) -> Floats:
        """What is matched: the features, or the raw posteriors.

        ``MethodUnavailable`` for rows that were summed up.
        """
        if isinstance(self.batch, FeatureBatch):
            return self.batch.features
        assert isinstance(self.batch, PosteriorBatch)
        if self.batch.weights is not None:
            raise MethodUnavailable("matching", "the rows were summed up; choose mle or acc-qp")
        return self.batch.posteriors

    @cached_property
    def embedded(self) -> Embedded:
        """The mean of the random features of the rows."""
        return Embedded.of(self.matched_rows, self.matching.embedding)

    def kernels(self, name: KernelName) -> Kernels:
        """The rows against the labelled ones of the version, by an exact kernel.

        ``MethodUnavailable`` where these are not kept, or the batch is too large.
        """
        if name not in self._kernels:
            exact = None if self.source_rows is None else self.source_rows.exact()
            if exact is None:
                raise MethodUnavailable(f"the exact {name} kernel", "the rows are not at hand")
            if self.batch.size * len(exact.rows) > MOST_PAIRS:
                reason = f"{self.batch.size} rows are too many for it; choose rffm"
                raise MethodUnavailable(f"the exact {name} kernel", reason)
            rows = self.matching.embedding.standard.apply(self.matched_rows)
            kernel = self.matching.kernel(name)
            self._kernels[name] = Kernels.of(rows, exact.reference(name), kernel)
        return self._kernels[name]

    @cached_property
    def fit(self) -> Fit | None:
        """Whether prior shift explains the batch, by features or binned posteriors."""
        if isinstance(self.batch, FeatureBatch):
            source = self.model.output_priors
            return features_fit(self.matching.embedding, self.embedded, source)
        if not isinstance(self.batch, PosteriorBatch) or self.model.bins is None:
            return None
        if self.summed_up:
            return None
        return self.model.bins.fit(
            self.binned(self.batch, self.model.bins), self.model.output_priors
        )

    def binned(self, batch: PosteriorBatch, bins: Bins) -> Floats:
        """Counts of the rows without labels, by bin."""
        rows = batch.posteriors
        if batch.labels is not None:
            rows = rows[batch.labels < 0]
        return bins.count(rows)

    def log_offsets(self, source: Floats, prevalence: Floats) -> Floats | None:
        """ln(p_k / p0_k); None where a class of zero source prior has a share."""
        if gains_from_nothing(source, prevalence):
            return None
        return log_weights(source, prevalence)

    def adjustment(self, source: Floats, prevalence: Floats) -> Adjustment | None:
        """What to apply to raw posteriors; None as for ``log_offsets``, and for other maps."""
        offsets = self.log_offsets(source, prevalence)
        calibration = self.model.calibration
        if offsets is None or not isinstance(calibration, Scaling):
            return None
        return Adjustment(calibration.scale, calibration.bias + offsets, calibration.floor)

    def adjusted(self, source: Floats, target: Floats) -> Floats:
        """Adjusted posteriors of the rows; of the outputs for bare counts.

        ``MethodUnavailable`` where a class of zero source prior has a share.
        """
        self.require_likelihood("posteriors")
        if gains_from_nothing(source, target):
            reason = "a class whose source prior is zero cannot be given a share"
            raise MethodUnavailable("adjusting posteriors to these priors", reason)
        adjusted, impossible = adjust(self.rows, source, target)
        if isinstance(self.batch, OutputBatch) and self.batch.codes is not None:
            adjusted = adjusted[self.batch.codes]
            if self.batch.labels is not None:
                adjusted = with_labels(adjusted, self.batch.labels)
        if impossible:
            self.warn(
                WarningCode.IMPOSSIBLE_ROWS,
                f"{impossible} rows have all their mass on classes of zero target prior; they "
                "got the target priors",
            )
        return adjusted
