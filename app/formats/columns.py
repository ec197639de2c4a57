"""Columns of Arrow's types, and of CSV, which has none."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Codes
from app.core.lazy import cached_property
from app.datasets.arrow import ArrowArray, ArrowType
from app.formats.errors import Unparseable
from app.formats.frame import NO_ROWS, NULL, CodedCells, Column, Numbers

NUMBER = r"^[ \t]*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?[ \t]*$"
NOT_FINITE = r"(?i)^[ \t]*[-+]?(?:nan|inf|infinity)[ \t]*$"


@dataclass(frozen=True)
class Typed:
    """A column that knows its type, a pyarrow chunked array; ``rows`` of it, None for all."""

    whole: ArrowArray
    rows: Codes | None = None

    @property
    def kind(self) -> str:
        """Its type."""
        return str(self.whole.type)

    @cached_property
    def array(self) -> ArrowArray:
        """The cells, of a type that pyarrow can work with."""
        import pyarrow as pa

        kind, array = self.whole.type, self.whole
        if pa.types.is_dictionary(kind) and not _textual(kind.value_type):
            array = array.cast(kind.value_type)
        elif pa.types.is_string_view(kind):
            array = array.cast(pa.large_string())
        return array if self.rows is None else array.take(pa.array(self.rows))

    def cell(self, row: int) -> object:
        """One of them."""
        return _plain(self.array[row].as_py())

    def numbers(self) -> Numbers | None:
        """Integers, floating or decimal numbers."""
        import pyarrow as pa

        kind, types, array = self.array.type, pa.types, self.array
        if types.is_decimal(kind) or types.is_null(kind):
            array = array.cast(pa.float64())
        elif not (types.is_integer(kind) or types.is_floating(kind)):
            return None
        values = np.ascontiguousarray(array.to_numpy(), np.float64)
        missing = np.flatnonzero(array.is_null().to_numpy()) if array.null_count else NO_ROWS
        return Numbers(values, missing, NO_ROWS)

    def coded(self) -> CodedCells | None:
        """Text, numbers, truth values and days, each level once."""
        import pyarrow as pa

        types, array = pa.types, self.array
        kind = array.type
        if types.is_null(kind):
            return CodedCells((), np.full(len(array), NULL, np.intp))
        if types.is_dictionary(kind):
            return _coded(array)
        numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        if not (_textual(kind) or numbers or types.is_boolean(kind) or types.is_date(kind)):
            return None
        return _coded(array.dictionary_encode())

    def times(self) -> NDArray[np.int64] | None:
        """Timestamps with a zone."""
        import pyarrow as pa

        kind = self.array.type
        if not pa.types.is_timestamp(kind) or kind.tz is None:
            return None
        micros = self.array.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        return np.asarray(micros.fill_null(np.iinfo(np.int64).min).to_numpy(), np.int64)

    def part(self, rows: Codes) -> Column:
        """Some of them."""
        return Typed(self.whole, rows if self.rows is None else self.rows[rows])


def _textual(kind: ArrowType) -> bool:
    import pyarrow as pa

    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _coded(array: ArrowArray) -> CodedCells:
    """Of a dictionary array, each of whose chunks may have levels of its own."""
    import pyarrow as pa

    places: dict[Any, int] = {}
    parts = [NO_ROWS]
    for chunk in array.chunks:
        levels = [_plain(level) for level in chunk.dictionary.to_pylist()]
        own = [NULL if x is None else places.setdefault(x, len(places)) for x in levels]
        codes = chunk.indices.cast(pa.int64()).fill_null(NULL).to_numpy(zero_copy_only=False)
        parts.append(np.array([*own, NULL], np.intp)[codes])
    return CodedCells(tuple(places), np.concatenate(parts))


def _plain(value: object) -> object:
    """A value as JSON would bring it."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value.isoformat() if hasattr(value, "isoformat") else value


@dataclass(frozen=True)
class CsvColumn:
    """A column of CSV: ``guess`` by its first rows, which is right where it is asked for numbers.

    ``read`` gives its cells as bytes, by name. ``decimal``: no whole number is written
    otherwise. ``rows``: those that are meant, None for all.
    """

    name: str
    guess: ArrowType
    read: Callable[[str], Any]
    decimal: Callable[[], bool]
    rows: Codes | None = None

    @property
    def kind(self) -> str:
        """Text, as all of CSV."""
        return "text"

    @cached_property
    def text(self) -> Typed:
        """The cells as they are written."""
        import pyarrow as pa

        try:
            return Typed(self.read(self.name).cast(pa.large_string()), self.rows)
        except pa.ArrowInvalid:
            message = f"column {self.name[:60]!r} holds text that is not UTF-8"
            raise Unparseable(message) from None

    def cell(self, row: int) -> object:
        """One of them."""
        return self.text.cell(row)

    def numbers(self) -> Numbers | None:
        """What is written as a number; a cell with nothing in it is missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        types, kind = pa.types, self.guess.type
        whole = types.is_integer(kind) and self.decimal()
        if whole or types.is_floating(kind) or types.is_null(kind):
            return Typed(self.guess, self.rows).numbers()
        cells = self.text.array
        right = pc.or_(*(pc.match_substring_regex(cells, p) for p in (NUMBER, NOT_FINITE)))
        trimmed = pc.ascii_trim(cells, " \t")
        values = pc.if_else(right, trimmed, pa.scalar(None, cells.type)).cast(pa.float64())
        empty = pc.fill_null(pc.equal(trimmed, ""), True).to_numpy()
        wrong = np.flatnonzero(~pc.fill_null(right, False).to_numpy() & ~empty)
        if len(wrong) and len(wrong) == len(cells) - np.count_nonzero(empty):
            return None
        return Numbers(values.to_numpy(), np.flatnonzero(empty), wrong)

    def coded(self) -> CodedCells | None:
        """Text."""
        return self.text.coded()

    def times(self) -> NDArray[np.int64] | None:
        """What looks like times with a zone; others are text."""
        return Typed(self.guess, self.rows).times()

    def part(self, rows: Codes) -> Column:
        """Some of them."""
        these = rows if self.rows is None else self.rows[rows]
        return CsvColumn(self.name, self.guess, self.read, self.decimal, these)
