"""Tables: CSV, Arrow streams and Parquet files by pyarrow, an extra, and NDJSON; both ways.

Bodies are read batch by batch, and no further than the limits.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.api.problems import TooLarge, Unparseable, Unsupported
from app.api.wire import ndjson
from app.api.wire.frame import Column, Frame
from app.api.wire.pieces import Piece
from app.core import sheets
from app.core.errors import InvalidInput, pointer
from app.core.prevalence.arrays import Floats

MOST_COLUMNS = 10_000
BATCH_ROWS = 65_536
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
        table = pa.Table.from_batches(_within(DECODERS[media_type](body), limits))
        names = table.column_names
        columns = {name: _column(pa, name, table.column(j)) for j, name in enumerate(names)}
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        kind = media_type.rpartition(".")[2].rpartition("/")[2]
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise Unparseable(f"the body cannot be read as {kind}: {reason}") from None
    if len(columns) < len(names):
        raise InvalidInput.at("", "the table has two columns of one name")
    return Frame(columns, table.num_rows, media_type == CSV)


def _within(batches: Iterable[Any], limits: Limits) -> list[Any]:
    """The batches, checked, unless they are too many."""
    kept: list[Any] = []
    size = rows = 0
    for batch in batches:
        # Offsets of a forged body may point anywhere.
        batch.validate(full=True)
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


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        message = "this format needs the service's extra: pip install 'priorshift[arrow]'"
        raise Unsupported(message) from None
    return pyarrow


def _column(pa: Any, name: str, chunked: Any) -> Column:
    kind = chunked.type
    types = pa.types
    if types.is_dictionary(kind) and types.is_string(kind.value_type):
        return _text(chunked.combine_chunks())
    if types.is_string(kind) or types.is_large_string(kind):
        return _text(chunked.dictionary_encode().combine_chunks())
    if types.is_null(kind):
        return Column(levels=(), codes=np.full(len(chunked), -1, np.intp))
    if types.is_integer(kind) or types.is_floating(kind):
        numbers = np.ascontiguousarray(chunked.to_numpy(), np.float64)
        nulls = None
        if chunked.null_count:
            nulls = np.flatnonzero(chunked.is_null().to_numpy())
        return Column(numbers, nulls)
    if types.is_timestamp(kind) and kind.tz is not None:
        micros = chunked.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        return Column(times=micros.fill_null(np.iinfo(np.int64).min).to_numpy())
    if types.is_timestamp(kind):
        message = "holds times without a zone; write them in UTC, like 2026-01-31T00:00:00Z"
        raise InvalidInput.at(pointer(name), message)
    raise InvalidInput.at(pointer(name), f"is of type {str(kind)[:60]}; send numbers or text")


def _text(encoded: Any) -> Column:
    chunks = encoded.chunks if hasattr(encoded, "chunks") else [encoded]
    levels: dict[str, int] = {}
    parts = []
    for chunk in chunks:
        own = [levels.setdefault(level, len(levels)) for level in chunk.dictionary.to_pylist()]
        codes = chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
        parts.append(np.array([*own, -1], np.intp)[codes])
    return Column(levels=tuple(levels), codes=np.concatenate(parts))


def _stream(body: bytes | bytearray) -> Iterable[Any]:
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
        yield from reader


def _parquet(body: bytes | bytearray) -> Iterable[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(pa.BufferReader(pa.py_buffer(body))) as file:
        if file.metadata.num_columns > MOST_COLUMNS:
            raise TooLarge(f"the table has more than {MOST_COLUMNS} columns")
        yield from file.iter_batches(BATCH_ROWS, use_threads=False)


def _csv(body: bytes | bytearray) -> Iterable[Any]:
    import pyarrow as pa
    from pyarrow import csv

    header = bytes(body[: body.find(b"\n")])
    if header.count(b",") >= MOST_COLUMNS:
        raise TooLarge(f"the table has more than {MOST_COLUMNS} columns")
    reading = csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES)
    converting = csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
    source = pa.BufferReader(pa.py_buffer(body))
    with csv.open_csv(source, reading, convert_options=converting) as reader:
        yield from reader


def _to_stream(table: Any, out: Any) -> None:
    import pyarrow as pa

    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)


def _to_parquet(table: Any, out: Any) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, out, compression="zstd", use_dictionary=False)


def _to_csv(table: Any, out: Any) -> None:
    from pyarrow import csv

    csv.write_csv(table, out)


ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
CSV = "text/csv"
NDJSON = ndjson.MEDIA_TYPE
ALIASES = {"application/x-parquet": PARQUET, "application/jsonl": NDJSON}
DECODERS: dict[str, Callable[[bytes | bytearray], Iterable[Any]]] = {
    ARROW: _stream,
    PARQUET: _parquet,
    CSV: _csv,
}
KINDS = (*DECODERS, NDJSON)
ENCODERS: dict[str, Callable[[Any, Any], None]] = {
    ARROW: _to_stream,
    PARQUET: _to_parquet,
    CSV: _to_csv,
}
