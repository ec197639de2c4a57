"""A batch from whatever the caller has: arrays, frames, labels, counts, features."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from priorshift_client.rows import cell, cells, labels, matrix
from priorshift_client.tables import Names, Table, names_of, table

Field = Literal["posteriors", "predictions", "predicted_counts", "features"]


@dataclass(frozen=True)
class Features:
    """Rows of features, to be scored or matched: a frame, an array or lists.

    None and NaN are missing values. ``columns`` names the columns of an array, and chooses those of
    a frame.
    """

    rows: Any
    columns: Iterable[str] | None = None


@dataclass(frozen=True)
class Batch:
    """One field of a request: an array of posteriors, or something for JSON."""

    field: Field
    content: Any
    columns: Names = None


def batch_of(value: Any, columns: Iterable[str] | None = None) -> Batch:
    """The batch that a value stands for.

    Two dimensions are posteriors, one dimension is predicted labels, a mapping of numbers is
    counts of predicted labels. ``columns`` names the columns of an array, and chooses those of a
    frame.
    """
    if isinstance(value, Features):
        chosen = value.columns if columns is None else columns
        return Batch("features", *named_cells(value.rows, chosen))
    frame = table(value)
    if frame is not None:
        return _of_table(frame.with_names(columns))
    names = names_of(columns)
    if isinstance(value, Mapping):
        counts = {str(name): cell(count) for name, count in value.items()}
        return Batch("predicted_counts", counts, names)
    held = _held(value)
    if _two_dimensional(held):
        return Batch("posteriors", matrix(held, "/posteriors"), names)
    return Batch("predictions", labels(held), names)


def named_matrix(
    value: Any, at: str, columns: Iterable[str] | None = None
) -> tuple[NDArray[Any], Names]:
    """Rows of numbers and the names of their columns, where they have some."""
    frame = table(value)
    if frame is None:
        return matrix(_held(value), at), names_of(columns)
    chosen = frame.with_names(columns)
    return _numbers(chosen), chosen.names


def named_cells(value: Any, columns: Iterable[str] | None = None) -> tuple[list[list[Any]], Names]:
    """Rows of numbers, strings and None, and the names of their columns."""
    frame = table(value)
    if frame is None:
        return cells(_held(value)), names_of(columns)
    chosen = frame.with_names(columns)
    parts = [cells(column) for column in chosen.columns]
    return [list(row) for row in zip(*parts, strict=True)], chosen.names


def _of_table(frame: Table) -> Batch:
    """Posteriors by class; or labels: one column that is text, or that has no name."""
    if len(frame.columns) == 1 and (frame.names is None or not frame.numeric):
        return Batch("predictions", labels(frame.columns[0]))
    return Batch("posteriors", _numbers(frame), frame.names)


def _numbers(frame: Table) -> NDArray[Any]:
    if not frame.numeric:
        raise TypeError(
            f"posteriors are numbers, but {', '.join(frame.texts[:5])} holds something else: "
            "choose the columns of the classes, or wrap rows of features in Features(…)"
        )
    return frame.matrix


def _held(value: Any) -> NDArray[Any] | list[Any]:
    """As an array or a list."""
    if isinstance(value, np.ndarray | list):
        return value
    if hasattr(value, "__array__"):
        return np.asarray(value)
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"a batch is rows, labels or counts, not {type(value).__name__}")
    return list(value)


def _two_dimensional(value: NDArray[Any] | list[Any]) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim != 1
    return any(isinstance(row, list | tuple | np.ndarray) for row in value)
