"""CSV, plain or gzipped; a file is one chunk, and its rows are counted from 0 after the header.

Posteriors are numbers, labels and groups text; other columns are what their first rows look like,
numbers as float64. A file is read with the
types it should have; from the first block on that does not have them it is read as text, and every
cell is looked at, so that what is wrong is known by row and column.

Where rows of too many or too few cells are met, bytes are read as if they were Latin-1, in which
everything is text: pyarrow cannot hand over a row that is none.
"""

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from app.core.sheets import Header
from app.datasets.arrow import ArrowArray, ArrowFile, ArrowTable, ArrowType, pyarrow
from app.datasets.reading import (
    Batch,
    Broken,
    Chunk,
    Opening,
    Selection,
    Spread,
    Survey,
    Unreadable,
    Use,
    named,
    readable,
    source,
)

unit = ""
HEAD = 1 << 16
BLOCK = 1 << 22
LATIN = "latin-1"
PEEK = 4096
GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"


def survey(opened: Opening, size: int, columns: Mapping[str, Use]) -> Survey:
    """Types as the first rows have them, numbers as float64; ``Unreadable``."""
    with readable(), opened() as file, _read(file, HEAD, {}, lambda row: "skip") as reader:
        found = {_utf8(name).decode(): kind for name, kind in named(reader.schema).items()}
    header = Header(found, sheet=True)
    uses = {header.find(name): use for name, use in columns.items()}
    types = {name: _type(kind, uses.get(name, "any")) for name, kind in found.items()}
    return Survey(types, (Chunk(None, size),))


def _type(found: ArrowType, use: Use) -> ArrowType:
    """The type of a column that looks like ``found`` at first."""
    pa = pyarrow()
    if use == "number" or (use == "any" and pa.types.is_integer(found)):
        return pa.float64()
    return pa.string() if use == "text" or pa.types.is_null(found) else found


def batches(opened: Opening, selection: Selection, remote: bool) -> Iterator[Batch | Broken]:
    """The rows of a file."""
    done = 0
    try:
        with opened() as file, _typed(file, selection) as reader:
            while (batch := _next(reader)) is not None:
                yield Batch(batch, Spread.of(0, done))
                done += batch.num_rows
            return
    except Unreadable:
        pass
    yield from _Careful(selection).batches(opened, done)


def _typed(file: ArrowFile, selection: Selection) -> ArrowFile:
    with readable():
        return _read(file, BLOCK, dict(selection.types), None)


def _read(
    file: ArrowFile,
    block: int,
    types: dict[str, ArrowType],
    handler: Callable[[ArrowTable], str] | None,
) -> ArrowFile:
    from pyarrow import csv

    opened = _text(source(file))
    return csv.open_csv(
        opened,
        csv.ReadOptions(
            use_threads=False, block_size=block, encoding="utf8" if handler is None else LATIN
        ),
        csv.ParseOptions(invalid_row_handler=handler),
        csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )


def _text(opened: ArrowFile) -> ArrowFile:
    """A file's text, unpacked, without a mark of its byte order."""
    head = opened.read(PEEK)
    opened.seek(0)
    text = opened
    if head.startswith(GZIP):
        with suppress(zlib.error):
            head = zlib.decompressobj(wbits=31).decompress(head, len(BOM))
        text = pyarrow().CompressedInputStream(opened, "gzip")
    if head.startswith(BOM):
        text.read(len(BOM))
    return text


def _next(reader: ArrowFile) -> ArrowTable:
    with readable():
        return next(reader, None)


class _Careful:
    """Reads every cell as bytes, and converts those that can be."""

    def __init__(self, selection: Selection) -> None:
        self.types = selection.types
        self._gaps: list[int] = []
        """How many rows were given before each row that was not, in order."""
        self._told: list[Broken] = []

    def batches(self, opened: Opening, done: int) -> Iterator[Batch | Broken]:
        """The rows from ``done`` on; they have been given before it without a fault."""
        text = dict.fromkeys(map(_latin, self.types), pyarrow().string())
        seen = 0
        try:
            with opened() as file, self._reader(file, text) as reader:
                while (batch := _next(reader)) is not None:
                    told, self._told = self._told, []
                    start, seen = max(done - seen, 0), seen + batch.num_rows
                    if start < batch.num_rows:
                        first = seen - batch.num_rows + start
                        yield self._converted(batch.slice(start), first)
                    yield from told
            yield from self._told
        except Unreadable as error:
            yield Broken(str(error))

    def _reader(self, file: ArrowFile, types: dict[str, ArrowType]) -> ArrowFile:
        with readable():
            return _read(file, BLOCK, types, self._odd)

    def _odd(self, row: ArrowTable) -> str:
        """Called for a row of too many or too few cells, which is left out."""
        number = row.number - 2
        self._gaps.append(number - len(self._gaps))
        message = f"has {row.actual_columns} values, the header has {row.expected_columns}"
        self._told.append(Broken(message, rows=1, row=number))
        return "skip"

    def _converted(self, batch: ArrowTable, first: int) -> Batch:
        wrong: dict[int, str] = {}
        columns = []
        for name, kind in self.types.items():
            cells: list[object] = []
            _convert(_bytes(batch.column(_latin(name)), kind), kind, name, 0, cells, wrong)
            columns.append(pyarrow().concat_arrays(cells))
        rows = pyarrow().RecordBatch.from_arrays(columns, names=list(self.types))
        return Batch(rows, self._spread(first, len(rows)), tuple(sorted(wrong.items())))

    def _spread(self, first: int, rows: int) -> Spread:
        """Rows that were given from the ``first`` on, numbered as in the file."""
        low, high = bisect_right(self._gaps, first), bisect_left(self._gaps, first + rows)
        starts = sorted({0, *(gap - first for gap in self._gaps[low:high])})
        firsts = [first + start + bisect_right(self._gaps, first + start) for start in starts]
        return Spread([0] * len(starts), starts, firsts)


def _latin(name: str) -> str:
    """A name as it comes when UTF-8 is read as Latin-1."""
    return name.encode().decode(LATIN)


def _utf8(text: str) -> bytes:
    """The bytes that were read as Latin-1."""
    return text.encode(LATIN)


def _bytes(column: ArrowArray, kind: ArrowType) -> ArrowArray:
    """Cells as the bytes they were in the file; numbers need no care, they are ASCII."""
    pa = pyarrow()
    if not pa.types.is_string(kind):
        return column.cast(pa.binary())
    coded = column.dictionary_encode()
    levels = pa.array([_utf8(level) for level in coded.dictionary.to_pylist()], pa.binary())
    return pa.DictionaryArray.from_arrays(coded.indices, levels).dictionary_decode()


def _convert(
    column: ArrowArray,
    kind: ArrowType,
    name: str,
    first: int,
    cells: list[object],
    wrong: dict[int, str],
) -> None:
    """Cells as their type, in parts; what is not of it is null, and told by row from ``first``."""
    pa = pyarrow()
    try:
        cells.append(column.cast(pa.string()).cast(kind))
        return
    except (pa.ArrowException, ValueError):
        half = len(column) // 2
    if half:
        _convert(column.slice(0, half), kind, name, first, cells, wrong)
        _convert(column.slice(half), kind, name, first + half, cells, wrong)
        return
    cell = column[0].as_py()
    try:
        message = f"column {name[:60]} holds {cell.decode()[:40]!r}, not of type {kind}"
    except UnicodeDecodeError:
        message = f"column {name[:60]} holds text that is not UTF-8"
    wrong.setdefault(first, message)
    cells.append(pa.nulls(1, kind))
