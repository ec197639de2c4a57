"""A table of named columns, as CSV, NDJSON, Arrow and Parquet bring it.

A column is looked at only where it is used, and converted by the use that it is put to: as numbers,
as names, as times. What another use would make of it nobody asks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Codes, Floats
from app.core.errors import Faults, InvalidInput, pointer
from app.core.json_types import JsonList, JsonValue
from app.core.lazy import cached_property
from app.core.names import Spellings
from app.core.sheets import Header
from app.core.spelling import exact, find, spelled
from app.formats.json import shown

LARGEST_INTEGER = 2**1000
NULL, UNKNOWN = -1, -2
"""Codes of a cell without a value, and of one that is no known name."""
NO_ROWS: Codes = np.empty(0, np.intp)


@dataclass(frozen=True)
class Numbers:
    """N numbers, NaN where they are ``missing`` or ``wrong``: rows of nulls, of anything else."""

    values: Floats
    missing: Codes
    wrong: Codes


@dataclass(frozen=True)
class CodedCells:
    """N cells as ``codes`` into ``levels``, whatever these are; ``NULL`` where there is none."""

    levels: tuple[JsonValue, ...]
    codes: Codes

    @classmethod
    def of(cls, cells: Sequence[JsonValue]) -> "CodedCells":
        """1, 1.0, true and "1" are four levels; what cannot be compared is a level each time."""
        keys = [_key(row, cell) for row, cell in enumerate(cells)]
        first = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
        first.pop(None, None)
        order = sorted(first, key=first.__getitem__)
        places = {None: NULL, **{key: place for place, key in enumerate(order)}}
        codes = np.fromiter(map(places.__getitem__, keys), np.intp, len(keys))
        return cls(tuple(cells[first[key]] for key in order), codes)

    def mapped(self, places: Sequence[int], null: int = NULL) -> Codes:
        """Each level's place instead of its code."""
        return np.array([*places, null], np.intp)[self.codes]

    def places(self, known: Mapping[JsonValue, int]) -> Codes:
        """The names that the cells stand for, ``UNKNOWN`` for none of them."""
        found = [find(x, known) if named(x) else None for x in self.levels]
        return self.mapped([UNKNOWN if place is None else place for place in found])


def named(cell: object) -> bool:
    """Whether a cell may be a name: text, a number that is exact, a truth value."""
    return isinstance(cell, str | int | float | bool) and exact(cell)


def _key(row: int, cell: object) -> object:
    if cell is None or type(cell) is str:
        return cell
    return (list, row) if isinstance(cell, list | dict) else (type(cell), cell)


def _is_number(cell: object) -> bool:
    return type(cell) is float or (type(cell) is int and abs(cell) <= LARGEST_INTEGER)


class Column(Protocol):
    """Cells of one name, not looked at yet."""

    @property
    def kind(self) -> str:
        """What it holds, in a word."""

    def cell(self, row: int) -> object:
        """One of them."""

    def numbers(self) -> Numbers | None:
        """As numbers; None for a column that holds none."""

    def coded(self) -> CodedCells | None:
        """As names; None for what is never one."""

    def times(self) -> NDArray[np.int64] | None:
        """As microseconds since 1970, the smallest number for null; None for what is no time."""

    def part(self, rows: Codes) -> "Column":
        """Some of them."""


@dataclass(frozen=True)
class Cells:
    """A column of JSON: a list, or an array where all are numbers."""

    values: JsonList | Floats

    @property
    def kind(self) -> str:
        """Numbers or cells."""
        return "numbers" if isinstance(self.values, np.ndarray) else "cells"

    def cell(self, row: int) -> object:
        """One of them."""
        value = self.values[row]
        return value.item() if isinstance(value, np.generic) else value

    def numbers(self) -> Numbers | None:
        """Numbers of JSON."""
        values = self.values
        if isinstance(values, np.ndarray):
            return Numbers(values, NO_ROWS, NO_ROWS)
        if set(map(type, values)) == {str}:
            return None
        found = np.array([x if _is_number(x) else np.nan for x in values], np.float64)
        empty = [row for row, cell in enumerate(values) if cell is None]
        odd = [row for row, x in enumerate(values) if x is not None and not _is_number(x)]
        return Numbers(found, np.array(empty, np.intp), np.array(odd, np.intp))

    def coded(self) -> CodedCells:
        """Distinct cells."""
        values = self.values
        return CodedCells.of(values.tolist() if isinstance(values, np.ndarray) else values)

    def times(self) -> None:
        """JSON has none: they are text."""

    def part(self, rows: Codes) -> "Cells":
        """Some of them."""
        values = self.values
        return Cells(values[rows] if isinstance(values, np.ndarray) else [values[k] for k in rows])


@dataclass(frozen=True)
class Frame:
    """N ``rows`` of columns by name, in order; ``at``: the pointer that they stand at.

    ``cells``: the names are cells of CSV, in which formulas have an apostrophe before them.
    """

    columns: Mapping[str, Column]
    rows: int
    at: str = ""
    cells: bool = False

    def find(self, name: str) -> Column | None:
        """The column of this name, however it is spelled; None if there is none."""
        called = self._header.find(name)
        return None if called is None else self.columns[called]

    def column(self, name: str) -> Column:
        """The column of this name, where a caller made sure that there is one."""
        column = self.find(name)
        assert column is not None
        return column

    def has(self, names: Sequence[str]) -> bool:
        """Whether there is a column of each name."""
        return all(self.find(name) is not None for name in names)

    @cached_property
    def _header(self) -> Header:
        return Header(self.columns, self.cells)

    def part(self, rows: Codes) -> "Frame":
        """Some of the rows."""
        parts = {name: column.part(rows) for name, column in self.columns.items()}
        return Frame(parts, len(rows), self.at, self.cells)

    def numbers(self, names: Sequence[str], gaps: bool = False) -> Floats:
        """Columns of numbers side by side, N × D, NaN where missing if ``gaps`` allows that."""
        faults = Faults()
        found = []
        for name in names:
            numbers = self.column(name).numbers()
            if numbers is None:
                faults.add(self.place(name), "must be a column of numbers")
                continue
            for row in faults.some(numbers.wrong):
                cell = shown(self.column(name).cell(row))
                faults.add(self.place(name, row), f"is {cell}, must be a number", row)
            for row in [] if gaps else faults.some(numbers.missing):
                faults.add(self.place(name, row), "is missing; every row needs a number", row)
            found.append(numbers.values)
        faults.raise_if_any()
        return np.column_stack(found)

    def names(self, name: str, at: str) -> CodedCells:
        """The column of names ``name``, which ``at`` asks for."""
        column = self.find(name)
        if column is None:
            raise InvalidInput.at(at, f"there is no column {name[:80]!r} in the body")
        coded = column.coded()
        if coded is None:
            message = f"column {name[:80]!r} is of type {column.kind[:60]}; send text"
            raise InvalidInput.at(at, message)
        for code, level in enumerate(coded.levels):
            if isinstance(level, float) and level != np.round(level):
                message = f"column {name[:80]!r} must hold text or whole numbers, holds {level!r}"
                raise InvalidInput.at(at, message)
            if not named(level):
                row = int(np.argmax(coded.codes == code))
                message = f"is {shown(level)}; send text"
                raise InvalidInput.at(self.place(name, row), message, row)
        return coded

    def text(self, name: str, at: str) -> tuple[tuple[str, ...], Codes]:
        """The same as text: distinct, and the code of each row."""
        coded = self.names(name, at)
        levels: dict[str, int] = {}
        places = [levels.setdefault(spelled(level), len(levels)) for level in coded.levels]
        return tuple(levels), coded.mapped(places)

    def labels(self, name: str, names: Sequence[str], at: str, partial: bool = False) -> Codes:
        """A column of labels as positions in ``names``; ``partial``: null is allowed, and is -1.

        An empty text is null: no class is called that, and CSV knows nothing else.
        """
        coded = self.names(name, at)
        known = Spellings(names).index() | {"": NULL}
        found = coded.places(known)
        faults = Faults()
        for row in faults.some(np.flatnonzero(found == UNKNOWN if partial else found < 0)):
            message = f"{_word(coded, row)} is not a label of the model"
            faults.add(self.place(name, row), message, row)
        faults.raise_if_any()
        return found

    def place(self, *parts: str | int) -> str:
        """A pointer to a column, or a cell of it."""
        return self.at + pointer(*parts)


def _word(coded: CodedCells, row: int) -> str:
    level = None if coded.codes[row] == NULL else coded.levels[coded.codes[row]]
    return repr(level[:60]) if isinstance(level, str) else shown(level)
