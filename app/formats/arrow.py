"""Tables: CSV, Arrow streams and Parquet files by pyarrow, an extra, and NDJSON; both ways.

Bodies are read batch by batch, and no further than the limits.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.core import sheets
from app.core.arrays import Floats
from app.core.errors import InvalidInput
from app.datasets.arrow import ArrowArray, ArrowFile, ArrowLibrary, ArrowTable
from app.formats import Piece, json, ndjson
from app.formats.columns import CsvColumn, Typed
from app.formats.errors import TooLarge, Unparseable, Unsupported
from app.formats.frame import Frame

MOST_COLUMNS = 10_000
BATCH_ROWS = 65_536
BATCH_CELLS = 1 << 20
"""Of a Parquet file: what stands there once may be the value of every row."""
MOST_INFLATED = 1 << 28
"""Bytes that a Parquet file says it inflates to."""
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Limits:
    """``rows`` of a table, and ``bytes`` that it may take in memory."""

    rows: int
    bytes: int


def decode(media_type: str, body: bytes | bytearray, limits: Limits) -> Frame:
    """The table in a body; ``Unparseable``, ``TooLarge`` or ``InvalidInput`` where it is wrong."""
    if media_type == NDJSON:
        return ndjson.decode(body, limits.rows, MOST_COLUMNS)
    pa = _pyarrow()
    try:
        table = _table(media_type, body, limits)
        arrays = dict(zip(table.column_names, table.columns, strict=True))
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        kind = media_type.rpartition(".")[2].rpartition("/")[2]
        reason = str(error)[:200].splitlines()[0] if str(error) else type(error).__name__
        raise Unparseable(f"the body cannot be read as {kind}: {reason}") from None
    if len(arrays) < table.num_columns:
        raise InvalidInput.at("", "the table has two columns of one name")
    if media_type != CSV:
        return Frame({name: Typed(array) for name, array in arrays.items()}, table.num_rows)
    written = Text(body, arrays)
    columns = {
        name: CsvColumn(name, array, written.read, written.decimal)
        for name, array in arrays.items()
    }
    return Frame(columns, table.num_rows, cells=True)


def _table(media_type: str, body: bytes | bytearray, limits: Limits) -> ArrowTable:
    import pyarrow as pa

    try:
        return pa.Table.from_batches(_within(DECODERS[media_type](body), limits))
    except pa.ArrowInvalid:
        if media_type != CSV:
            raise
        # A cell may be unlike those of the first block, which gave the column its type.
        return pa.Table.from_batches(_within(_csv(body, guess=False), limits))


@dataclass(frozen=True)
class Text:
    """The cells of CSV as they are written, read when they are asked for, and kept."""

    body: bytes | bytearray
    arrays: dict[str, ArrowArray]
    kept: dict[str, ArrowArray] = field(default_factory=dict)

    def decimal(self) -> bool:
        """Whether no cell can be 0x1F, which pyarrow takes for a whole number, and no other."""
        return all(mark[1:] not in self.body or mark not in self.body for mark in (b"0x", b"0X"))

    def read(self, name: str) -> ArrowArray:
        """A column, as text or bytes."""
        import pyarrow as pa

        kind = self.arrays[name].type
        if pa.types.is_string(kind) or pa.types.is_binary(kind):
            return self.arrays[name]
        if name not in self.kept:
            self.kept[name] = pa.Table.from_batches(_csv(self.body, name)).column(0)
        return self.kept[name]


def _within(batches: Iterable[ArrowTable], limits: Limits) -> list[ArrowTable]:
    """The batches, checked, unless they are too many."""
    kept: list[ArrowTable] = []
    size = rows = 0
    for batch in batches:
        # Offsets of a forged body may point anywhere.
        batch.validate(full=True)
        if not kept:
            json.require_short(batch.schema.names)
        size += batch.nbytes
        rows += batch.num_rows
        if batch.num_columns > MOST_COLUMNS or size > limits.bytes:
            raise TooLarge(
                f"the table takes more than {limits.bytes} bytes in memory, or has more than "
                f"{MOST_COLUMNS} columns; send it in parts"
            )
        if rows > limits.rows:
            raise InvalidInput.at(
                "", f"the table has more than {limits.rows} rows; send it in parts"
            )
        kept.append(batch)
    if rows == 0:
        raise InvalidInput.at("", "the table holds no rows; send at least one")
    return kept


def encode(media_type: str, names: Sequence[str], rows: Floats) -> list[Piece]:
    """N × C numbers as a table of C named columns."""
    if media_type == NDJSON:
        return list(ndjson.encode(names, rows))
    pa = _pyarrow()
    arrays = [pa.array(np.ascontiguousarray(column)) for column in rows.T]
    if media_type == CSV:
        names = [sheets.cell(name) for name in names]
    table = pa.table(dict(zip(names, arrays, strict=True)))
    out = pa.BufferOutputStream()
    ENCODERS[media_type](table, out)
    return [memoryview(out.getvalue())]


def _pyarrow() -> ArrowLibrary:
    try:
        import pyarrow
    except ImportError:
        message = "this format needs the service's extra: pip install 'priorshift[arrow]'"
        raise Unsupported(message) from None
    return pyarrow


def _stream(body: bytes | bytearray) -> Iterable[ArrowTable]:
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
        yield from reader


def _parquet(body: bytes | bytearray) -> Iterable[ArrowTable]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(pa.BufferReader(pa.py_buffer(body))) as file:
        found, leaves = file.metadata, file.schema
        if found.num_columns > MOST_COLUMNS:
            raise TooLarge(f"the table has more than {MOST_COLUMNS} columns")
        groups = (found.row_group(j) for j in range(found.num_row_groups))
        if sum(group.total_byte_size for group in groups) > MOST_INFLATED:
            raise TooLarge(f"the file inflates to more than {MOST_INFLATED >> 20} MB; send parts")
        columns = [leaves.column(j) for j in range(found.num_columns)]
    # Text that repeats is stored once, and so it is read.
    texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
    rows = max(min(BATCH_ROWS, BATCH_CELLS // max(len(columns), 1)), 1)
    with pq.ParquetFile(pa.BufferReader(pa.py_buffer(body)), read_dictionary=texts) as file:
        yield from file.iter_batches(rows, use_threads=False)


def _csv(
    body: bytes | bytearray, only: str | None = None, guess: bool = True
) -> Iterable[ArrowTable]:
    """With types as the first rows have them; else, and where ``only`` one is read, as bytes."""
    import pyarrow as pa
    from pyarrow import csv

    header = bytes(body[: body.find(b"\n")])
    if header.count(b",") >= MOST_COLUMNS:
        raise TooLarge(f"the table has more than {MOST_COLUMNS} columns")
    reading = csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES)
    source = pa.py_buffer(body)
    names = [only] if only is not None else []
    if not guess:
        with csv.open_csv(pa.BufferReader(source), reading) as reader:
            names = reader.schema.names
    converting = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.binary()),
        include_columns=[only] if only is not None else [],
        null_values=[""],
        strings_can_be_null=True,
        # What stands in quotes is text, even if it is empty.
        quoted_strings_can_be_null=False,
    )
    with csv.open_csv(pa.BufferReader(source), reading, convert_options=converting) as reader:
        yield from reader


def _to_stream(table: ArrowTable, out: ArrowFile) -> None:
    import pyarrow as pa

    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)


def _to_parquet(table: ArrowTable, out: ArrowFile) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, out, compression="zstd", use_dictionary=False)


def _to_csv(table: ArrowTable, out: ArrowFile) -> None:
    from pyarrow import csv

    csv.write_csv(table, out)


ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
CSV = "text/csv"
NDJSON = ndjson.MEDIA_TYPE
DECODERS: dict[str, Callable[[bytes | bytearray], Iterable[ArrowTable]]] = {
    ARROW: _stream,
    PARQUET: _parquet,
    CSV: _csv,
}
KINDS = (*DECODERS, NDJSON)
ENCODERS: dict[str, Callable[[ArrowTable, ArrowFile], None]] = {
    ARROW: _to_stream,
    PARQUET: _to_parquet,
    CSV: _to_csv,
}
