"""NDJSON: an object per line, as strict as JSON bodies are."""

from collections.abc import Iterator, Sequence

import numpy as np
import orjson

from app.core import deadline
from app.core.arrays import Floats
from app.core.errors import Fault, InvalidInput
from app.formats import json, ndjson_lines
from app.formats.errors import TooLarge, Unparseable
from app.formats.frame import Cells, Frame

MEDIA_TYPE = "application/x-ndjson"
MOST_CELLS = 50_000_000
LARGE = 4_096
"""Bytes from which plain lines are worth a look."""


def decode(
    body: bytes | bytearray, most_rows: int, most_columns: int, most_cells: int = MOST_CELLS
) -> Frame:
    """Columns by name; a name that a line leaves out is null there. Empty lines are skipped."""
    plain = ndjson_lines.columns(body) if len(body) >= LARGE else None
    if plain is not None:
        rows = len(next(iter(plain.values())))
        if rows > most_rows:
            raise _too_long(most_rows)
        return Frame({name: Cells(numbers) for name, numbers in plain.items()}, rows)
    return _decoded(body, most_rows, most_columns, most_cells)


def encode(names: Sequence[str], rows: Floats) -> Iterator[bytes]:
    """N × C numbers, a line of C by name for each row; in pieces."""
    line = b"{%b}\n" % b",".join(_name(name) + b":%b" for name in names)
    step = max(json.NUMBERS_AT_A_TIME // len(names), 1)
    for start in range(0, len(rows), step):
        part = np.ascontiguousarray(rows[start : start + step])
        numbers = orjson.dumps(part.ravel(), option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]
        yield (line * len(part)) % tuple(numbers.split(b","))


def _name(name: str) -> bytes:
    """For a template of bytes."""
    return orjson.dumps(name).replace(b"%", b"%%")


def _too_long(most_rows: int) -> InvalidInput:
    message = f"the table has more than {most_rows} rows; send it in parts"
    return InvalidInput.at("", message)


def _decoded(
    body: bytes | bytearray, most_rows: int, most_columns: int, most_cells: int = MOST_CELLS
) -> Frame:
    """Line by line, with all that they may hold."""
    columns: dict[str, list[object]] = {}
    rows = 0
    for row, line in deadline.checked(_lines(body)):
        if rows == most_rows:
            raise _too_long(most_rows)
        try:
            found = json.decode(line)
        except Unparseable as error:
            raise Unparseable(f"line {row + 1}: {error}") from None
        except InvalidInput as error:
            faults = [Fault(f.pointer, f.message, row) for f in error.faults]
            raise InvalidInput(faults, error.count) from None
        for name in found:
            if name not in columns:
                columns[name] = [None] * rows
        if len(columns) > most_columns:
            raise TooLarge(f"the table has more than {most_columns} columns")
        if len(columns) * rows > most_cells:
            # A line that is empty has as many cells as any other.
            raise TooLarge(f"the table has more than {most_cells} cells; send it in parts")
        for name, cells in columns.items():
            cells.append(found.get(name))
        rows += 1
    if rows == 0:
        raise InvalidInput.at("", "the table holds no rows; send at least one")
    return Frame({name: Cells(cells) for name, cells in columns.items()}, rows)


def _lines(body: bytes | bytearray) -> Iterator[tuple[int, bytes]]:
    start, row = 0, 0
    while start < len(body):
        end = body.find(b"\n", start)
        end = len(body) if end < 0 else end
        line = bytes(body[start:end]).strip()
        if line:
            yield row, line
        start, row = end + 1, row + 1
