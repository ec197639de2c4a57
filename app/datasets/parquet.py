"""Parquet: chunks are row groups, and their checksums are looked at where they have some.

Neither sizes nor statistics of columns are asked of a footer: where it has been damaged, pyarrow
(26) ends the process then, in ``RowGroupMetaData.column`` as in ``ParquetFileFragment.subset``. So
filters leave out files by their folders, and rows by their values, but no row groups unseen.
"""

from collections.abc import Iterator, Mapping

from app.datasets.arrow import ArrowFile, ArrowTable, ArrowType
from app.datasets.reading import (
    BATCH_ROWS,
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

unit = "row group"
MOST_FOOTER = 256 * 1024 * 1024
BUFFER = 1 << 20
TEXT_BYTES = 32


def survey(opened: Opening, size: int, columns: Mapping[str, Use]) -> Survey:
    """What a footer says; ``Unreadable``."""
    with readable(), opened() as file, _parquet(file) as parquet:
        types = named(parquet.schema_arrow)
        width = sum(_width(types[name]) for name in columns if name in types)
        found = parquet.metadata
        counts = [found.row_group(g).num_rows for g in range(found.num_row_groups)]
        return Survey(types, tuple(Chunk(rows, rows * width) for rows in counts))


def batches(opened: Opening, selection: Selection, remote: bool) -> Iterator[Batch | Broken]:
    """The rows of some row groups; small ones are read together."""
    with opened() as file:
        try:
            with readable():
                parquet = _parquet(file, selection.coded, remote)
        except Unreadable as error:
            yield Broken(str(error), rows=_total(selection))
            return
        with parquet:
            columns = list(selection.types)
            for chunks, rows in _runs(selection):
                yield from _run(parquet, chunks, rows, columns)


def _width(kind: ArrowType) -> int:
    """Bytes of a cell in memory, about."""
    try:
        return max(int(kind.bit_width) // 8, 1)
    except ValueError:
        return TEXT_BYTES


def _parquet(file: ArrowFile, coded: tuple[str, ...] = (), remote: bool = False) -> ArrowFile:
    import pyarrow.parquet as pq

    # Whole row groups are fetched ahead from afar, and read page by page from a disk.
    return pq.ParquetFile(
        source(file),
        read_dictionary=list(coded),
        pre_buffer=remote,
        buffer_size=0 if remote else BUFFER,
        page_checksum_verification=True,
        thrift_string_size_limit=MOST_FOOTER,
    )


def _total(selection: Selection) -> int:
    return sum(rows or 0 for rows in selection.rows)


def _runs(selection: Selection) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Row groups that follow each other and make one batch at most, or one large row group."""
    chunks: list[int] = []
    rows: list[int] = []
    for chunk, count in zip(selection.chunks, selection.rows, strict=True):
        if chunks and sum(rows) + (count or 0) > BATCH_ROWS:
            yield tuple(chunks), tuple(rows)
            chunks, rows = [], []
        chunks.append(chunk)
        rows.append(count or 0)
    if chunks:
        yield tuple(chunks), tuple(rows)


def _run(
    parquet: ArrowFile, chunks: tuple[int, ...], rows: tuple[int, ...], columns: list[str]
) -> Iterator[Batch | Broken]:
    if len(chunks) == 1:
        yield from _single(parquet, chunks[0], rows[0], columns)
        return
    try:
        with readable():
            table = parquet.read_row_groups(list(chunks), columns=columns, use_threads=False)
            batch = table.combine_chunks().to_batches()
            if table.num_rows != sum(rows) or len(batch) > 1:
                raise Unreadable("comes in parts")
    except Unreadable:
        for chunk, count in zip(chunks, rows, strict=True):
            yield from _single(parquet, chunk, count, columns)
        return
    starts = [0]
    for count in rows[:-1]:
        starts.append(starts[-1] + count)
    for part in batch:
        yield Batch(part, Spread(chunks, starts, (0,) * len(chunks)))


def _single(
    parquet: ArrowFile, chunk: int, rows: int, columns: list[str]
) -> Iterator[Batch | Broken]:
    done = 0
    try:
        with readable():
            reading = parquet.iter_batches(
                BATCH_ROWS, row_groups=[chunk], columns=columns, use_threads=False
            )
        while (batch := _next(reading)) is not None:
            yield Batch(batch, Spread.of(chunk, done))
            done += batch.num_rows
    except Unreadable as error:
        yield Broken(str(error), chunk, rows - done)


def _next(reading: ArrowFile) -> ArrowTable:
    with readable():
        return next(reading, None)
