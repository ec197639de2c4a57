"""Arrow's own files and streams (.arrow, .feather); chunks of a file are its record batches."""

from collections.abc import Iterator, Mapping

from app.datasets.arrow import ArrowFile, ArrowTable
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

unit = "record batch"
MAGIC = b"ARROW1"


def survey(opened: Opening, size: int, columns: Mapping[str, Use]) -> Survey:
    """What a footer, or the head of a stream, says; ``Unreadable``."""
    with readable(), opened() as file:
        reader = _reader(file, None)
        types = named(reader.schema)
        if not hasattr(reader, "num_record_batches"):
            return Survey(types, (Chunk(None, size),))
        count = reader.num_record_batches
        return Survey(types, (Chunk(None, size // max(count, 1)),) * count)


def batches(opened: Opening, selection: Selection, remote: bool) -> Iterator[Batch | Broken]:
    """The rows of some record batches, or of a stream."""
    with opened() as file:
        try:
            with readable():
                names = _reader(file, None).schema.names
                file.seek(0)
                fields = [names.index(name) for name in selection.types]
                reader = _reader(file, fields)
        except Unreadable as error:
            yield Broken(str(error))
            return
        if hasattr(reader, "num_record_batches"):
            for chunk in selection.chunks:
                yield from _chunk(reader, chunk)
        else:
            yield from _stream(reader)


def _reader(file: ArrowFile, fields: list[int] | None) -> ArrowFile:
    from pyarrow import ipc

    is_file = file.read(len(MAGIC)) == MAGIC
    file.seek(0)
    options = ipc.IpcReadOptions(use_threads=False, included_fields=fields)
    return (ipc.open_file if is_file else ipc.open_stream)(source(file), options=options)


def _chunk(reader: ArrowFile, chunk: int) -> Iterator[Batch | Broken]:
    try:
        with readable():
            batch = _valid(reader.get_batch(chunk))
    except Unreadable as error:
        yield Broken(str(error), chunk)
        return
    yield from _parts(batch, chunk)


def _stream(reader: ArrowFile) -> Iterator[Batch | Broken]:
    chunk = 0
    try:
        while True:
            with readable():
                batch = next(reader, None)
                if batch is None:
                    return
                _valid(batch)
            yield from _parts(batch, chunk)
            chunk += 1
    except Unreadable as error:
        yield Broken(str(error), chunk)


def _valid(batch: ArrowTable) -> ArrowTable:
    # Offsets of a forged file may point anywhere.
    batch.validate(full=True)
    return batch


def _parts(batch: ArrowTable, chunk: int) -> Iterator[Batch]:
    for first in range(0, batch.num_rows, BATCH_ROWS):
        yield Batch(batch.slice(first, BATCH_ROWS), Spread.of(chunk, first))
