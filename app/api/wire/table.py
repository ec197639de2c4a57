"""Rows of features: numbers, and levels of categorical columns, as a table of the core."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.api.wire.json import NUMBERS, shown
from app.core.errors import Faults, InvalidInput
from app.core.learners.columns import LARGEST, MISSING, UNKNOWN, Level
from app.core.names import composed
from app.core.prevalence.arrays import Floats

LONGEST_LEVEL = 200
MOST_COLUMNS = 1000
Levels = dict[int, dict[Level, int]]
"""Positions of levels, by the position of their column."""


def feature_names(values: Any, given: Sequence[str] | None, at: str) -> tuple[str, ...]:
    """The names ``given``, or x0, x1, … for as many columns as the first row of ``values`` has.

    ``at``: the object in which ``features`` and ``feature_names`` stand.
    """
    first = values[0] if isinstance(values, list | np.ndarray) and len(values) else None
    width = len(first) if isinstance(first, list | np.ndarray) else 1
    if width == 0:
        raise InvalidInput.at(f"{at}/features", "has no columns; send at least one")
    if width > MOST_COLUMNS:
        message = f"has {width} columns, at most {MOST_COLUMNS} are allowed"
        raise InvalidInput.at(f"{at}/features", message)
    if given is None:
        return tuple(f"x{j}" for j in range(width))
    return unique(given, f"{at}/feature_names")


def unique(names: Sequence[str], at: str) -> tuple[str, ...]:
    """Names, none of them twice."""
    seen: set[str] = set()
    faults = Faults()
    for position, name in enumerate(names):
        if name in seen:
            faults.add(f"{at}/{position}", f"repeats {shown(name)}")
        seen.add(name)
    faults.raise_if_any()
    return tuple(names)


def table(
    values: Any, names: Sequence[str], levels: Levels, learns: bool, gaps: bool, at: str
) -> Floats:
    """Rows of one value per name as an N × D table; names the rows and columns at fault.

    ``learns``: new levels are added to ``levels``, otherwise they are unknown. ``gaps``: null is a
    missing value, otherwise it is refused.
    """
    if isinstance(values, np.ndarray):
        if values.shape[1] == len(names) and not levels and not (np.abs(values) > LARGEST).any():
            return np.asarray(values, np.float64)
        values = values.tolist()
    if not isinstance(values, list):
        raise InvalidInput.at(at, "must be a list of rows")
    if not values:
        raise InvalidInput.at(at, "holds no rows; send at least one")
    if set(map(type, values)) == {list} and set(map(len, values)) == {len(names)}:
        columns = []
        for j in range(len(names)):
            cells = [row[j] for row in values]
            known = levels.get(j)
            columns.append(
                _numbers(cells, gaps) if known is None else _codes(cells, known, learns, gaps)
            )
        found = [column for column in columns if column is not None]
        if len(found) == len(names):
            return np.column_stack(found)
    faults = Faults()
    for row, cells in enumerate(values):
        message = _row_fault(cells, names, levels, gaps)
        if message is not None:
            faults.add(f"{at}/{row}", message, row)
    faults.raise_if_any()
    raise AssertionError("a row at fault was not found")


def _numbers(cells: list[Any], gaps: bool) -> Floats | None:
    """A numeric column; None if something is wrong with it."""
    kinds = set(map(type, cells))
    if gaps and type(None) in kinds:
        cells = [MISSING if cell is None else cell for cell in cells]
    elif not kinds <= NUMBERS:
        return None
    if not set(map(type, cells)) <= NUMBERS:
        return None
    try:
        column = np.array(cells, dtype=np.float64)
    except OverflowError:
        return None
    return None if (np.abs(column) > LARGEST).any() else column


def _codes(cells: list[Any], known: dict[Level, int], learns: bool, gaps: bool) -> Floats | None:
    """A categorical column as positions of levels; None if something is wrong with it."""
    if any(_level_fault(cell, gaps) for cell in _distinct(cells)):
        return None
    column = np.empty(len(cells))
    for i, cell in enumerate(cells):
        if cell is None:
            column[i] = MISSING
        elif learns:
            column[i] = known.setdefault(_level(cell), len(known))
        else:
            column[i] = known.get(cell, known.get(_level(cell), UNKNOWN))
    return column


def _distinct(cells: list[Any]) -> list[Any]:
    """One of each kind and value; all of them where some cannot be compared."""
    try:
        return [value for _, value in {(type(cell), cell) for cell in cells}]
    except TypeError:
        return cells


def _level(cell: str | float) -> Level:
    """1 and 1.0 are one level, "1" another; text in normal form C."""
    return composed(cell) if isinstance(cell, str) else float(cell)


def _level_fault(cell: Any, gaps: bool) -> str | None:
    if cell is None:
        return None if gaps else "must not be null"
    if type(cell) is str and len(cell) <= LONGEST_LEVEL:
        return None
    if type(cell) in NUMBERS and abs(cell) <= LARGEST:
        return None
    return f"must be a string of at most {LONGEST_LEVEL} characters, or a number"


def _row_fault(row: Any, names: Sequence[str], levels: Levels, gaps: bool) -> str | None:
    if not isinstance(row, list):
        return f"must be a list of {len(names)} values"
    if len(row) != len(names):
        return f"has {len(row)} values, must have {len(names)}"
    for position, (name, cell) in enumerate(zip(names, row, strict=True)):
        if cell is None and gaps:
            continue
        column = f"column {name[:60]}"
        if cell is None:
            return f'{column} is null; only training with missing "impute" fills missing values'
        if position in levels:
            fault = _level_fault(cell, gaps)
            if fault is not None:
                return f"{column} is {shown(cell)}, {fault}"
        elif type(cell) not in NUMBERS:
            return f"{column} is {shown(cell)}, must be a number; name categorical columns"
        elif not abs(cell) <= LARGEST:
            return f"{column} must be a number between -{LARGEST:g} and {LARGEST:g}"
    return None
