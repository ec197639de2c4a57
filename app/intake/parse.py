"""From decoded JSON or NPY to the values that the core takes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

from app.core.arrays import Codes, Floats, probabilities, probability_rows
from app.core.errors import Fault, Faults, InvalidInput, pointer
from app.core.json_types import JsonValue
from app.core.names import Spellings, visible
from app.core.prevalence.estimators.confusion import ConfusionMatrix
from app.core.prevalence.source import (
    SMALLEST_PRIOR,
    Source,
    SourceModel,
    ValidationSet,
    derive,
)
from app.core.warnings import Warning, WarningCode
from app.estimation import (
    Batch,
    BayesOptions,
    EmOptions,
    FeatureBatch,
    OutputBatch,
    PosteriorBatch,
    add_scorecard,
)
from app.formats import json
from app.formats.frame import Frame
from app.formats.table import unique
from app.intake import features
from app.schemas.requests import (
    AdjustedModelIn,
    BatchIn,
    BiasAdjustmentIn,
    LabelledBatchIn,
    OptionsIn,
    SourceIn,
    ValidationIn,
)
from app.schemas.validation import schema_faults

M = TypeVar("M", bound=BaseModel)
COUNTS = ("posteriors", "predictions", "predicted_counts", "features")


def envelope(shape: type[M], content: dict[str, object], text: bool = False) -> M:
    """Check an envelope; ``text``: its scalars are strings from a query."""
    return _checked(shape, content, strict=not text)


def classes(names: list[str], limit: int) -> tuple[str, ...]:
    """Class names: unique, not too many."""
    if len(names) > limit:
        raise InvalidInput.at("/classes", f"has {len(names)} classes, at most {limit} are allowed")
    return unique(names, "/classes")


def part(shape: type[M], content: JsonValue, at: str) -> M:
    """Check a part of a body that stands at ``at``."""
    with placed(at):
        return _checked(shape, content, strict=True)


def _checked(shape: type[M], content: object, strict: bool) -> M:
    try:
        return shape.model_validate(content, strict=strict)
    except ValidationError as error:
        raise InvalidInput(schema_faults(error), error.error_count()) from None


@contextmanager
def placed(at: str) -> Iterator[None]:
    """Faults within are placed under ``at``."""
    try:
        yield
    except InvalidInput as error:
        moved = [Fault(at + fault.pointer, fault.message, fault.row) for fault in error.faults]
        raise InvalidInput(moved, error.count) from None


def derived(checked: Source, at: str) -> SourceModel:
    """What follows from a source, with its scorecard; faults are placed under ``at``."""
    with placed(at):
        return add_scorecard(checked, derive(checked))


def source(given: SourceIn, names: tuple[str, ...], at: str) -> Source:
    """A checked source of a model with these classes; ``at``: where it stands in the body."""
    if given.class_counts is not None and given.priors is not None:
        raise InvalidInput.at(f"{at}/priors", "stands for class_counts; give one of the two")
    if given.outputs is not None and given.confusion_matrix is None:
        message = "names columns of confusion_matrix, which is missing"
        raise InvalidInput.at(f"{at}/outputs", message)
    outputs = names if given.outputs is None else unique(given.outputs, f"{at}/outputs")
    notes: list[Warning] = []
    class_counts = None
    if given.class_counts is not None:
        class_counts = json.named_counts(given.class_counts, names, f"{at}/class_counts", True)
        _require_positive(class_counts / max(class_counts.sum(), 1.0), names, f"{at}/class_counts")
    priors = None
    if given.priors is not None:
        priors = _priors(given.priors, names, f"{at}/priors", notes)
        _require_positive(priors, names, f"{at}/priors")
    confusion = None
    if given.confusion_matrix is not None:
        confusion = _confusion(given.confusion_matrix, names, outputs, f"{at}/confusion_matrix")
    validation, reference = None, None
    if given.validation is not None:
        place = f"{at}/validation"
        labels = json.codes(given.validation.labels, names, f"{place}/labels")
        validation = _validation(given.validation, labels, names, place, notes)
        reference = features.reference(given.validation, labels, place)
    reference, options = features.options(given.matching, reference, validation, names, at)
    if validation is None and given.calibration not in (None, "none"):
        message = "is fitted on a validation set; register one"
        raise InvalidInput.at(f"{at}/calibration", message)
    return Source(
        classes=names,
        class_counts=class_counts,
        priors=priors,
        confusion=confusion,
        outputs=outputs if confusion is not None else (),
        validation=validation,
        calibration="none" if validation is None else given.calibration or "bcts",
        reference=reference,
        matching=options,
        notes=tuple(notes),
    )


def _require_positive(shares: Floats, names: tuple[str, ...], at: str) -> None:
    faults = Faults()
    for k in np.flatnonzero(shares < SMALLEST_PRIOR):
        message = (
            f"is below {SMALLEST_PRIOR:g} of the whole; leave out a class that the source lacks"
        )
        faults.add(at + pointer(names[k]), message)
    faults.raise_if_any()


def _priors(given: object, names: tuple[str, ...], at: str, notes: list[Warning]) -> Floats:
    rows = probabilities(json.named_numbers(given, names, at, complete=True), at)
    if rows.renormalised:
        message = f"{at} did not sum to 1 within 1e-6 and was rescaled"
        notes.append(Warning(WarningCode.RENORMALISED_PRIORS, message))
    return rows.values


def _confusion(
    values: JsonValue, names: tuple[str, ...], outputs: tuple[str, ...], at: str
) -> ConfusionMatrix:
    counts = json.matrix(values, len(outputs), at)
    if len(counts) != len(names):
        message = f"has {len(counts)} rows; it needs one per actual class, {len(names)}"
        raise InvalidInput.at(at, message)
    faults = Faults()
    for row, (cells, name) in enumerate(zip(counts, names, strict=True)):
        fault = _cells_fault(cells, name)
        if fault is not None:
            faults.add(f"{at}/{row}", fault, row)
    faults.raise_if_any()
    return ConfusionMatrix(counts)


def _cells_fault(cells: Floats, name: str) -> str | None:
    finite = np.isfinite(cells).all()
    if not (finite and (cells >= 0).all() and cells.max() <= json.LARGEST_COUNT):
        return "must hold finite counts that are not negative"
    if (cells != np.floor(cells)).any():
        return "must hold counts of rows, not rates"
    if cells.sum() == 0:
        return f"is empty; class {name} needs at least one labelled row"
    return None


def _validation(
    given: ValidationIn, labels: Codes, names: tuple[str, ...], at: str, notes: list[Warning]
) -> ValidationSet | None:
    if given.posteriors is None:
        if given.features is None:
            raise InvalidInput.at(at, "needs posteriors, or features to match, or both")
        if given.columns is not None:
            raise InvalidInput.at(f"{at}/columns", "orders posteriors, which are missing")
        return None
    posteriors, order_at = f"{at}/posteriors", f"{at}/columns"
    values = json.rows(given.posteriors, given.columns, names, posteriors, order_at)
    if len(values) != len(labels):
        message = f"has {len(values)} rows for {len(labels)} labels"
        raise InvalidInput.at(posteriors, message)
    rows = probability_rows(values, posteriors)
    if rows.renormalised:
        message = f"{rows.renormalised} validation rows did not sum to 1 within 1e-6; rescaled"
        notes.append(Warning(WarningCode.RENORMALISED_VALIDATION, message))
    return ValidationSet(labels, rows.values)


class Scores(Protocol):
    """Scores features; whoever has the trained classifier implements it."""

    def batch(self, values: object, columns: object) -> PosteriorBatch:
        """Posteriors of rows of features."""

    def framed(self, frame: Frame) -> PosteriorBatch:
        """Posteriors of the features in a table."""

    @property
    def features(self) -> Sequence[str]:
        """Names of the features; empty for a version that was not trained here."""


def batch(given: BatchIn, model: SourceModel, scores: Scores, frame: Frame | None = None) -> Batch:
    """The batch of an envelope, in the order of the model's classes or outputs.

    ``frame``: the rows, where they came as a table; ``predictions`` and ``labels`` then name
    columns of it.
    """
    found = _rows(given, model, scores) if frame is None else _framed(given, model, scores, frame)
    if not isinstance(given, LabelledBatchIn) or given.labels is None:
        return found
    if isinstance(found, OutputBatch) and found.codes is None:
        raise InvalidInput.at("/labels", "belong to rows; predicted_counts has none")
    if isinstance(found, FeatureBatch):
        raise InvalidInput.at("/labels", "features are matched without labels; leave them out")
    if frame is None:
        labels = json.codes(given.labels, model.classes, "/labels", partial=True)
    else:
        labels = frame.labels(str(given.labels), model.classes, "/labels", partial=True)
    if len(labels) != found.size:
        message = f"has {len(labels)} entries for {found.size} rows; write null where unknown"
        raise InvalidInput.at("/labels", message)
    return replace(found, labels=labels) if (labels >= 0).any() else found


def _framed(given: BatchIn, model: SourceModel, scores: Scores, frame: Frame) -> Batch:
    """Predicted labels by the column that is named; else posteriors by class, else features."""
    for name in ("posteriors", "predicted_counts", "features", "columns"):
        if getattr(given, name) is not None:
            raise InvalidInput.at(f"/{name}", "the rows are in the body; leave it out")
    if given.predictions is not None:
        codes = frame.labels(str(given.predictions), model.outputs, "/predictions")
        counts = np.bincount(codes, minlength=len(model.outputs)).astype(np.float64)
        return OutputBatch(counts, codes)
    if features.wants(given, model, frame):
        return features.framed(model, frame)
    if frame.has(model.classes):
        rows = probability_rows(frame.numbers(model.classes), "", owned=True)
        return PosteriorBatch(rows.values, rows.renormalised)
    if scores.features and frame.has(scores.features):
        return scores.framed(frame)
    missing = [visible(name) for name in model.classes if frame.find(name) is None]
    message = (
        f"the table has no column for {', '.join(missing[:5])}; send a column of posteriors for "
        "each class, or name the column of predicted labels: predictions=COLUMN"
    )
    raise InvalidInput.at("", message)


def _rows(given: BatchIn, model: SourceModel, scores: Scores) -> Batch:
    named = [name for name in COUNTS if getattr(given, name) is not None]
    if len(named) != 1:
        found = " and ".join(named) or "none of them"
        message = f"needs exactly one of {', '.join(COUNTS)}, has {found}"
        raise InvalidInput.at("", f"the batch {message}")
    if given.posteriors is not None:
        return _posteriors(given, model)
    if given.features is not None and features.takes_features(model):
        return features.listed(given, model)
    if given.features is not None:
        return scores.batch(given.features, given.columns)
    if given.columns is not None:
        raise InvalidInput.at("/columns", f"orders posteriors; {named[0]} has no columns")
    if given.predictions is not None:
        codes = json.codes(given.predictions, model.outputs, "/predictions")
        counts = np.bincount(codes, minlength=len(model.outputs)).astype(np.float64)
        return OutputBatch(counts, codes)
    counts = json.named_counts(
        given.predicted_counts, model.outputs, "/predicted_counts", complete=False
    )
    if counts.sum() == 0:
        raise InvalidInput.at("/predicted_counts", "counts no rows; send at least one")
    return OutputBatch(counts)


def _posteriors(given: BatchIn, model: SourceModel) -> PosteriorBatch:
    values = json.rows(given.posteriors, given.columns, model.classes, "/posteriors", "/columns")
    # What has its own memory was made for this request; a view looks into the body.
    rows = probability_rows(values, "/posteriors", owned=values.flags.owndata)
    return PosteriorBatch(rows.values, rows.renormalised)


def stated_priors(
    given: object, names: tuple[str, ...], at: str
) -> tuple[Floats, tuple[Warning, ...]]:
    """Stated priors, in order, and what was done to them."""
    notes: list[Warning] = []
    return _priors(given, names, at, notes), tuple(notes)


def em_options(given: OptionsIn) -> EmOptions:
    """When EM stops."""
    return EmOptions(given.tolerance, given.max_iterations)


def bayes_options(given: OptionsIn, names: tuple[str, ...]) -> BayesOptions:
    """The Dirichlet prior by class, positive, and the seed."""
    if given.prior is None:
        return BayesOptions(None, given.seed)
    values = json.named_reals(given.prior, names, "/options/prior")
    faults = Faults()
    for k in np.flatnonzero((values < 1e-3) | (values > 1e9)):
        faults.add("/options/prior" + pointer(names[int(k)]), "must lie between 0.001 and 1e9")
    faults.raise_if_any()
    return BayesOptions(values, given.seed)


def costs(given: object, classes: int) -> Floats:
    """A C × C matrix of finite costs, rows true classes, columns decided ones."""
    values = json.matrix(given, classes, "/costs")
    if len(values) != classes:
        raise InvalidInput.at(
            "/costs", f"has {len(values)} rows; it needs one per class, {classes}"
        )
    if not np.isfinite(values).all():
        raise InvalidInput.at("/costs", "must hold finite numbers")
    return values


def intercepts(given: BiasAdjustmentIn, names: tuple[str, ...]) -> tuple[Floats, int | None]:
    """Intercepts in order, and the position of the reference class; that one may be left out."""
    values = given.intercepts
    if given.reference is None:
        return json.named_reals(values, names, "/intercepts"), None
    reference = Spellings(names).find(given.reference)
    if reference is None:
        raise InvalidInput.at("/reference", f"{json.shown(given.reference)} is not a class")
    if isinstance(values, dict):
        spelled = Spellings(names).respelled(list(values))
        values = values if names[reference] in spelled else {given.reference: 0, **values}
    found = json.named_reals(values, names, "/intercepts")
    if found[reference] != 0:
        message = "is the reference class: its intercept is zero"
        raise InvalidInput.at("/intercepts" + pointer(given.reference), message)
    return found, reference


def target_or_batch(
    given: AdjustedModelIn, model: SourceModel, scores: Scores
) -> tuple[Floats | None, Batch | None, tuple[Warning, ...]]:
    """Stated target priors, or a batch to estimate them from: one of the two."""
    sent = [name for name in COUNTS if getattr(given, name) is not None]
    if (given.target_priors is None) == (not sent):
        raise InvalidInput.at("", "needs target_priors or a batch, one of the two")
    if given.target_priors is None:
        return None, batch(given, model, scores), ()
    leave_out(given, ("method", "options", "labels", "columns"), "is of a batch, not of priors")
    target, said = stated_priors(given.target_priors, model.classes, "/target_priors")
    return target, None, said


def leave_out(given: BaseModel, names: Sequence[str], why: str, at: str = "") -> None:
    """``InvalidInput`` for what was given other than its default, and would say nothing."""
    for name in names:
        value = getattr(given, name)
        default = type(given).model_fields[name].get_default(call_default_factory=True)
        if isinstance(value, BaseModel):
            leave_out(value, list(type(value).model_fields), why, f"{at}/{name}")
        elif value != default:
            raise InvalidInput.at(f"{at}/{name}", f"{why}; leave it out")
