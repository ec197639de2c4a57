"""The scorecard of a version: every method on batches of known shares.

In every round the validation rows are split in two halves. One registers a version of its own,
the other is resampled at priors drawn anew, so that no row is on both sides; then the halves
change places.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np

from app.core import deadline
from app.core.arrays import Codes, Floats
from app.core.errors import MethodUnavailable
from app.core.prevalence.calibration import Folds
from app.core.prevalence.measures import absolute_error
from app.core.prevalence.scorecard import Score, Scorecard
from app.core.prevalence.source import Source, SourceModel, ValidationSet, derive
from app.core.warnings import Warning, WarningCode
from app.estimation.evidence import Evidence
from app.estimation.methods import MATCHING, METHODS, Method, default, refusal
from app.estimation.request import EmOptions, PosteriorBatch, Request
from app.estimation.solvers import solve

SIZES = (100, 1000)
PRIORS = ("uniform", "normalised-uniform")
ROUNDS = 5
SECONDS = 20.0
FEWEST_ROWS = 50
FEWEST_OF_A_CLASS = 4
MOST_ROWS = 20_000
MOST_WATCHED = 1_000
"""Rows on which em-stop counts precision here."""
CANDIDATES: tuple[Method, ...] = ("mle", "acc-qp", "pacc-qp")
"""What ``auto`` may take: consistent, and with intervals."""
# Standard errors are those over the halves: batches of one half share what it happens to hold.
BEYOND = 3.0
"""A method replaces the default when it is better by more standard errors than this."""
WORTH = 0.05
"""It must also be better by more than this share of the default's error."""
REQUEST = Request(em=EmOptions(max_iterations=200))


def add_scorecard(source: Source, model: SourceModel, seed: int = 0) -> SourceModel:
    """``model`` with its scorecard; with a warning where there are too few rows for one."""
    validation = source.validation
    if validation is None or len(model.classes) < 2:
        return model
    counts = np.bincount(validation.labels, minlength=len(model.classes))
    if len(validation.labels) < FEWEST_ROWS or counts.min() < FEWEST_OF_A_CLASS:
        rarest = model.classes[int(counts.argmin())]
        message = (
            f"the validation set has {len(validation.labels)} rows, {counts.min()} of {rarest}; "
            f"below {FEWEST_ROWS} rows, or {FEWEST_OF_A_CLASS} of a class, methods cannot be "
            "tried on it, and estimates rest on little"
        )
        warnings = (*model.warnings, Warning(WarningCode.VALIDATION_TOO_SMALL, message))
        return replace(model, warnings=warnings)
    return replace(model, scorecard=_scorecard(source, validation, model, seed))


@dataclass(frozen=True)
class _Half:
    """A version made of one half, with the rows of the other by class.

    Stands for the rows of its version where a method asks for them: ``watched``, a part of them.
    """

    model: SourceModel
    watched: ValidationSet
    pool: tuple[Floats, ...]

    def validation(self) -> ValidationSet:
        """Some of the rows that the version was made of."""
        return self.watched

    def exact(self) -> None:
        """Features are not matched here."""

    def null_statistics(self, size: float, seed: int) -> None:
        """Nobody asks for a shift test here."""


@dataclass(frozen=True)
class _Trial:
    """A batch of known labels, its shares, and what it was drawn as."""

    half: _Half
    posteriors: Floats
    labels: Codes
    size: int
    priors: str

    @property
    def truth(self) -> Floats:
        """The realised shares, C."""
        counts = np.bincount(self.labels, minlength=len(self.half.pool))
        return np.asarray(counts / len(self.labels))


def _scorecard(
    source: Source, validation: ValidationSet, model: SourceModel, seed: int
) -> Scorecard:
    rng = np.random.default_rng(seed)
    reasons = {method: _untried(method, model) for method in METHODS}
    methods = [method for method in METHODS if reasons[method] is None]
    errors: dict[Method, list[float]] = {method: [] for method in methods}
    changes: dict[Method, list[float]] = {method: [] for method in methods}
    batches: list[tuple[int, str]] = []
    until, stopped = monotonic() + min(SECONDS, deadline.remaining() / 2), False
    for trial in _trials(source, validation, model, rng):
        if batches and monotonic() > until:
            stopped = True
            break
        batches.append((trial.size, trial.priors))
        for method, (error, change) in _try_methods(trial, methods).items():
            errors[method].append(error)
            changes[method].append(change)
    scores = tuple(
        Score(method, np.array(errors[method]), _mean(changes[method]))
        if method in errors
        else Score(method, np.empty(0), reason=reasons[method])
        for method in METHODS
    )
    chosen, reason = _choice(model, scores)
    sizes, priors = zip(*batches, strict=True)
    return Scorecard(seed, len(validation.labels), sizes, priors, scores, chosen, reason, stopped)


def _mean(changes: list[float]) -> float | None:
    known = [change for change in changes if np.isfinite(change)]
    return float(np.mean(known)) if known else None


def _untried(method: Method, model: SourceModel) -> str | None:
    if method == "bayes" and len(model.classes) > 2:
        return "drawing from the posterior of more than two classes takes too long to be tried"
    if method in MATCHING:
        return "matching features is not tried on validation rows"
    nothing = PosteriorBatch(np.zeros((0, len(model.classes))))
    # A half's confusion matrix is of its own decisions, whatever was registered.
    own = replace(model, outputs=model.classes)
    return refusal(method, own, nothing)


def _halves(
    source: Source, validation: ValidationSet, model: SourceModel, seed: int
) -> tuple[_Half, _Half]:
    """Both ways round, stratified; a stratified part of very many rows."""
    classes = len(model.classes)
    folds = Folds.of(validation.labels, classes, seed, most=2, rows=MOST_ROWS)
    assert folds is not None
    parts = []
    for f in range(2):
        rows = folds.rows[folds.fold == f]
        parts.append(ValidationSet(validation.labels[rows], validation.posteriors[rows]))
    first, second = (_half(source, model, parts[f], parts[1 - f]) for f in range(2))
    return first, second


def _half(source: Source, model: SourceModel, own: ValidationSet, other: ValidationSet) -> _Half:
    calibration = model.calibration.method
    half = Source(source.classes, validation=own, calibration=calibration)
    made = derive(half, reporting=False)
    pool = tuple(other.posteriors[other.labels == k] for k in range(len(source.classes)))
    step = -(-len(own.labels) // MOST_WATCHED)
    watched = ValidationSet(own.labels[::step], own.posteriors[::step])
    return _Half(made, watched, pool)


def _trials(
    source: Source, validation: ValidationSet, model: SourceModel, rng: np.random.Generator
) -> Iterator[_Trial]:
    classes = len(model.classes)
    for _ in range(ROUNDS):
        for half in _halves(source, validation, model, int(rng.integers(2**31))):
            for size in SIZES:
                for name in PRIORS:
                    even = name == "uniform"
                    weights = rng.dirichlet(np.ones(classes)) if even else rng.random(classes)
                    counts = rng.multinomial(size, weights / weights.sum())
                    labels = np.repeat(np.arange(classes), counts)
                    picked = [
                        rows[rng.integers(0, len(rows), count)]
                        for rows, count in zip(half.pool, counts, strict=True)
                    ]
                    yield _Trial(half, np.concatenate(picked), labels, size, name)


def _try_methods(trial: _Trial, methods: list[Method]) -> dict[Method, tuple[float, float]]:
    """Error of the shares, and change of the Brier score, by method; NaN for no posteriors."""
    model = trial.half.model
    evidence = Evidence(model, PosteriorBatch(trial.posteriors), trial.half)
    before = _brier(evidence.rows, trial.labels)
    errors = {}
    for method in methods:
        try:
            p = solve(evidence, method, REQUEST).prevalence
        except MethodUnavailable:
            errors[method] = (float("nan"), float("nan"))
            continue
        source = evidence.source_of(method)
        after = _brier(evidence.adjusted(source, p), trial.labels)
        errors[method] = absolute_error(trial.truth, p), after - before
    return errors


def _brier(posteriors: Floats, labels: Codes) -> float:
    hit: Floats = posteriors[np.arange(len(labels)), labels]
    total = (posteriors**2).sum(axis=1) - 2 * hit + 1
    classes: int = posteriors.shape[1]
    return float(total.mean()) / classes


def _by_half(values: Floats) -> Floats:
    """Means of the batches of one half each; what time cut off is left out."""
    each = len(SIZES) * len(PRIORS)
    whole = values[: len(values) // each * each]
    return np.asarray(whole.reshape(-1, each).mean(axis=1))


def _choice(model: SourceModel, scores: tuple[Score, ...]) -> tuple[str, str]:
    """The default, unless a candidate is better beyond doubt; paired over the halves."""
    by_method = {
        score.method: score
        for score in scores
        if len(score.errors) and np.isfinite(score.errors).all()
    }
    usual, because = default(model)
    by_candidate = ", ".join(
        f"{name} {by_method[name].errors.mean():.4f}" for name in CANDIDATES if name in by_method
    )
    comparison = f"mean error of the shares on the scorecard: {by_candidate}"
    if usual not in by_method:
        return usual, because
    best, least = usual, 0.0
    for name in CANDIDATES:
        if name == usual or name not in by_method:
            continue
        gain = _by_half(by_method[usual].errors - by_method[name].errors)
        if len(gain) < 2 * ROUNDS:
            continue
        doubt = BEYOND * gain.std(ddof=1) / np.sqrt(len(gain))
        if gain.mean() > max(least, doubt, WORTH * by_method[usual].errors.mean()):
            best, least = name, float(gain.mean())
    if best == usual:
        return usual, f"{because}; {comparison}"
    return best, f"better than {usual} beyond doubt; {comparison}"
