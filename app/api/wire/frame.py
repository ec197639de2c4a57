"""A table of named columns, as CSV, NDJSON, Arrow and Parquet bring it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.errors import Faults, InvalidInput, pointer
from app.core.lazy import cached_property
from app.core.names import Spellings
from app.core.prevalence.arrays import Codes, Floats
from app.core.sheets import Header


@dataclass(frozen=True)
class Column:
    """Numbers (N float64), or text as ``codes`` (N, -1 for null) into ``levels``.

    ``nulls``: rows of numbers that are missing. ``times``: N microseconds since 1970 instead, the
    smallest number there is for null.
    """

    numbers: Floats | None = None
    nulls: Codes | None = None
    levels: tuple[str, ...] = ()
    codes: Codes | None = None
    times: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Frame:
    """N ``rows`` of columns by name, in order.

    ``cells``: the names are cells of CSV, in which formulas have an apostrophe before them.
    """

    columns: dict[str, Column]
    rows: int
    cells: bool = False

    def find(self, name: str) -> Column | None:
        """The column of this name, however it is spelled; None if there is none."""
        called = self._header.find(name)
        return None if called is None else self.columns[called]

    def has(self, names: Sequence[str]) -> bool:
        """Whether there is a column of each name."""
        return all(self.find(name) is not None for name in names)

    @cached_property
    def _header(self) -> Header:
        return Header(self.columns, self.cells)

    def numbers(self, names: Sequence[str]) -> Floats:
        """Columns of numbers side by side, N × D; names the rows without one."""
        faults = Faults()
        found = []
        for name in names:
            column = self._column(name)
            if column.numbers is None:
                faults.add(pointer(name), "must be a column of numbers")
                continue
            for row in () if column.nulls is None else column.nulls:
                faults.add(
                    pointer(name, int(row)), "is missing; every row needs a number", int(row)
                )
            found.append(column.numbers)
        faults.raise_if_any()
        return np.column_stack(found)

    def text(self, name: str, at: str) -> Column:
        """The column of text ``name``, which ``at`` asks for."""
        column = self.find(name)
        if column is None:
            raise InvalidInput.at(at, f"there is no column {name[:80]!r} in the body")
        if column.codes is None:
            raise InvalidInput.at(at, f"column {name[:80]!r} must hold text; labels are strings")
        return column

    def labels(self, name: str, names: Sequence[str], at: str, partial: bool = False) -> Codes:
        """A column of labels as positions in ``names``; ``partial``: null is allowed, and is -1."""
        column = self.text(name, at)
        assert column.codes is not None
        known = Spellings(names)
        places = map(known.find, column.levels)
        place = np.array([-2 if k is None else k for k in places] + [-1], np.intp)
        found = place[column.codes]
        wrong = found == -2 if partial else found < 0
        faults = Faults()
        for row in np.flatnonzero(wrong):
            code = column.codes[row]
            shown = "null" if code < 0 else repr(column.levels[code][:60])
            faults.add(pointer(name, int(row)), f"{shown} is not a label of the model", int(row))
        faults.raise_if_any()
        return found

    def lists(self, names: Sequence[str]) -> list[list[Any]]:
        """Rows of cells as JSON would bring them, for mixed columns."""
        cells = [_cells(self._column(name)) for name in names]
        return [list(row) for row in zip(*cells, strict=True)]

    def part(self, rows: Codes) -> "Frame":
        """Some of the rows."""
        parts = {name: _part(c, rows) for name, c in self.columns.items()}
        return Frame(parts, len(rows), self.cells)

    def _column(self, name: str) -> Column:
        column = self.find(name)
        assert column is not None
        return column


def _cells(column: Column) -> list[Any]:
    if column.codes is not None:
        names = [*column.levels, None]
        return [names[code] for code in column.codes]
    if column.numbers is None:
        raise InvalidInput.at("", "a column of times cannot be a feature; send numbers or text")
    cells: list[Any] = column.numbers.tolist()
    for row in () if column.nulls is None else column.nulls:
        cells[row] = None
    return cells


def _part(column: Column, rows: Codes) -> Column:
    if column.codes is not None:
        return Column(levels=column.levels, codes=column.codes[rows])
    if column.times is not None:
        return Column(times=column.times[rows])
    assert column.numbers is not None
    nulls = None
    if column.nulls is not None:
        nulls = np.flatnonzero(np.isin(rows, column.nulls))
    return Column(column.numbers[rows], nulls)
