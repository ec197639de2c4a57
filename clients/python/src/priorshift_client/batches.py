"""A batch from whatever the caller has: arrays, frames, labels, counts, features."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from priorshift_client.rows import cells, labels, matrix
from priorshift_client.tables import NUMERIC, Table, table

Field = Literal["posteriors", "predictions", "predicted_counts", "features"]


@dataclass(frozen=True)
class Features:
    """Rows of features for a version trained in the service: a frame, an array or lists.

    None and NaN are missing values. ``columns`` names them where the frame does not.
    """

    rows: Any
    columns: Iterable[str] | None = None


@dataclass(frozen=True)
class Batch:
    """One field of a request: an array of posteriors, or something for JSON."""

    field: Field
    content: Any
    columns: tuple[str, ...] | None = None


def batch_of(value: Any, columns: Iterable[str] | None = None) -> Batch:
    """The batch that a value stands for. ``columns`` names those of an array without names.

    Two dimensions are posteriors, one dimension is predicted labels, a mapping of numbers is
    counts of predicted labels.
    """
    named = None if columns is None else tuple(map(str, columns))
    if isinstance(value, Features):
        return _features(value, named)
    found = table(value)
    if found is not None:
        return _of_table(found, named)
    if isinstance(value, Mapping):
        counts = {str(name): _scalar(count) for name, count in value.items()}
        return Batch("predicted_counts", counts, named)
    if isinstance(value, str | bytes) or not (
        hasattr(value, "__array__") or isinstance(value, Iterable)
    ):
        raise TypeError(f"a batch is rows, labels or counts, not {type(value).__name__}")
    held = value if isinstance(value, np.ndarray | list) else _listed(value)
    if _two_dimensional(held):
        return Batch("posteriors", matrix(held, "/posteriors"), named)
    return Batch("predictions", labels(held), named)


def named_matrix(value: Any, at: str) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """Rows of numbers and the names of their columns, where they have some."""
    found = table(value)
    if found is None:
        return matrix(value if isinstance(value, np.ndarray | list) else _listed(value), at), None
    return _numbers(found), found.names


def named_cells(value: Any) -> tuple[list[list[Any]], tuple[str, ...] | None]:
    """Rows of numbers, strings and None, and the names of their columns."""
    found = table(value)
    if found is None:
        return cells(value if isinstance(value, np.ndarray | list) else _listed(value)), None
    parts = [cells(column) for column in found.columns]
    return [list(row) for row in zip(*parts, strict=True)], found.names


def _of_table(found: Table, named: tuple[str, ...] | None) -> Batch:
    """A frame: posteriors by class, or one column of labels."""
    if len(found.columns) == 1 and found.columns[0].dtype.kind not in NUMERIC:
        return Batch("predictions", labels(found.columns[0]), named)
    return Batch("posteriors", _numbers(found), named or found.names)


def _numbers(found: Table) -> NDArray[Any]:
    if not found.numeric:
        names = found.names or tuple(map(str, range(len(found.columns))))
        wrong = [
            n for n, c in zip(names, found.columns, strict=True) if c.dtype.kind not in NUMERIC
        ]
        raise TypeError(
            f"posteriors are numbers, but {', '.join(wrong[:5])} holds something else: choose "
            "the columns of the classes, or wrap rows of features in Features(…)"
        )
    return found.matrix


def _features(value: Features, named: tuple[str, ...] | None) -> Batch:
    rows, names = named_cells(value.rows)
    columns = named or (tuple(map(str, value.columns)) if value.columns is not None else names)
    return Batch("features", rows, columns)


def _listed(value: Any) -> NDArray[Any] | list[Any]:
    return np.asarray(value) if hasattr(value, "__array__") else list(value)


def _two_dimensional(value: NDArray[Any] | list[Any]) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim != 1
    return any(isinstance(row, list | tuple | np.ndarray) for row in value)


def _scalar(count: Any) -> Any:
    return count.item() if isinstance(count, np.generic) else count
