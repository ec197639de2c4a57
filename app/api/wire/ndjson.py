"""NDJSON: an object per line, read by the same strict parser as JSON bodies."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.api.problems import TooLarge, Unparseable
from app.api.wire import json
from app.api.wire.frame import Column, Frame
from app.core.errors import InvalidInput, pointer

MEDIA_TYPE = "application/x-ndjson"


def decode(body: bytes | bytearray, most_rows: int, most_columns: int) -> Frame:
    """Columns by name; a name that a line leaves out is null there. Empty lines are skipped."""
    columns: dict[str, list[Any]] = {}
    rows = 0
    for row, line in _lines(body):
        if rows == most_rows:
            message = f"has more than {most_rows} rows; send it in parts"
            raise InvalidInput.at("", f"the table {message}")
        try:
            found = json.decode(line)
        except Unparseable as error:
            raise Unparseable(f"line {row + 1}: {error}") from None
        for name in found:
            if name not in columns:
                columns[name] = [None] * rows
        if len(columns) > most_columns:
            raise TooLarge(f"the table has more than {most_columns} columns")
        for name, cells in columns.items():
            cells.append(found.get(name))
        rows += 1
    if rows == 0:
        raise InvalidInput.at("", "the table holds no rows; send at least one")
    return Frame({name: _column(name, cells) for name, cells in columns.items()}, rows)


def _lines(body: bytes | bytearray) -> Iterator[tuple[int, bytes]]:
    start, row = 0, 0
    while start < len(body):
        end = body.find(b"\n", start)
        end = len(body) if end < 0 else end
        line = bytes(body[start:end]).strip()
        if line:
            yield row, line
        start, row = end + 1, row + 1


def _column(name: str, cells: list[Any]) -> Column:
    kinds = set(map(type, cells)) - {type(None)}
    if kinds <= {str}:
        levels: dict[str, int] = {}
        codes = [-1 if cell is None else levels.setdefault(cell, len(levels)) for cell in cells]
        return Column(levels=tuple(levels), codes=np.array(codes, np.intp))
    if kinds <= json.NUMBERS:
        nulls = np.array([row for row, cell in enumerate(cells) if cell is None], np.intp)
        try:
            numbers = np.array([np.nan if cell is None else cell for cell in cells], np.float64)
        except OverflowError:
            raise InvalidInput.at(pointer(name), "holds a number that is too large") from None
        return Column(numbers, nulls if len(nulls) else None)
    row = _odd(cells)
    message = f"is {json.shown(cells[row])}; a column holds numbers or text, the same in every row"
    raise InvalidInput.at(pointer(name, row), message, row)


def _odd(cells: list[Any]) -> int:
    """The first row that is neither number nor text, or not what the rows before it are."""
    kinds: list[set[Any]] = [set(json.NUMBERS), {str}]
    for row, cell in enumerate(cells):
        if cell is not None:
            kinds = [kind for kind in kinds if type(cell) in kind]
        if not kinds:
            return row
    raise AssertionError("an odd cell was not found")
