"""Rows of features: numbers, and levels of categorical columns, as a table of the core."""

from collections.abc import Sequence

import numpy as np

from app.core.arrays import Floats
from app.core.errors import Faults, InvalidInput
from app.core.json_types import JsonValue
from app.core.learners.columns import LARGEST, MISSING, UNKNOWN, Level
from app.core.spelling import exact, find, learn
from app.formats.frame import NULL, Cells, CodedCells, Frame
from app.formats.json import NUMBERS, column_order, named_lists, numbers, refused, shown

LONGEST_LEVEL = 200
MOST_COLUMNS = 1000
LEVEL = f"must be a string of at most {LONGEST_LEVEL} characters, or a number of at most 2^53"
Levels = dict[int, dict[Level, int]]
"""Positions of levels, by the position of their column."""


def feature_names(values: object, given: Sequence[str] | None, at: str) -> tuple[str, ...]:
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


def batch(
    values: object, columns: object, names: Sequence[str], levels: Levels, gaps: bool
) -> Floats:
    """The features of a batch in the order of ``names``, N × D.

    ``values``: rows, in the order of ``columns`` where given; or a list by name. ``levels``: of the
    categorical columns, others are unknown. ``gaps``: null is a missing value, else it is refused.
    """
    if isinstance(values, dict) and values:
        if columns is not None:
            raise InvalidInput.at("/columns", "orders rows; lists by name need no order")
        return framed(columnar(values, names, "/features"), names, levels, gaps)
    order = column_order(columns, names, "/columns")
    if order is None:
        return table(values, names, levels, False, gaps, "/features")
    sent = sorted(names, key=dict(zip(names, order, strict=True)).__getitem__)
    there = {order[j]: known for j, known in levels.items()}
    return np.ascontiguousarray(table(values, sent, there, False, gaps, "/features")[:, order])


def columnar(values: dict[str, object], names: Sequence[str], at: str) -> Frame:
    """Lists by name as a table."""
    lists = named_lists(values, names, at)
    return Frame({name: Cells(cells) for name, cells in lists.items()}, len(lists[names[0]]), at)


def framed(frame: Frame, names: Sequence[str], levels: Levels, gaps: bool) -> Floats:
    """The columns of a table as features, N × D; names the cells at fault."""
    numeric = [name for j, name in enumerate(names) if j not in levels]
    found = np.empty((frame.rows, len(names)))
    if numeric:
        places = [j for j in range(len(names)) if j not in levels]
        found[:, places] = _bounded(frame, numeric, gaps)
    for j, known in levels.items():
        found[:, j] = _framed_codes(frame, names[j], known, gaps)
    return found


def _bounded(frame: Frame, names: Sequence[str], gaps: bool) -> Floats:
    numbers = frame.numbers(names, gaps)
    wrong = np.abs(numbers) > LARGEST if gaps else ~(np.abs(numbers) <= LARGEST)
    faults = Faults()
    for row, j in np.argwhere(wrong).tolist():
        message = f"must be a number between -{LARGEST:g} and {LARGEST:g}"
        faults.add(frame.place(names[j], row), message, row)
    faults.raise_if_any()
    return numbers


def _framed_codes(frame: Frame, name: str, known: dict[Level, int], gaps: bool) -> Floats:
    column = frame.column(name)
    coded = column.coded()
    if coded is None:
        message = f"is of type {column.kind[:60]}; levels are text or numbers"
        raise InvalidInput.at(frame.place(name), message)
    wrong = coded.mapped([int(not _takes(level, gaps)) for level in coded.levels])
    faults = Faults()
    for row in np.flatnonzero(wrong == 1 if gaps else wrong != 0).tolist():
        message = _gap(name) if wrong[row] == NULL else f"is {shown(column.cell(row))}, {LEVEL}"
        faults.add(frame.place(name, row), message, row)
    faults.raise_if_any()
    return _positions(coded, known)


def _positions(coded: CodedCells, known: dict[Level, int], learns: bool = False) -> Floats:
    """Cells as positions of levels, new ones added if it ``learns``."""
    if learns:
        places: list[float] = [learn(level, known) for level in coded.levels]
    else:
        found = [MISSING if level != level else find(level, known) for level in coded.levels]
        places = [UNKNOWN if place is None else place for place in found]
    return np.array([*places, MISSING])[coded.codes]


def table(
    values: JsonValue, names: Sequence[str], levels: Levels, learns: bool, gaps: bool, at: str
) -> Floats:
    """Rows of one value per name as an N × D table; names the rows and columns at fault.

    ``learns``: new levels are added to ``levels``, otherwise they are unknown. ``gaps``: null is a
    missing value, otherwise it is refused.
    """
    if isinstance(values, np.ndarray):
        plain = values.shape[1] == len(names) and not levels
        if plain and _fits(values, gaps):
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
    raise refused(values, lambda row, brief: _row_fault(row, names, levels, gaps, brief), at)


def _numbers(cells: list[object], gaps: bool) -> Floats | None:
    """A numeric column; None if something is wrong with it."""
    kinds = set(map(type, cells))
    if gaps and type(None) in kinds:
        cells = [MISSING if cell is None else cell for cell in cells]
    elif not kinds <= NUMBERS:
        return None
    column = numbers(cells)
    return None if column is None or not _fits(column, gaps) else column


def _fits(values: Floats, gaps: bool) -> bool:
    """Whether no number is too large, and none is NaN unless that is a missing value."""
    sizes = np.abs(values)
    return not (sizes > LARGEST).any() if gaps else bool((sizes <= LARGEST).all())


def _codes(cells: list[object], known: dict[Level, int], learns: bool, gaps: bool) -> Floats | None:
    """A categorical column as positions of levels; None if something is wrong with it."""
    coded = CodedCells.of(cells)
    if not all(_takes(level, gaps) for level in coded.levels):
        return None
    if not gaps and (coded.codes == NULL).any():
        return None
    return _positions(coded, known, learns)


def _takes(cell: object, gaps: bool) -> bool:
    """Whether a cell may be a level: text that is not long, an exact number; NaN as null may."""
    if type(cell) is str:
        return len(cell) <= LONGEST_LEVEL
    return type(cell) in NUMBERS and (exact(cell) or (gaps and cell != cell))


def _gap(name: str) -> str:
    known = 'only training with missing "impute" fills missing values'
    return f"column {name[:60]} is null; {known}"


def _row_fault(
    row: object, names: Sequence[str], levels: Levels, gaps: bool, brief: bool
) -> str | None:
    if not isinstance(row, list):
        return f"must be a list of {len(names)} values"
    if len(row) != len(names):
        return f"has {len(row)} values, must have {len(names)}"
    for position, (name, cell) in enumerate(zip(names, row, strict=True)):
        if gaps and (cell is None or cell != cell):
            continue
        column = f"column {name[:60]}"
        if cell is None:
            return _gap(name)
        if position in levels:
            if not _takes(cell, gaps):
                return f"{column} is {'…' if brief else shown(cell)}, {LEVEL}"
        elif type(cell) not in NUMBERS:
            said = "…" if brief else shown(cell)
            return f"{column} is {said}, must be a number; name categorical columns"
        elif not abs(cell) <= LARGEST:
            return f"{column} must be a number between -{LARGEST:g} and {LARGEST:g}"
    return None
