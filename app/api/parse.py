"""From decoded JSON or NPY to the values that the core takes."""

from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel

from app.api.schemas import BatchIn, SourceIn, ValidationIn
from app.api.wire import json
from app.core.errors import Fault, InvalidInput
from app.core.prevalence.arrays import Floats, probabilities, probability_rows
from app.core.prevalence.confusion import ConfusionMatrix
from app.core.prevalence.source import Source, SourceModel, ValidationSet
from app.core.warnings import Warning
from app.estimation import Batch, OutputBatch, PosteriorBatch

M = TypeVar("M", bound=BaseModel)
COUNTS = ("posteriors", "predictions", "predicted_counts")
LARGEST_COUNT = 2.0**53


def envelope(shape: type[M], content: dict[str, Any], text: bool = False) -> M:
    """Check an envelope; ``text``: its scalars are strings from a query."""
    return shape.model_validate(content, strict=not text)


def classes(names: list[str], limit: int) -> tuple[str, ...]:
    """Class names: unique, not too many."""
    if len(names) > limit:
        raise InvalidInput.at("/classes", f"has {len(names)} classes, at most {limit} are allowed")
    return _unique(names, "/classes")


def _unique(names: list[str], pointer: str) -> tuple[str, ...]:
    seen: set[str] = set()
    faults = []
    for position, name in enumerate(names):
        if name in seen:
            faults.append(Fault(f"{pointer}/{position}", f"repeats {name}"))
        seen.add(name)
    if faults:
        raise InvalidInput(faults[:20], len(faults))
    return tuple(names)


def source(given: SourceIn, names: tuple[str, ...]) -> Source:
    """A checked source of a model with these classes."""
    at = "/source"
    if given.class_counts is not None and given.priors is not None:
        raise InvalidInput.at(f"{at}/priors", "stands for class_counts; give one of the two")
    if given.outputs is not None and given.confusion_matrix is None:
        raise InvalidInput.at(
            f"{at}/outputs", "names columns of confusion_matrix, which is missing"
        )
    class_counts = None
    if given.class_counts is not None:
        class_counts = json.named_numbers(given.class_counts, names, f"{at}/class_counts", True)
        _require_positive(class_counts, names, f"{at}/class_counts")
    priors = None
    if given.priors is not None:
        values = json.named_numbers(given.priors, names, f"{at}/priors", True)
        _require_positive(values, names, f"{at}/priors")
        priors = probabilities(values, f"{at}/priors").values
    outputs = names if given.outputs is None else _unique(given.outputs, f"{at}/outputs")
    confusion = None
    if given.confusion_matrix is not None:
        confusion = _confusion(given.confusion_matrix, names, outputs)
    validation = None
    if given.validation is not None:
        validation = _validation(given.validation, names)
    return Source(
        classes=names,
        class_counts=class_counts,
        priors=priors,
        confusion=confusion,
        outputs=outputs if confusion is not None else (),
        validation=validation,
        calibration=given.calibration,
    )


def _require_positive(values: Floats, names: tuple[str, ...], pointer: str) -> None:
    faults = [
        Fault(f"{pointer}/{names[k]}", "must be positive; leave out a class that the source lacks")
        for k in np.flatnonzero(values <= 0)
    ]
    if faults:
        raise InvalidInput(faults[:20], len(faults))


def _confusion(values: Any, names: tuple[str, ...], outputs: tuple[str, ...]) -> ConfusionMatrix:
    pointer = "/source/confusion_matrix"
    counts = json.matrix(values, len(outputs), pointer)
    if len(counts) != len(names):
        message = f"has {len(counts)} rows; it needs one per actual class, {len(names)}"
        raise InvalidInput.at(pointer, message)
    messages = [_cells_fault(cells, name) for cells, name in zip(counts, names, strict=True)]
    faults = [
        Fault(f"{pointer}/{row}", message, row)
        for row, message in enumerate(messages)
        if message is not None
    ]
    if faults:
        raise InvalidInput(faults[:20], len(faults))
    return ConfusionMatrix(counts)


def _cells_fault(cells: Floats, name: str) -> str | None:
    if not (np.isfinite(cells).all() and (cells >= 0).all() and cells.max() <= LARGEST_COUNT):
        return "must hold finite counts that are not negative"
    if (cells != np.floor(cells)).any():
        return "must hold counts of rows, not rates"
    if cells.sum() == 0:
        return f"is empty; class {name} needs at least one labelled row"
    return None


def _validation(given: ValidationIn, names: tuple[str, ...]) -> ValidationSet:
    at = "/source/validation"
    labels = json.codes(given.labels, names, f"{at}/labels")
    order = json.column_order(given.columns, names, f"{at}/columns")
    values = json.matrix(given.posteriors, len(names), f"{at}/posteriors")
    if len(values) != len(labels):
        message = f"has {len(values)} rows for {len(labels)} labels"
        raise InvalidInput.at(f"{at}/posteriors", message)
    rows = probability_rows(values, f"{at}/posteriors").values
    return ValidationSet(labels, _ordered(rows, order))


def _ordered(rows: Floats, order: list[int] | None) -> Floats:
    return rows if order is None else np.ascontiguousarray(rows[:, order])


def batch(given: BatchIn, model: SourceModel) -> Batch:
    """The batch of an envelope, in the order of the model's classes or outputs."""
    named = [name for name in COUNTS if getattr(given, name) is not None]
    if len(named) != 1:
        found = " and ".join(named) or "none of them"
        message = f"needs exactly one of posteriors, predictions and predicted_counts, has {found}"
        raise InvalidInput.at("", f"the batch {message}")
    if given.posteriors is not None:
        return _posteriors(given, model)
    if given.columns is not None:
        raise InvalidInput.at("/columns", f"orders posteriors; {named[0]} has no columns")
    if given.predictions is not None:
        codes = json.codes(given.predictions, model.outputs, "/predictions")
        counts = np.bincount(codes, minlength=len(model.outputs)).astype(np.float64)
        return OutputBatch(counts, codes)
    counts = json.named_numbers(
        given.predicted_counts, model.outputs, "/predicted_counts", complete=False
    )
    faults = [
        Fault(f"/predicted_counts/{model.outputs[j]}", "must be a whole number of rows")
        for j in np.flatnonzero((counts != np.floor(counts)) | (counts > LARGEST_COUNT))
    ]
    if faults:
        raise InvalidInput(faults[:20], len(faults))
    if counts.sum() == 0:
        raise InvalidInput.at("/predicted_counts", "counts no rows; send at least one")
    return OutputBatch(counts)


def _posteriors(given: BatchIn, model: SourceModel) -> PosteriorBatch:
    order = json.column_order(given.columns, model.classes, "/columns")
    values = given.posteriors
    if isinstance(values, np.ndarray):
        if values.shape[1] != len(model.classes):
            message = f"has {values.shape[1]} columns; the model has {len(model.classes)} classes"
            raise InvalidInput.at("/posteriors", message)
    else:
        values = json.matrix(values, len(model.classes), "/posteriors")
    rows = probability_rows(values, "/posteriors")
    return PosteriorBatch(_ordered(rows.values, order), rows.renormalised)


def target_priors(
    given: Any, names: tuple[str, ...], text: bool = False
) -> tuple[Floats | None, tuple[Warning, ...]]:
    """Stated target priors, in order, and what was done to them; ``text``: from a query."""
    if given is None:
        return None, ()
    if text and isinstance(given, dict):
        given = {name: _number(value) for name, value in given.items()}
    values = json.named_numbers(given, names, "/target_priors", complete=True)
    rows = probabilities(values, "/target_priors")
    if not rows.renormalised:
        return rows.values, ()
    message = "the target priors did not sum to 1 within 1e-6 and were rescaled"
    return rows.values, (Warning("renormalised-priors", message),)


def _number(value: Any) -> Any:
    """A number of a query; anything else is left for the check."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return value
