"""From the core's results and the store's records to answers."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np

from app.core.arrays import Floats
from app.core.json_types import JsonObject, JsonValue
from app.core.learners.linear import Linear
from app.core.learners.trained import Trained
from app.core.prevalence.calibration import Isotonic, OneVersusRest, Quality, Report, Scaling
from app.core.prevalence.matching.feature_fit import Fit
from app.core.prevalence.matching.version import Matching
from app.core.prevalence.measures import Brier
from app.core.prevalence.scorecard import Score, Scorecard
from app.core.prevalence.source import SourceModel
from app.core.prevalence.tests.shift import ShiftTest
from app.core.warnings import Warning
from app.estimation import (
    AdjustedModel,
    AdjustedRows,
    Adjustment,
    Batch,
    Diagnostics,
    Estimate,
    IntervalAnswer,
    OutputBatch,
    RegionAnswer,
    ShiftAnswer,
    UnknownShare,
    availability,
)
from app.estimation.evaluation import PosteriorQuality, SharesError
from app.estimation.histogram import BINS, Histogram
from app.schemas import base, batches, estimates, evaluations, models
from app.stored.alerts import StoredAlert
from app.stored.document import StoredWarning
from app.stored.estimates import StoredEstimate
from app.stored.evaluations import StoredEvaluation
from models_store.records import AliasRecord, ModelRecord, VersionRecord

MOST_TRACE = 2_000
"""Numbers of a trace that is kept with its estimate."""


def by_class(names: Sequence[str], values: Floats) -> dict[str, float]:
    """A vector keyed by name."""
    return dict(zip(names, values.tolist(), strict=True))


def finite(value: float) -> float | None:
    """The value, None where it is no number that JSON has."""
    return float(value) if np.isfinite(value) else None


def warnings(items: Sequence[Warning]) -> list[base.WarningOut]:
    """Warnings, in order."""
    return [base.WarningOut(code=w.code, message=w.message) for w in items]


def model(record: ModelRecord, aliases: Sequence[AliasRecord]) -> models.ModelOut:
    """A model's page."""
    return models.ModelOut(
        name=record.name,
        kind=record.kind,
        classes=list(record.classes),
        description=record.description,
        versions=record.versions,
        aliases={alias.alias: alias.version for alias in aliases},
        created_at=record.created_at,
        updated_at=record.updated_at,
    )


def version(record: VersionRecord) -> models.VersionOut:
    """A version's page."""
    source = record.source
    confusion = None if source.confusion is None else source.confusion.counts.tolist()
    return models.VersionOut(
        model=record.model,
        version=record.number,
        digest=record.digest,
        created_at=record.created_at,
        classes=list(source.classes),
        priors=by_class(source.classes, source.training_priors),
        source_priors=by_class(source.classes, source.priors),
        outputs=list(source.outputs),
        confusion_matrix=confusion,
        validation=_validation(source),
        calibration=calibration(source),
        methods=[
            models.MethodOut(name=a.method, available=a.reason is None, reason=a.reason)
            for a in availability(source)
        ],
        matching=None if source.matching is None else _matching(source.matching),
        training=None if record.training is None else models.TrainingOut(**record.training),
        metadata=record.metadata,
        warnings=warnings(source.warnings),
    )


def _matching(value: Matching) -> models.MatchingOut:
    return models.MatchingOut(
        feature_map=value.options.feature_map,
        feature_names=list(value.names),
        rows=int(value.embedding.counts.sum()),
        bandwidth=value.bandwidth,
        criterion=value.options.criterion,
        dimension=value.options.dimension,
        seed=value.options.seed,
        standardise=value.options.standardise,
        delta_min=value.delta_min,
        lambda_min=value.lambda_min,
        condition=finite(value.condition),
        exact=value.exact,
    )


def calibration(source: SourceModel) -> models.CalibrationOut:
    """A calibration, and what it did."""
    names, value = source.classes, source.calibration
    shown = models.CalibrationOut(
        method=value.method,
        scale=None,
        bias=None,
        floor=value.floor,
        regularised=value.regularised,
        report=None if source.report is None else _report(names, source.report),
    )
    if isinstance(value, Scaling):
        shown.scale, shown.bias = _scale(names, value.scale), by_class(names, value.bias)
    elif isinstance(value, OneVersusRest):
        shown.scale, shown.bias = by_class(names, value.slopes), by_class(names, value.intercepts)
    elif isinstance(value, Isotonic):
        shown.curves = {
            name: models.CurveOut(scores=x.tolist(), probabilities=y.tolist())
            for name, x, y in zip(names, value.knots, value.values, strict=True)
        }
    return shown


def _scale(names: Sequence[str], scale: Floats) -> float | dict[str, float]:
    """One number where the classes share it."""
    return float(scale[0]) if (scale == scale[0]).all() else by_class(names, scale)


def _report(names: Sequence[str], value: Report) -> models.CalibrationReportOut:
    losses = None
    if value.losses is not None:
        losses = {name: finite(loss) for name, loss in value.losses.items()}
    return models.CalibrationReportOut(
        asked=value.asked,
        rows=value.rows,
        folds=value.folds,
        before=_calibration_quality(names, value.before),
        after=_calibration_quality(names, value.after),
        losses=losses,
    )


def _calibration_quality(names: Sequence[str], value: Quality) -> models.CalibrationQualityOut:
    return models.CalibrationQualityOut(
        log_loss=finite(value.log_loss),
        brier=value.brier,
        calibration_error=value.calibration_error,
        gap=by_class(names, value.gap),
        z=by_class(names, value.z),
        raw_false_alarm_rate=value.raw_false_alarm_rate,
    )


def _validation(source: SourceModel) -> models.ValidationOut | None:
    if source.validation_size is None or source.label_counts is None or source.mean_gap is None:
        return None
    return models.ValidationOut(
        size=source.validation_size,
        label_counts=by_class(source.classes, source.label_counts),
        mean_gap=by_class(source.classes, source.mean_gap),
    )


def scorecard(record: VersionRecord, card: Scorecard) -> models.ScorecardOut:
    """A scorecard, by method and by kind of batch."""
    return models.ScorecardOut(
        model=record.model,
        version=record.number,
        seed=card.seed,
        rows=card.rows,
        batches=len(card.sizes),
        stopped=card.stopped,
        chosen=card.chosen,
        reason=card.reason,
        methods=[
            models.ScoreOut(
                name=score.method,
                mean_absolute_error=score.mean,
                standard_error=score.standard_error,
                brier_change=score.brier,
                batches=_by_kind(card, score),
                reason=score.reason,
            )
            for score in card.scores
        ],
    )


def _by_kind(card: Scorecard, score: Score) -> list[models.BatchScoreOut]:
    kinds = list(zip(card.sizes, card.priors, strict=True))
    if not len(score.errors):
        return []
    shown = []
    for size, priors in sorted(set(kinds)):
        these = np.array([kind == (size, priors) for kind in kinds])
        error = replace(score, errors=score.errors[these]).mean
        shown.append(models.BatchScoreOut(size=size, priors=priors, mean_absolute_error=error))
    return shown


def parameters(record: VersionRecord, trained: Trained, fitted: Linear) -> batches.ParametersOut:
    """A softmax model; ``fitted``: as trained, or adjusted."""
    assert record.training is not None
    names = record.source.classes
    return batches.ParametersOut(
        model=record.model,
        version=record.number,
        learner=record.training["learner"],
        classes=list(names),
        intercepts=by_class(names, fitted.intercepts),
        columns=_columns(trained, fitted.weights.T.tolist()),
        warnings=warnings(record.source.warnings),
    )


def histogram(names: Sequence[str], value: Histogram | None) -> estimates.HistogramOut | None:
    """Counted scores."""
    if value is None:
        return None
    before, after = (
        {name: counts.tolist() for name, counts in zip(names, part, strict=True)}
        for part in (value.before, value.after)
    )
    return estimates.HistogramOut(bins=BINS, before=before, after=after)


def rows(names: Sequence[str], values: Floats, like: JsonValue) -> JsonValue:
    """An array in the form that the request's posteriors had: rows, or lists by class."""
    if isinstance(like, dict):
        return dict(zip(names, values.T, strict=True))
    return values


def _columns(trained: Trained, weights: list[list[float]]) -> list[batches.ColumnOut]:
    """Columns in their own order; ``weights``: of the encoded ones, numeric columns first."""
    names, encoding = trained.columns.names, trained.encoding
    shown: dict[int, batches.ColumnOut] = {}
    for position, j in enumerate(encoding.numeric.tolist()):
        shown[j] = batches.ColumnOut(
            name=names[j],
            fill=float(encoding.fill[j]),
            centre=float(encoding.centre[position]),
            scale=float(encoding.scale[position]),
            weights=weights[position],
        )
    start = len(encoding.numeric)
    for j, _ in encoding.categorical:
        levels = trained.columns.levels[j]
        shown[j] = batches.ColumnOut(
            name=names[j],
            fill=levels[int(encoding.fill[j])],
            levels=[
                batches.LevelOut(level=level, weights=weights[start + code])
                for code, level in enumerate(levels)
            ],
        )
        start += len(levels)
    return [shown[j] for j in range(len(names))]


def alias(record: AliasRecord) -> models.AliasOut:
    """An alias."""
    return models.AliasOut(
        model=record.model,
        alias=record.alias,
        version=record.version,
        updated_at=record.updated_at,
    )


def prevalence(names: Sequence[str], estimate: Estimate) -> list[estimates.PrevalenceOut]:
    """One entry per class."""
    spread = estimate.interval
    rows = []
    for k, name in enumerate(names):
        source, share = float(estimate.source[k]), float(estimate.prevalence[k])
        offset = None if estimate.log_offsets is None else finite(estimate.log_offsets[k])
        weight = share / source if source > 0 else None
        rows.append(
            estimates.PrevalenceOut(
                class_=name,
                source=source,
                counted=None if estimate.counted is None else finite(estimate.counted[k]),
                estimate=share,
                lower=None if spread is None else float(spread.lower[k]),
                upper=None if spread is None else float(spread.upper[k]),
                weight=weight,
                log_offset=offset,
            )
        )
    return rows


def unknown(value: UnknownShare | None) -> estimates.UnknownShareOut | None:
    """The share that is none of the classes."""
    return None if value is None else estimates.UnknownShareOut(**vars(value))


def fit(value: Fit | None) -> estimates.FitOut | None:
    """Whether prior shift explains the batch."""
    return None if value is None else estimates.FitOut(**vars(value))


def interval(value: IntervalAnswer | None) -> estimates.IntervalOut | None:
    """How the intervals were found."""
    if value is None:
        return None
    return estimates.IntervalOut(
        level=value.level,
        method=value.method,
        of=value.of,
        seed=value.seed,
        replicates=value.replicates,
    )


def adjustment(names: Sequence[str], value: Adjustment | None) -> estimates.AdjustmentOut | None:
    """What a scorer applies itself."""
    if value is None:
        return None
    offsets = {name: finite(offset) for name, offset in zip(names, value.offsets, strict=True)}
    return estimates.AdjustmentOut(
        scale=_scale(names, value.scale), offsets=offsets, floor=value.floor
    )


def shift(test: ShiftTest, source: SourceModel) -> estimates.ShiftOut:
    """The test, with the gap behind the raw test's false alarms."""
    gap = None if source.mean_gap is None else by_class(source.classes, source.mean_gap)
    return estimates.ShiftOut(**vars(test), mean_gap=gap)


def diagnostics(names: Sequence[str], value: Diagnostics) -> estimates.DiagnosticsOut:
    """How far to trust it."""
    return estimates.DiagnosticsOut(
        status=value.status,
        iterations=value.iterations,
        optimality_gap=value.optimality_gap,
        gain=value.gain,
        raw=None if value.raw is None else by_class(names, value.raw),
        inadmissible=value.inadmissible,
        radius=value.radius,
    )


def posteriors(
    record: VersionRecord, batch: Batch, rows: AdjustedRows, notes: Sequence[Warning]
) -> JsonObject:
    """Adjusted rows, but for the rows themselves."""
    source = record.source
    bare_counts = isinstance(batch, OutputBatch) and batch.codes is None
    decided = rows.decided
    return body(
        batches.PosteriorsOut(
            model=record.model,
            version=record.number,
            size=batch.size,
            columns=list(source.classes),
            outputs=list(source.outputs) if bare_counts else None,
            method=rows.method,
            source_priors=by_class(source.classes, rows.source),
            target_priors=by_class(source.classes, rows.target),
            warnings=warnings(notes),
            decisions=None if decided is None else [source.classes[k] for k in decided],
            threshold=rows.threshold,
            posteriors=None,
        )
    )


def shift_test(record: VersionRecord, result: ShiftAnswer) -> batches.ShiftTestOut:
    """A shift test by itself."""
    return batches.ShiftTestOut(
        model=record.model,
        version=record.number,
        size=result.size,
        shift=shift(result.shift, record.source),
        diagnostics=diagnostics(record.source.classes, result.diagnostics),
        warnings=warnings(result.warnings),
    )


def region_test(
    record: VersionRecord, priors: Floats, result: RegionAnswer, notes: Sequence[Warning]
) -> batches.RegionTestOut:
    """Whether ``priors`` lie in a region; ``notes``: on how they were stated."""
    return batches.RegionTestOut(
        model=record.model,
        version=record.number,
        size=result.size,
        inside=result.inside,
        level=result.level,
        statistic=result.statistic,
        factor=result.factor,
        degrees_of_freedom=result.degrees_of_freedom,
        p_value=result.p_value,
        priors=by_class(record.source.classes, priors),
        prevalence=by_class(record.source.classes, result.prevalence),
        warnings=warnings((*notes, *result.warnings)),
    )


def bias_adjustment(
    record: VersionRecord, reference: str | None, result: AdjustedModel, notes: Sequence[Warning]
) -> batches.BiasAdjustmentOut:
    """Adjusted intercepts; ``notes``: on how the target was stated."""
    classes = record.source.classes
    return batches.BiasAdjustmentOut(
        model=record.model,
        version=record.number,
        method=result.method,
        scale=result.scale,
        intercepts=by_class(classes, result.intercepts),
        reference=reference,
        target_priors=by_class(classes, result.target),
        warnings=warnings((*notes, *result.warnings)),
    )


def shares_error(value: SharesError | None) -> evaluations.SharesErrorOut | None:
    """Errors of shares."""
    return None if value is None else evaluations.SharesErrorOut(**vars(value))


def brier(value: Brier) -> evaluations.BrierOut:
    """A decomposed Brier score."""
    return evaluations.BrierOut(
        brier=value.brier,
        calibration_error=value.calibration_error,
        refinement_error=value.refinement_error,
        remainder=value.remainder,
    )


def quality(names: Sequence[str], value: PosteriorQuality | None) -> evaluations.QualityOut | None:
    """Quality of posteriors."""
    if value is None:
        return None
    return evaluations.QualityOut(
        equal_length_bins=brier(value.equal_length),
        equal_count_bins=brier(value.equal_count),
        log_loss=finite(value.log_loss),
        accuracy=value.decisions.accuracy,
        macro_f1=value.decisions.macro_f1,
        precision=by_class(names, value.decisions.precision),
        recall=by_class(names, value.decisions.recall),
        f1=by_class(names, value.decisions.f1),
        confusion_matrix=value.confusion.tolist(),
    )


def estimate(
    record: VersionRecord,
    result: Estimate,
    id: str | None,
    observed_at: datetime | None,
    segment: dict[str, str],
    created_at: datetime,
) -> estimates.EstimateOut:
    """What a batch said under a version; ``id`` None where it is not kept."""
    names = record.source.classes
    return estimates.EstimateOut(
        id=id,
        model=record.model,
        version=record.number,
        method=result.method,
        reason=result.reason,
        size=result.size,
        labelled=result.labelled,
        created_at=created_at,
        observed_at=observed_at,
        segment=segment,
        prevalence=prevalence(names, result),
        unknown_share=unknown(result.unknown),
        interval=interval(result.interval),
        adjustment=adjustment(names, result.adjustment),
        shift=None if result.shift is None else shift(result.shift, record.source),
        fit=fit(result.fit),
        diagnostics=diagnostics(names, result.diagnostics),
        warnings=warnings(result.warnings),
        trace=_short(result.trace),
        histogram=histogram(names, result.histogram),
    )


def _short(trace: Floats | None) -> list[list[float]] | None:
    """A trace that is short enough to be kept."""
    return None if trace is None or trace.size > MOST_TRACE else trace.tolist()


def body(value: base.Out) -> dict[str, object]:
    """JSON-ready content, without the parts that were not asked for."""
    content = value.model_dump(mode="json", by_alias=True)
    for optional in ("posteriors", "trace", "weighted_precision", "histogram", "monitor"):
        if content.get(optional, 0) is None:
            del content[optional]
    return content


def stored_warnings(items: Sequence[Warning]) -> list[StoredWarning]:
    """Warnings as they are kept, in order."""
    return [StoredWarning(code=w.code, message=w.message) for w in items]


def stored_estimate(shown: estimates.EstimateOut) -> StoredEstimate:
    """What is kept of an answer."""
    return StoredEstimate.model_validate(shown)


def kept_estimate(kept: StoredEstimate) -> dict[str, object]:
    """A kept estimate, as it was answered when it was made."""
    return body(estimates.EstimateOut.model_validate(kept))


def kept_alert(kept: StoredAlert) -> dict[str, object]:
    """An alert, as it was answered when it was changed last."""
    return kept.model_dump(mode="json", by_alias=True)


def stored_evaluation(shown: evaluations.EvaluationOut) -> StoredEvaluation:
    """What is kept of an answer."""
    return StoredEvaluation.model_validate(shown)


def kept_evaluation(kept: StoredEvaluation) -> dict[str, object]:
    """A kept evaluation, as it was answered when it was made."""
    content = body(evaluations.EvaluationOut.model_validate(kept))
    if "interval" not in kept.model_fields_set:  # as early releases answered
        del content["interval"]
    return content
