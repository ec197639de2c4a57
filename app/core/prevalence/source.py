"""The source model: what is known of the classifier, and what follows from it."""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from app.core.arrays import AnyArray, Codes, Floats
from app.core.errors import InvalidInput
from app.core.prevalence.calibration import (
    FAMILIES,
    Calibration,
    Folds,
    Method,
    OneVersusRest,
    Report,
    Scaling,
    fit,
    losses,
    report,
)
from app.core.prevalence.calibration.false_alarms import second_moment
from app.core.prevalence.calibration.report import BEYOND
from app.core.prevalence.estimators.confusion import ConfusionMatrix, decisions
from app.core.prevalence.estimators.soft import soft_conditional
from app.core.prevalence.matching.posterior_fit import Bins
from app.core.prevalence.matching.version import Matching, MatchingOptions, ReferenceRows
from app.core.prevalence.numerics.chi_square import upper_tail
from app.core.prevalence.scorecard import Scorecard
from app.core.prevalence.uncertainty.nuisance import nuisance_covariance
from app.core.warnings import Warning, WarningCode

SMALLEST_PRIOR = 1e-12
"""A class with less than this is taken to be absent from the source."""
MANY_CLASSES = 5
ROWS_PER_CLASS = 50
DISAGREE = 1e-3
"""p-value below which stated priors and validation labels cannot be the same population."""


@dataclass(frozen=True)
class ValidationSet:
    """Labelled rows scored by a model that did not see them: n labels, n × C posteriors."""

    labels: Codes
    posteriors: Floats


@dataclass(frozen=True)
class Source:
    """A source model as registered, checked: every array in the order of ``classes``.

    At least one of ``class_counts``, ``priors``, ``confusion``, ``validation`` and ``reference``
    is there, which holds labelled rows of features (of posteriors, where these are matched).
    ``outputs`` names the columns of ``confusion``. ``calibration`` auto: the best by
    cross-validated log-loss. ``notes``: what was done to it on its way.
    """

    classes: tuple[str, ...]
    class_counts: Floats | None = None
    priors: Floats | None = None
    confusion: ConfusionMatrix | None = None
    outputs: tuple[str, ...] = ()
    validation: ValidationSet | None = None
    calibration: Method | Literal["auto"] = "bcts"
    reference: ReferenceRows | None = None
    matching: MatchingOptions = field(default_factory=MatchingOptions)
    notes: tuple[Warning, ...] = ()


@dataclass(frozen=True)
class SourceModel:
    """What an estimate needs of a version; small, without the validation rows.

    ``classes``: C names; every array is in their order.
    ``training_priors``: as registered, or derived, C.
    ``priors``: the working source priors of the (calibrated) posteriors, C.
    ``output_priors``: those of predicted outputs, which no calibration touches, C.
    ``outputs``: J names of the columns of ``confusion``.
    ``confusion``: None where there is none.
    ``calibration``: the map of raw posteriors.
    ``validation_size``: n; None without a validation set.
    ``label_counts``: validation rows by class, C; None without a validation set.
    ``mean_gap``: mean validation posterior minus label frequency, before calibration, C; None
        without a validation set.
    ``second_moment``: mean (g − f)(g − f)ᵀ over the validation rows, f the label frequency, C × C;
        None without a validation set.
    ``nuisance``: covariance of the calibration and of ``priors`` (see ``nuisance_covariance``);
        None where these are taken as exact.
    ``soft``: mean calibrated posteriors by class, C × C (see ``soft_conditional``); None without a
        validation set.
    ``report``: what calibration did; None without a validation set, or where nobody asked.
    ``scorecard``: what the methods are worth; None where that was not tried.
    ``matching``: what features are matched with; None where there is nothing.
    ``bins``: what the posteriors of a batch are compared with; None without a validation set.
    ``warnings``: what every answer of the version repeats.
    """

    classes: tuple[str, ...]
    training_priors: Floats
    priors: Floats
    output_priors: Floats
    outputs: tuple[str, ...]
    confusion: ConfusionMatrix | None
    calibration: Calibration
    validation_size: int | None = None
    label_counts: Floats | None = None
    mean_gap: Floats | None = None
    second_moment: Floats | None = None
    nuisance: Floats | None = None
    soft: Floats | None = None
    report: Report | None = None
    scorecard: Scorecard | None = None
    matching: Matching | None = None
    bins: Bins | None = None
    warnings: tuple[Warning, ...] = field(default=())

    @property
    def decides_outputs(self) -> bool:
        """Whether the argmax of posteriors produces the confusion matrix's outputs."""
        return self.outputs == self.classes

    @property
    def output_validation_size(self) -> float | None:
        """Rows behind the source's output shares; None without a validation set."""
        if self.validation_size is None or self.confusion is None:
            return None
        return min(float(self.validation_size), self.confusion.total)


def derive(source: Source, reporting: bool = True) -> SourceModel:
    """Everything that follows from a registered source: priors, confusion, calibration, doubts.

    ``reporting``: fit the calibration across folds too, to tell what it did; without, there is no
    report, nor the doubts that come of it.
    """
    reference = source.reference
    if reference is not None:
        counts = np.bincount(reference.labels, minlength=len(source.classes))
        _require_every_class(source.classes, counts)
    if source.validation is None:
        model = _without_validation(source)
    else:
        model = _with_validation(source, source.validation, reporting)
    if reference is None:
        return model
    matching = Matching.of(reference, len(source.classes), source.matching)
    return replace(model, matching=matching)


def _require_every_class(classes: tuple[str, ...], label_counts: AnyArray) -> None:
    if (label_counts == 0).any():
        names = [classes[k] for k in np.flatnonzero(label_counts == 0)]
        message = f"no row is labelled {', '.join(names)}; every class needs at least one"
        raise InvalidInput.at("/validation/labels", message)


def _without_validation(source: Source) -> SourceModel:
    warnings = [*source.notes, *_confusion_warnings(source.confusion, source.outputs)]
    stated = _stated_priors(source)
    if stated is None and source.reference is not None and source.confusion is None:
        labels = source.reference.labels
        stated = _shares(np.bincount(labels, minlength=len(source.classes)).astype(np.float64))
    if stated is None:
        if source.confusion is None:
            message = "needs class_counts, priors, a confusion_matrix or a validation set"
            raise InvalidInput.at("", f"the source {message}")
        stated = _shares(source.confusion.counts.sum(axis=1))
        message = "no priors were given: the row totals of the confusion matrix stand for them"
        warnings.append(Warning(WarningCode.PRIORS_FROM_CONFUSION_MATRIX, message))
    return SourceModel(
        classes=source.classes,
        training_priors=stated,
        priors=stated,
        output_priors=stated,
        outputs=source.outputs if source.confusion else source.classes,
        confusion=source.confusion,
        calibration=Scaling.identity(len(source.classes)),
        warnings=tuple(warnings),
    )


def _with_validation(source: Source, validation: ValidationSet, reporting: bool) -> SourceModel:
    classes = len(source.classes)
    label_counts = np.bincount(validation.labels, minlength=classes).astype(np.float64)
    _require_every_class(source.classes, label_counts)
    frequency = _shares(label_counts)
    confusion = source.confusion or ConfusionMatrix.of_decisions(
        validation.labels, decisions(validation.posteriors), classes
    )
    outputs = source.outputs if source.confusion else source.classes
    gap = validation.posteriors.mean(axis=0) - frequency
    warnings = [*source.notes, *_confusion_warnings(confusion, outputs)]
    calibrated = _calibrate(source, validation, reporting)
    warnings.extend(calibrated.warnings)
    many = _many_classes(source, calibrated.calibration, label_counts)
    if many is not None:
        warnings.append(many)
    stated = _stated_priors(source)
    if stated is not None:
        warnings.extend(_disagreement(source, stated, label_counts))
    return SourceModel(
        classes=source.classes,
        training_priors=frequency if stated is None else stated,
        priors=calibrated.priors,
        output_priors=frequency,
        outputs=outputs,
        confusion=confusion,
        calibration=calibrated.calibration,
        validation_size=len(validation.labels),
        label_counts=label_counts,
        mean_gap=gap,
        second_moment=second_moment(validation.posteriors, frequency),
        nuisance=nuisance_covariance(
            validation.posteriors, validation.labels, calibrated.calibration, calibrated.priors
        ),
        soft=soft_conditional(
            calibrated.calibration.apply(validation.posteriors), validation.labels
        ),
        report=calibrated.report,
        bins=Bins.of(validation.posteriors, validation.labels),
        warnings=tuple(warnings),
    )


@dataclass(frozen=True)
class _Calibrated:
    """A fitted calibration, the source priors that go with it, and what there is to say."""

    calibration: Calibration
    priors: Floats
    report: Report | None
    warnings: tuple[Warning, ...]


def _calibrate(source: Source, validation: ValidationSet, reporting: bool) -> _Calibrated:
    """Fit what was asked for; the priors are the mean calibrated posteriors.

    With free biases those are the label frequencies. Of a map with a parameter per score the mean
    is taken over rows that were not fitted.
    """
    rows, labels = validation.posteriors, validation.labels
    folds = Folds.of(labels, len(source.classes))
    method: Method = "bcts"
    compared: dict[Method, float] | None = None
    warnings: list[Warning] = []
    if source.calibration != "auto":
        method = source.calibration
    elif folds is None:
        message = "a class with a single labelled row rules out cross-validation; bcts was taken"
        warnings.append(Warning(WarningCode.CALIBRATION_NOT_COMPARED, message))
    else:
        compared = losses(rows, labels, folds)
        method = min(compared, key=compared.__getitem__)
    calibration = fit(method, rows, labels)
    per_score = method not in FAMILIES and method != "none"
    quality = None
    if reporting or per_score:
        quality, mean_posterior = report(
            source.calibration, calibration, rows, labels, folds, compared
        )
    if per_score:
        priors = _shares(mean_posterior)
    elif method in FAMILIES and FAMILIES[method].biased:
        priors = _shares(np.bincount(labels, minlength=len(source.classes)).astype(np.float64))
    else:
        priors = _shares(calibration.apply(rows).sum(axis=0))
    priors = without_traces(priors)
    warnings.extend(_calibration_warnings(source.classes, calibration, quality))
    return _Calibrated(calibration, priors, quality, tuple(warnings))


def without_traces(priors: Floats) -> Floats:
    """Priors in which a class with less than ``SMALLEST_PRIOR`` is absent."""
    return _shares(np.where(priors < SMALLEST_PRIOR, 0.0, priors))


def _calibration_warnings(
    classes: tuple[str, ...], calibration: Calibration, quality: Report | None
) -> list[Warning]:
    warnings = []
    if calibration.regularised:
        message = (
            "the validation scores separate the classes, or do not vary, so that no finite "
            "scale is best; the scale was drawn towards 1. Register more, or harder, rows"
        )
        warnings.append(Warning(WarningCode.CALIBRATION_REGULARISED, message))
    slopes = np.ones(1)
    if isinstance(calibration, Scaling):
        slopes = calibration.scale
    elif isinstance(calibration, OneVersusRest):
        slopes = calibration.slopes
    if float(slopes.min()) <= 0 and len(classes) > 1:
        message = (
            "calibrated posteriors run against the scores: a higher score means a lower "
            "chance. Check that labels and columns belong together"
        )
        warnings.append(Warning(WarningCode.SCORES_REVERSED, message))
    if calibration.method not in FAMILIES and calibration.method != "none":
        message = (
            f"intervals take the {calibration.method} calibration as exact, so that they are a "
            'little narrow; "bcts" carries its own error'
        )
        warnings.append(Warning(WarningCode.CALIBRATION_TAKEN_AS_EXACT, message))
    worst = None if quality is None else quality.after.misses
    if quality is not None and worst is not None:
        gap, z = quality.after.gap[worst], abs(quality.after.z[worst])
        message = (
            f"the mean posterior of {classes[worst]} misses its label frequency by {gap:+.4f}, "
            f"{z:.1f} standard errors on the validation set (more than {BEYOND:.0f} are not "
            "chance): estimates carry that error. Register the version with calibration "
            '"bcts"'
        )
        warnings.append(Warning(WarningCode.UNCALIBRATED, message))
    return warnings


def _many_classes(source: Source, calibration: Calibration, label_counts: Floats) -> Warning | None:
    """What the SLD reassessment found to go wrong with many classes."""
    classes, fewest = len(source.classes), int(label_counts.min())
    uncalibrated = calibration.method == "none"
    if classes <= MANY_CLASSES or not (uncalibrated or fewest < ROWS_PER_CLASS):
        return None
    why = "without calibration" if uncalibrated else f"with {fewest} validation rows of one of them"
    message = (
        f"{classes} classes {why}: beyond {MANY_CLASSES} classes estimates need calibration and "
        f"{ROWS_PER_CLASS} validation rows of each class; adjusted posteriors may be worse than raw"
    )
    return Warning(WarningCode.MANY_CLASSES, message)


def _stated_priors(source: Source) -> Floats | None:
    return source.priors if source.class_counts is None else _shares(source.class_counts)


def _shares(counts: Floats) -> Floats:
    shares: Floats = counts / counts.sum()
    return shares


def _confusion_warnings(
    confusion: ConfusionMatrix | None, outputs: tuple[str, ...]
) -> list[Warning]:
    if confusion is None:
        return []
    never = [outputs[j] for j in np.flatnonzero(confusion.counts.sum(axis=0) == 0)]
    if not never:
        return []
    message = (
        f"the confusion matrix never predicts {', '.join(never)}: counts alone cannot tell the "
        "share of such a class"
    )
    return [Warning(WarningCode.UNPREDICTED_OUTPUTS, message)]


def _disagreement(source: Source, stated: Floats, label_counts: Floats) -> list[Warning]:
    """Pearson's test of the validation labels against the stated priors."""
    n = label_counts.sum()
    if (stated == 0).any():
        return []
    observed = _shares(label_counts)
    training_rows = np.inf if source.class_counts is None else source.class_counts.sum()
    statistic = n * float((((observed - stated) ** 2) / stated).sum()) / (1 + n / training_rows)
    if upper_tail(statistic, len(stated) - 1) >= DISAGREE:
        return []
    worst = int(np.argmax(np.abs(observed - stated)))
    message = (
        f"the stated prior of {source.classes[worst]} is {stated[worst]:.4g}, the validation "
        f"labels say {observed[worst]:.4g}, more than sampling explains; the validation "
        "frequencies are used"
    )
    return [Warning(WarningCode.PRIORS_DISAGREE, message)]
