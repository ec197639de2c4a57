"""The use case: source model + batch + request → answer. Pure; no web, no database.

The API, the command line and jobs call these three functions and nothing below them:
``estimate``, ``adjust_batch``, ``compare_priors``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from app.core.errors import InvalidInput, MethodUnavailable
from app.core.prevalence import identifiability
from app.core.prevalence.adjust import adjust, gains_from_nothing, log_weights
from app.core.prevalence.arrays import Codes, Floats
from app.core.prevalence.confusion import Inversion, acc, acc_qp, decisions
from app.core.prevalence.em import em
from app.core.prevalence.likelihood import Likelihood
from app.core.prevalence.mle import MleResult, mle
from app.core.prevalence.shift import ShiftTest, likelihood_ratio_test
from app.core.prevalence.source import SourceModel
from app.core.warnings import Warning

Method = Literal["cc", "pcc", "acc", "acc-qp", "em", "mle"]
METHODS: tuple[Method, ...] = ("cc", "pcc", "acc", "acc-qp", "em", "mle")
ALIASES: dict[str, Method] = {"bbse": "acc", "bbse+": "acc-qp", "sld": "em", "emq": "em"}

LOOSE = 0.05
"""A log-likelihood that may lack this much in all (N · gap) is worth a warning."""


@dataclass(frozen=True)
class PosteriorBatch:
    """N rows of raw posteriors, checked; ``renormalised`` of them were rescaled."""

    posteriors: Floats
    renormalised: int = 0

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.posteriors)


@dataclass(frozen=True)
class OutputBatch:
    """N predicted outputs as J counts, in the order of the version's outputs.

    ``codes``: the output of each row where the batch came as labels, None for bare counts.
    """

    counts: Floats
    codes: Codes | None = None

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())


Batch = PosteriorBatch | OutputBatch


@dataclass(frozen=True)
class EmOptions:
    """When EM stops."""

    tolerance: float = 1e-6
    max_iterations: int = 1000


@dataclass(frozen=True)
class ShiftOptions:
    """What counts as a detected shift."""

    significance: float = 0.05
    minimum_effect: float = 0.0
    reference: Literal["auto", "chi-square", "scaled-chi-square"] = "auto"


@dataclass(frozen=True)
class Request:
    """What is asked of a batch."""

    method: str = "auto"
    em: EmOptions = EmOptions()
    shift: ShiftOptions = ShiftOptions()
    trace: bool = False
    posteriors: bool = False


@dataclass(frozen=True)
class Diagnostics:
    """How far the numbers can be trusted; None where a notion does not apply."""

    status: str
    iterations: int | None = None
    optimality_gap: float | None = None
    gain: float | None = None
    raw: Floats | None = None
    inadmissible: bool | None = None


@dataclass(frozen=True)
class Adjustment:
    """What a scorer applies to its raw posteriors.

    adjusted ∝ exp(scale · ln max(g_k, floor) + offsets_k); offset −∞ for a class at zero.
    """

    scale: float
    offsets: Floats
    floor: float


@dataclass(frozen=True)
class AdjustedRows:
    """Adjusted posteriors, K × C, and the priors they were adjusted to.

    K = N for posteriors and predicted labels; one row per output for bare counts.
    """

    posteriors: Floats
    target_priors: Floats
    warnings: tuple[Warning, ...]


@dataclass(frozen=True)
class Estimate:
    """What one batch said. Arrays are in the order of the model's classes."""

    method: Method
    reason: str
    size: int
    source: Floats
    counted: Floats | None
    prevalence: Floats
    log_offsets: Floats | None
    adjustment: Adjustment | None
    shift: ShiftTest | None
    diagnostics: Diagnostics
    warnings: tuple[Warning, ...]
    trace: Floats | None = None
    posteriors: Floats | None = None


@dataclass(frozen=True)
class ShiftAnswer:
    """The shift results alone."""

    size: int
    shift: ShiftTest
    diagnostics: Diagnostics
    warnings: tuple[Warning, ...]


def estimate(model: SourceModel, batch: Batch, request: Request) -> Estimate:
    """Estimate the class shares of the population that ``batch`` comes from."""
    work = _Work(model, batch, request)
    method, reason = choose(model, batch, request.method)
    result = work.solve(method)
    p = result.prevalence
    shift = work.shift(p) if work.has_likelihood else None
    if shift is None:
        work.warn("no-shift-test", "predicted outputs need a confusion matrix for a shift test")
    posteriors = work.adjusted(p) if request.posteriors else None
    if request.trace and result.trace is None:
        work.warn("no-trace", f"{method} does not iterate from the source priors; em has a trace")
    return Estimate(
        method=method,
        reason=reason,
        size=batch.size,
        source=work.source,
        counted=work.counted,
        prevalence=p,
        log_offsets=work.log_offsets(p),
        adjustment=work.adjustment(p),
        shift=shift,
        diagnostics=result.diagnostics,
        warnings=work.said,
        trace=result.trace,
        posteriors=posteriors,
    )


def adjust_batch(
    model: SourceModel, batch: Batch, target: Floats | None, request: Request
) -> AdjustedRows:
    """Adjust the rows to ``target`` priors or, without them, to the estimate of these rows."""
    work = _Work(model, batch, request)
    if target is None:
        method, _ = choose(model, batch, request.method)
        target = work.solve(method).prevalence
    return AdjustedRows(work.adjusted(target), target, work.said)


def compare_priors(model: SourceModel, batch: Batch, request: Request) -> ShiftAnswer:
    """Test whether the priors of the batch's population differ from the source's."""
    work = _Work(model, batch, request)
    work.require_likelihood("a shift test")
    result = work.solve("mle")
    return ShiftAnswer(batch.size, work.shift(result.prevalence), result.diagnostics, work.said)


@dataclass(frozen=True)
class Availability:
    """Whether a version serves a method, on posteriors or on predicted outputs, or why not."""

    method: Method
    reason: str | None


def availability(model: SourceModel) -> list[Availability]:
    """What a version can do, for its page; ``reason`` is None for what is available."""
    no_outputs: Batch = OutputBatch(np.zeros(len(model.outputs)))
    no_rows: Batch = PosteriorBatch(np.zeros((0, len(model.classes))))
    answers = []
    for method in METHODS:
        reasons = [_refusal(method, model, batch) for batch in (no_rows, no_outputs)]
        answers.append(Availability(method, None if None in reasons else reasons[0]))
    return answers


def choose(model: SourceModel, batch: Batch, asked: str) -> tuple[Method, str]:
    """The method that answers, and why; ``MethodUnavailable`` where the model cannot."""
    if asked == "auto":
        return _automatic(model, batch)
    method = canonical(asked)
    refusal = _refusal(method, model, batch)
    if refusal is not None:
        raise MethodUnavailable(method, refusal)
    return method, "asked for"


def canonical(name: str) -> Method:
    """A method by its name or an alias of the literature."""
    for method in METHODS:
        if name == method:
            return method
    if name in ALIASES:
        return ALIASES[name]
    known = ", ".join(["auto", *METHODS, *ALIASES])
    raise InvalidInput.at("/method", f"is not a method; choose one of {known}")


def _automatic(model: SourceModel, batch: Batch) -> tuple[Method, str]:
    if isinstance(batch, OutputBatch):
        if model.confusion is not None:
            return "mle", "predicted outputs with a confusion matrix"
        return "cc", "predicted outputs without a confusion matrix: counting is all there is"
    if model.calibration.method != "none":
        return "mle", "posteriors with a calibrated validation set"
    if model.confusion is not None and model.decides_outputs:
        return (
            "acc-qp",
            "posteriors without calibration: the confusion matrix does not need it",
        )
    return "mle", "posteriors and source priors only"


def _refusal(method: Method, model: SourceModel, batch: Batch) -> str | None:
    """Why this model cannot serve this method on this batch, or None."""
    outputs = isinstance(batch, OutputBatch)
    inverts = method in ("acc", "acc-qp")
    maximises = method in ("em", "mle")
    if method == "pcc" and outputs:
        return "it averages posteriors; send posteriors"
    if method == "cc" and outputs and not set(model.outputs) & set(model.classes):
        return "no predicted output is named like a class, so there is nothing to count"
    if inverts and not outputs and not model.decides_outputs:
        return (
            "the confusion matrix has outputs other than the classes, which decisions on "
            "posteriors do not produce; send predictions or predicted_counts"
        )
    if model.confusion is None and (inverts or (maximises and outputs)):
        return "the version has no confusion matrix; register one, or a validation set"
    return None


@dataclass(frozen=True)
class _Result:
    prevalence: Floats
    diagnostics: Diagnostics
    trace: Floats | None = None


@dataclass
class _Work:
    """One batch on its way: what several steps need is computed once and kept here."""

    model: SourceModel
    batch: Batch
    request: Request
    _warnings: dict[str, Warning] = field(default_factory=dict)
    _calibrated: Floats | None = None
    _likelihood: Likelihood | None = None
    _maximum: MleResult | None = None

    def __post_init__(self) -> None:
        for warning in self.model.warnings:
            self._warnings[warning.code] = warning
        if isinstance(self.batch, PosteriorBatch) and self.batch.renormalised:
            self.warn(
                "renormalised",
                f"{self.batch.renormalised} rows did not sum to 1 within 1e-6 and were rescaled",
            )

    @property
    def said(self) -> tuple[Warning, ...]:
        return tuple(self._warnings.values())

    def warn(self, code: str, message: str) -> None:
        self._warnings.setdefault(code, Warning(code, message))

    @property
    def source(self) -> Floats:
        """The working source priors of this kind of batch."""
        if isinstance(self.batch, PosteriorBatch):
            return self.model.priors
        return self.model.output_priors

    @property
    def has_likelihood(self) -> bool:
        return isinstance(self.batch, PosteriorBatch) or self.model.confusion is not None

    def require_likelihood(self, what: str) -> None:
        if not self.has_likelihood:
            reason = "the version has no confusion matrix; register one, or send posteriors"
            raise MethodUnavailable(f"{what} of predicted outputs", reason)

    def rows(self) -> Floats:
        """Calibrated posteriors of the rows, or P(class | output) of the outputs."""
        if self._calibrated is None:
            if isinstance(self.batch, PosteriorBatch):
                self._calibrated = self.model.calibration.apply(self.batch.posteriors)
            else:
                self._calibrated = self._output_posteriors()
        return self._calibrated

    def _output_posteriors(self) -> Floats:
        assert self.model.confusion is not None
        joint = self.model.confusion.conditional * self.source
        total = joint.sum(axis=1, keepdims=True)
        rows = np.tile(self.source, (len(joint), 1))
        np.divide(joint, total, out=rows, where=total > 0)
        return rows

    def likelihood(self) -> Likelihood:
        if self._likelihood is None:
            if isinstance(self.batch, PosteriorBatch):
                self._likelihood = Likelihood.of(
                    self.batch.posteriors, self.source, calibration=self.model.calibration
                )
            else:
                assert self.model.confusion is not None
                self._likelihood = Likelihood.of_outputs(
                    self.model.confusion.conditional, self.source, self.batch.counts
                )
            if self._likelihood.unsupported:
                self.warn(
                    "unsupported-rows",
                    f"{self._likelihood.unsupported:.0f} rows are impossible under the source "
                    "model and were left out of the likelihood",
                )
        return self._likelihood

    def maximum(self) -> MleResult:
        """The certified maximum, found once for the estimate and the test."""
        if self._maximum is None:
            likelihood = self.likelihood()
            self._maximum = mle(likelihood)
            self._warn_short(self._maximum.status, self._maximum.optimality_gap)
        return self._maximum

    def _warn_short(self, status: str, gap: float) -> None:
        lack = gap * self.likelihood().size
        if lack > LOOSE:
            self.warn(
                "stopped-short",
                f"the search stopped ({status}) where the log-likelihood may still lack "
                f"{lack:.3g}; prefer mle, or lower options.tolerance",
            )

    def solve(self, method: Method) -> _Result:
        solvers: dict[Method, Callable[[], _Result]] = {
            "cc": self._cc,
            "pcc": self._pcc,
            "acc": lambda: self._inverted(acc),
            "acc-qp": lambda: self._inverted(acc_qp),
            "em": self._iterated,
            "mle": self._maximised,
        }
        return solvers[method]()

    @property
    def output_shares(self) -> Floats:
        """Shares of the J predicted outputs; decisions are on raw posteriors."""
        if isinstance(self.batch, PosteriorBatch):
            decided = decisions(self.batch.posteriors)
            counts = np.bincount(decided, minlength=len(self.model.classes))
            of_decisions: Floats = counts / self.batch.size
            return of_decisions
        shares: Floats = self.batch.counts / self.batch.counts.sum()
        return shares

    @property
    def counted(self) -> Floats | None:
        """Class shares by counting; None where no output is named like a class."""
        shares = self.output_shares
        if isinstance(self.batch, PosteriorBatch) or self.model.decides_outputs:
            return shares
        named = dict(zip(self.model.outputs, shares, strict=True))
        by_class = np.array([named.get(name, 0.0) for name in self.model.classes])
        total = by_class.sum()
        return by_class / total if total > 0 else None

    def _cc(self) -> _Result:
        counted = self.counted
        if counted is None:
            raise MethodUnavailable("cc", "no row of the batch was predicted to be in a class")
        self._warn_uncorrected()
        return _Result(counted, Diagnostics("converged"))

    def _pcc(self) -> _Result:
        self._warn_uncorrected()
        return _Result(self.rows().mean(axis=0), Diagnostics("converged"))

    def _warn_uncorrected(self) -> None:
        message = "counting carries the source priors into the estimate; prefer a corrected method"
        self.warn("uncorrected", message)

    def _inverted(self, solver: Callable[[Floats, Floats, Floats], Inversion]) -> _Result:
        assert self.model.confusion is not None
        result = solver(self.model.confusion.conditional, self.output_shares, self.source)
        self._warn_unidentified(result.unidentified)
        if result.status != "converged":
            message = f"the solver reports {result.status}; do not rely on this estimate"
            self.warn("solver", message)
        if result.inadmissible:
            message = (
                "the linear solution leaves the simplex and was clipped and rescaled; "
                "diagnostics.raw has it"
            )
            self.warn("inadmissible", message)
        return _Result(
            result.prevalence,
            Diagnostics(
                result.status,
                optimality_gap=result.optimality_gap,
                raw=result.raw,
                inadmissible=None if result.raw is None else result.inadmissible,
            ),
        )

    def _iterated(self) -> _Result:
        options = self.request.em
        result = em(
            self.likelihood(), options.tolerance, options.max_iterations, self.request.trace
        )
        self._warn_short(result.status, result.optimality_gap)
        self._warn_unidentified(self.maximum().undetermined)
        diagnostics = Diagnostics(
            result.status, result.iterations, result.optimality_gap, result.gain
        )
        return _Result(result.prevalence, diagnostics, result.trace)

    def _maximised(self) -> _Result:
        result = self.maximum()
        self._warn_unidentified(result.undetermined)
        diagnostics = Diagnostics(
            result.status, result.iterations, result.optimality_gap, result.gain
        )
        return _Result(result.prevalence, diagnostics)

    def _warn_unidentified(self, positions: tuple[int, ...]) -> None:
        if positions:
            names = ", ".join(self.model.classes[k] for k in positions)
            self.warn(
                "not-identifiable",
                f"this batch cannot tell the shares of {names} apart; the answer nearest to the "
                "source priors is given",
            )

    def shift(self, prevalence: Floats) -> ShiftTest:
        """The test at the likelihood's maximum; the effect size is that of ``prevalence``."""
        options = self.request.shift
        likelihood = self.likelihood()
        return likelihood_ratio_test(
            self.maximum().gain,
            likelihood.size,
            self._degrees_of_freedom(likelihood),
            0.5 * float(np.abs(prevalence - self.source).sum()),
            self._reference_size(),
            options.significance,
            options.minimum_effect,
        )

    def _degrees_of_freedom(self, likelihood: Likelihood) -> int:
        """Rank of the information; for outputs rank M − 1, whichever outputs occurred."""
        if isinstance(self.batch, PosteriorBatch):
            return identifiability.degrees_of_freedom(likelihood)
        assert self.model.confusion is not None
        everything = Likelihood.of_outputs(
            self.model.confusion.conditional, self.source, np.ones(len(self.model.outputs))
        )
        return identifiability.degrees_of_freedom(everything)

    def _reference_size(self) -> float | None:
        n: float | None
        if isinstance(self.batch, PosteriorBatch):
            n = self.model.validation_size
        else:
            n = self.model.output_validation_size
        asked = self.request.shift.reference
        if asked == "scaled-chi-square" and n is None:
            reason = "the version has no validation set; register one"
            raise MethodUnavailable("the scaled-chi-square reference", reason)
        if n is None or asked == "chi-square":
            self.warn(
                "raw-shift-test",
                "the test takes the source priors and the calibration as exact; a slightly "
                "miscalibrated classifier alarms on every large batch. Register a validation set",
            )
            return None
        return n

    def log_offsets(self, prevalence: Floats) -> Floats | None:
        """ln(p_k / p0_k); None where a class of zero source prior has a share."""
        if gains_from_nothing(self.source, prevalence):
            return None
        return log_weights(self.source, prevalence)

    def adjustment(self, prevalence: Floats) -> Adjustment | None:
        """What to apply to raw posteriors; None as for ``log_offsets``."""
        calibration = self.model.calibration
        if gains_from_nothing(self.model.priors, prevalence):
            return None
        offsets = calibration.bias + log_weights(self.model.priors, prevalence)
        return Adjustment(calibration.scale, offsets, calibration.floor)

    def adjusted(self, target: Floats) -> Floats:
        """Adjusted posteriors of the rows; of the outputs for bare counts."""
        self.require_likelihood("posteriors")
        if gains_from_nothing(self.source, target):
            reason = "a class whose source prior is zero cannot be given a share"
            raise MethodUnavailable("adjusting posteriors to these priors", reason)
        adjusted, impossible = adjust(self.rows(), self.source, target)
        if isinstance(self.batch, OutputBatch) and self.batch.codes is not None:
            adjusted = adjusted[self.batch.codes]
        if impossible:
            self.warn(
                "impossible-rows",
                f"{impossible} rows have all their mass on classes of zero target prior; they "
                "got the target priors",
            )
        return adjusted
