"""Frames of any library, by the protocols that they share; none of the libraries is imported."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift_client import arrow, interchange
from priorshift_client.memory import Column, Unreadable, objects
from priorshift_client.rows import cell

NUMERIC = "fiu"
Names = tuple[str, ...] | None


@dataclass(frozen=True)
class Table:
    """Columns of equal length: numbers, or objects. No names where there are none."""

    columns: tuple[Column, ...]
    names: Names = None

    @property
    def numeric(self) -> bool:
        """Whether every column holds numbers."""
        return not self.texts

    @property
    def texts(self) -> list[str]:
        """The columns that hold something else."""
        names = self.names or map(str, range(len(self.columns)))
        pairs = zip(names, self.columns, strict=True)
        return [name for name, column in pairs if column.dtype.kind not in NUMERIC]

    def with_names(self, names: Iterable[str] | None) -> "Table":
        """Only the columns of these names; where columns have none, these become their names."""
        new = names_of(names)
        if new is None or self.names is None:
            return replace(self, names=new or self.names)
        missing = [name for name in new if name not in self.names]
        if missing:
            raise ValueError(f"the frame has no column {', '.join(missing[:5])}")
        return Table(tuple(self.columns[self.names.index(name)] for name in new), new)

    @property
    def matrix(self) -> NDArray[Any]:
        """Rows × columns."""
        return np.column_stack(self.columns)


def names_of(columns: Iterable[str] | None) -> Names:
    """Names as text."""
    return None if columns is None else tuple(map(str, columns))


def table(value: Any) -> Table | None:
    """What a frame holds; None for what is no frame."""
    for look in _readers(value):
        try:
            return look(value)
        except (Unreadable, ImportError):
            continue
    return None


def _readers(value: Any) -> Iterator[Callable[[Any], Table]]:
    """The ways to read it, plainest first."""
    if isinstance(value, Mapping):
        yield _of_mapping
    elif not isinstance(value, np.ndarray | list | tuple):
        if hasattr(value, "__array__") and _names(value) is not None:
            yield _of_array
        if hasattr(value, "__arrow_c_stream__"):
            yield _of_arrow
        if hasattr(value, "__dataframe__"):
            yield _of_interchange


def _of_mapping(value: Mapping[Any, Any]) -> Table:
    if not value or any(np.ndim(column) != 1 for column in value.values()):
        raise Unreadable
    columns = tuple(column_of(column) for column in value.values())
    if len(set(map(len, columns))) > 1:
        lengths = {str(name): len(column) for name, column in zip(value, columns, strict=True)}
        raise ValueError(f"the columns differ in length: {lengths}")
    return Table(columns, tuple(map(str, value)))


def _of_array(value: Any) -> Table:
    cells, names = np.asarray(value), _names(value)
    if cells.ndim != 2 or names is None or len(names) != cells.shape[1]:
        raise Unreadable
    positions = list(range(len(names)))
    columns = tuple(column_of(cells[:, j]) for j in positions)
    return Table(columns, None if names == positions else tuple(map(str, names)))


def _of_arrow(value: Any) -> Table:
    names, columns = arrow.columns(value)
    return Table(tuple(column_of(column) for column in columns), names)


def _of_interchange(value: Any) -> Table:
    names, columns = interchange.columns(value.__dataframe__())
    return Table(tuple(columns), names)


def _names(value: Any) -> list[Any] | None:
    """Column names as pandas and polars, or as Arrow, call them."""
    for attribute in ("column_names", "columns"):
        names = getattr(value, attribute, None)
        if names is not None and not callable(names):
            names = list(names)
            if all(isinstance(name, str | int | np.integer) for name in names):
                return names
    return None


def column_of(values: Any) -> Column:
    """Numbers as they are; other cells as objects, unless all are numbers or missing."""
    column = np.asarray(values) if hasattr(values, "__array__") else objects(list(values))
    if column.dtype.kind in NUMERIC:
        return column
    cells = [cell(value) for value in column.tolist()]
    return np.array(cells, dtype=np.float64) if all(map(_number, cells)) else objects(cells)


def _number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
