"""Rows, labels and cells as the service takes them; what it could not read is refused here."""

import math
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift_client.errors import Fault, InvalidInput

Numbers = NDArray[Any]
NOT_THERE = ("NAType", "NaTType")
"""What pandas puts where nothing is."""
REAL = (int, float, np.integer, np.floating, Decimal)


def matrix(value: NDArray[Any] | list[Any], at: str) -> Numbers:
    """N × C numbers in their own precision; ``InvalidInput`` names rows that are none."""
    array = value if isinstance(value, np.ndarray) else _of_lists(value, at)
    if array.ndim != 2:
        raise InvalidInput.found([Fault(at, f"has shape {array.shape}; send rows × classes")])
    if array.dtype.kind in "fiu" and array.dtype.itemsize <= 8:
        return array
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    _require_rows(array.tolist(), array.shape[1], at)
    return array.astype(np.float64)


def _of_lists(rows: list[Any], at: str) -> Numbers:
    if not _plain(rows):
        _require_rows(rows, _usual_width(rows), at)
        rows = [list(row) for row in rows]
    return np.array(rows, dtype=np.float64)


def _plain(rows: list[Any]) -> bool:
    """Whether these are lists of equal length of Python's own numbers: told at a glance."""
    if not set(map(type, rows)) <= {list, tuple} or len(set(map(len, rows))) != 1:
        return False
    return set(map(type, chain.from_iterable(rows))) <= {int, float}


def _usual_width(rows: list[Any]) -> int:
    """What most rows have; the first of them where that is a draw."""
    return Counter(_width(row) for row in rows if _width(row) >= 0).most_common(1)[0][0]


def _width(row: Any) -> int:
    return len(row) if isinstance(row, list | tuple | np.ndarray) else -1


def _require_rows(rows: list[Any], width: int, at: str) -> None:
    verdicts = ((row, _fault(cells, width)) for row, cells in enumerate(rows))
    faults = [Fault(f"{at}/{row}", message, row) for row, message in verdicts if message]
    if faults:
        raise InvalidInput.found(faults)


def _fault(row: Any, width: int) -> str | None:
    if _width(row) < 0:
        return f"must be a row of {width} numbers"
    if len(row) != width:
        return f"has {len(row)} values, must have {width}"
    for position, value in enumerate(row):
        if isinstance(value, bool) or not isinstance(value, REAL):
            return f"value {position} is {str(value)[:60]!r}, must be a number"
    return None


def listed(array: Numbers, at: str) -> list[list[float]]:
    """The rows for JSON, which has no NaN: ``InvalidInput`` names rows that are not finite."""
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        message = "holds a value that is not finite"
        wrong = np.flatnonzero(~finite).tolist()
        raise InvalidInput.found([Fault(f"{at}/{row}", message, row) for row in wrong])
    rows: list[list[float]] = array.tolist()
    return rows


def labels(value: Any) -> list[Any]:
    """Labels as Python has them; NaN, as frames have it, is None."""
    held = value if hasattr(value, "__array__") else list(value)
    items = np.asarray(held).tolist() if hasattr(held, "__array__") else held
    return [cell(item) for item in items]


def moments(value: Any) -> Any:
    """A time, or a list of them, as JSON takes them; NumPy's are in UTC."""
    if not hasattr(value, "__array__"):
        several = isinstance(value, Iterable) and not isinstance(value, str)
        return [_moment(item) for item in value] if several else value
    array = np.asarray(value)
    if array.dtype.kind != "M":
        return [cell(item) for item in array.tolist()]
    texts = np.asarray(np.datetime_as_string(array.astype("datetime64[us]"), timezone="UTC"))
    spellings = texts.astype(object)
    spellings[np.isnat(array)] = None
    return spellings.tolist()


def _moment(item: Any) -> Any:
    return moments(item) if isinstance(item, np.datetime64) else cell(item)


def cells(value: NDArray[Any] | Iterable[Any]) -> list[Any]:
    """The same for rows of them."""
    items = value.tolist() if isinstance(value, np.ndarray) else list(value)
    return [
        cells(row) if isinstance(row, list | tuple | np.ndarray) else cell(row) for row in items
    ]


def cell(value: Any) -> Any:
    """A value for JSON; None for what is missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal):
        value = float(value)
    absent = isinstance(value, float) and math.isnan(value)
    return None if absent or type(value).__name__ in NOT_THERE else value
