"""A part of a file as engines read it: again and again, on any worker, a batch at a time."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.core import deadline
from app.core.arrays import Codes
from app.core.errors import Fault, Faults, InvalidInput
from app.datasets import columns, csv, filters, ipc, parquet
from app.datasets.arrow import ArrowArray, ArrowFile, ArrowTable, ArrowType, pyarrow
from app.datasets.columns import CodedColumn, Wrong
from app.datasets.conditions import Conditions
from app.datasets.listing import File
from app.datasets.reading import Batch, Broken, FormatReader, Selection, Unreadable, Use, readable
from app.datasets.roots import Root
from app.engines.partitions import Piece

KEPT_BYTES = 1 << 24
READERS: dict[str, FormatReader] = {"parquet": parquet, "arrow": ipc, "csv": csv}
SUFFIXES = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".csv": "csv",
    ".csv.gz": "csv",
}


@dataclass(frozen=True)
class Wanted:
    """What is read of every file. ``posteriors``: columns in the order of ``classes``.

    ``keys``: columns that are passed through beside the rows. ``at``: the pointer of the data set.
    """

    classes: tuple[str, ...]
    posteriors: tuple[str, ...]
    label: str | None
    group_by: tuple[str, ...]
    condition: filters.Node | None
    keys: tuple[str, ...]
    on_error: Literal["fail", "skip"]
    at: str

    @property
    def coded(self) -> tuple[str, ...]:
        """Columns that are wanted as codes."""
        return self.group_by if self.label is None else (self.label, *self.group_by)

    @property
    def needed(self) -> dict[str, Use]:
        """All columns, those of the filter too, and what each is wanted as."""
        tested = () if self.condition is None else filters.columns(self.condition)
        found: dict[str, Use] = {name: "any" for name, _ in tested}
        found |= dict.fromkeys(self.keys, "any")
        found |= dict.fromkeys(self.coded, "text")
        return found | dict.fromkeys(self.posteriors, "number")


@dataclass(frozen=True)
class FolderValue:
    """A column that a folder's name gives, ``country=BE``; None for no value."""

    name: str
    value: str | int | None
    whole: bool

    @property
    def type(self) -> ArrowType:
        """int64, or text."""
        return pyarrow().int64() if self.whole else pyarrow().string()

    def column(self, rows: int) -> ArrowArray:
        """The same value ``rows`` times."""
        pa = pyarrow()
        if self.value is None:
            return pa.nulls(rows, self.type)
        codes = pa.array(np.zeros(rows, np.int8))
        return pa.DictionaryArray.from_arrays(codes, pa.array([self.value], self.type))


@dataclass(frozen=True, eq=False)
class FilePiece(Piece):
    """A piece that also tells what was left out of it: the first ``messages``.

    ``skipped_files``: files, or parts of them, whose rows nobody could count.
    """

    messages: tuple[str, ...] = ()
    skipped_files: int = 0


@dataclass(frozen=True, eq=False)
class Taken:
    """A piece, and the key columns of its rows."""

    piece: FilePiece
    keys: ArrowTable


@dataclass(frozen=True)
class FilePartition:
    """``chunks`` of a file, and the ``rows`` of each where known; ``types`` by column.

    ``called``: what columns are called in this file, by the name by which they are wanted.
    """

    root: Root
    file: File
    format: str
    chunks: tuple[int, ...]
    rows: tuple[int | None, ...]
    types: tuple[tuple[str, ArrowType], ...]
    folders: tuple[FolderValue, ...]
    wanted: Wanted
    whole: bool
    called: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """For errors and progress."""
        if self.whole or not self.chunks:
            return self.file.path
        first, last = self.chunks[0], self.chunks[-1]
        unit = READERS[self.format].unit
        numbers = f" {first}" if first == last else f"s {first} to {last}"
        return f"{self.file.path}, {unit}{numbers}"

    def pieces(self) -> Iterator[FilePiece]:
        """The rows, checked; ``InvalidInput`` names the first that are wrong, or none are."""
        for taken in self.taken():
            yield taken.piece

    def taken(self) -> Iterator[Taken]:
        """The rows with their keys."""
        # Whoever frees a block of this size, untouched, has glibc keep as much for the arrays of
        # one batch after another; else pages are given back and fetched again each time.
        np.empty(KEPT_BYTES, np.uint8)
        for batch in self._batches():
            deadline.check()
            if isinstance(batch, Batch):
                found = self._taken(batch)
                if found is not None:
                    yield found
            else:
                yield self._lost(batch)

    def opened(self) -> ArrowFile:
        """The file, from its start; ``Unreadable`` if it is another than was listed."""
        with readable():
            opened: ArrowFile = self.root.folders.open(self.file.place)
            size = opened.size() if self.root.remote else os.fstat(opened.fileno()).st_size
        if size != self.file.size:
            opened.close()
            raise Unreadable("has changed since it was listed")
        return opened

    def conditions(self, of: Callable[[str], ArrowArray]) -> Conditions:
        """Columns by name as the filter tests them."""
        types = dict(self.types) | {value.name: value.type for value in self.folders}
        return Conditions(types, of, f"{self.wanted.at}/filter")

    def _batches(self) -> Iterator[Batch | Broken]:
        own = dict(self.called)
        types = {own.get(name, name): kind for name, kind in self.types}
        wanted = {own.get(name, name) for name in self.wanted.coded}
        coded = [name for name, kind in types.items() if name in wanted and columns.textual(kind)]
        selection = Selection(self.chunks, self.rows, types, tuple(coded))
        try:
            yield from READERS[self.format].batches(self.opened, selection, self.root.remote)
        except Unreadable as error:
            known = [rows for rows in self.rows if rows is not None]
            lost = sum(known) if len(known) == len(self.rows) else None
            yield Broken(str(error), rows=lost)

    def _taken(self, batch: Batch) -> Taken | None:
        rows = self._as_wanted(batch.rows)
        chosen = self._chosen(rows)
        if chosen is not None:
            rows = rows.take(pyarrow().array(chosen))
        if not rows.num_rows:
            return None
        wrong = Wrong(rows.num_rows)
        for row, message in batch.wrong:
            there = np.arange(row, row + 1) if chosen is None else np.flatnonzero(chosen == row)
            wrong.add(there, lambda _, message=message: message)  # type: ignore[misc]
        return self._checked(rows, wrong, batch, chosen)

    def _checked(self, rows: ArrowTable, wrong: Wrong, batch: Batch, chosen: Codes | None) -> Taken:
        wanted = self.wanted
        matrix = columns.posteriors(rows, wanted.posteriors, wrong)
        labels = None
        if wanted.label is not None:
            labels = columns.labels(rows.column(wanted.label), wanted.classes, wrong)
        at = f"{wanted.at}/group_by"
        coded = [columns.group_column(rows.column(n), n, wrong, at) for n in wanted.group_by]
        kept = columns.checked(matrix, wrong)
        messages = self._messages(wrong, batch, chosen)
        if messages and wanted.on_error == "fail":
            raise InvalidInput(messages, wrong.count)
        some = kept.rows
        if some is not None:
            labels = None if labels is None else labels[some]
            coded = [CodedColumn(column.levels, column.codes[some]) for column in coded]
        groups, names = columns.crossed(coded, at) if coded and len(kept.values) else (None, ())
        keys = rows.select(list(wanted.keys))
        piece = FilePiece(
            kept.values,
            np.zeros(0, np.intp) if coded and groups is None else groups,
            names,
            kept.renormalised,
            rows.num_rows - len(kept.values),
            labels,
            tuple(fault.message for fault in messages),
        )
        return Taken(piece, keys if some is None else keys.take(pyarrow().array(some)))

    def _as_wanted(self, rows: ArrowTable) -> ArrowTable:
        """By the names by which columns are wanted, those that folders give too."""
        needed = [value for value in self.folders if value.name in self.wanted.needed]
        own = dict(self.called)
        if not needed and all(name == called for name, called in own.items()):
            return rows
        names = [name for name, _ in self.types]
        arrays = [rows.column(own.get(name, name)) for name in names]
        arrays += [value.column(rows.num_rows) for value in needed]
        names += [value.name for value in needed]
        return pyarrow().RecordBatch.from_arrays(arrays, names=names)

    def _chosen(self, rows: ArrowTable) -> Codes | None:
        """Rows that pass the filter; None for all."""
        if self.wanted.condition is None:
            return None
        met = self.conditions(rows.column).met(self.wanted.condition)
        mask = met.fill_null(False).to_numpy(zero_copy_only=False)
        return None if mask.all() else np.flatnonzero(mask)

    def _messages(self, wrong: Wrong, batch: Batch, chosen: Codes | None) -> list[Fault]:
        faults = []
        for row, message in wrong.first():
            there = row if chosen is None else int(chosen[row])
            chunk, number = batch.spread.place(there)
            faults.append(self._fault(message, chunk, number))
        return faults

    def _fault(self, message: str, chunk: int | None, row: int | None) -> Fault:
        unit = READERS[self.format].unit
        place = [self.file.path]
        place += [f"{unit} {chunk}"] if unit and chunk is not None else []
        place += [f"row {row}"] if row is not None else []
        return Fault(self.wanted.at, f"{', '.join(place)}: {message}", row)

    def _lost(self, broken: Broken) -> Taken:
        """What could not be read: an error, or counted."""
        fault = self._fault(broken.message, broken.chunk, broken.row)
        if broken.row is None:
            fault = self._fault(f"cannot be read: {broken.message}", broken.chunk, None)
        if self.wanted.on_error == "fail":
            raise InvalidInput([fault])
        piece = FilePiece(
            np.empty((0, len(self.wanted.classes))),
            np.zeros(0, np.intp) if self.wanted.group_by else None,
            labels=None if self.wanted.label is None else np.zeros(0, np.intp),
            skipped=broken.rows or 0,
            messages=(fault.message,),
            skipped_files=int(broken.rows is None),
        )
        types = dict(self.types) | {value.name: value.type for value in self.folders}
        keys = {name: pyarrow().array([], types[name]) for name in self.wanted.keys}
        return Taken(piece, pyarrow().RecordBatch.from_pydict(keys))


@dataclass(frozen=True)
class Counts:
    """What was read and what was left out, with the first messages."""

    rows: int = 0
    renormalised: int = 0
    skipped_rows: int = 0
    skipped_files: int = 0
    messages: tuple[str, ...] = ()

    def plus(self, piece: Piece) -> "Counts":
        """With one more piece."""
        files, messages = 0, tuple[str, ...]()
        if isinstance(piece, FilePiece):
            files, messages = piece.skipped_files, piece.messages
        rows = len(piece.posteriors)
        return self.and_(Counts(rows, piece.renormalised, piece.skipped, files, messages))

    def and_(self, other: "Counts") -> "Counts":
        """Both together."""
        return Counts(
            self.rows + other.rows,
            self.renormalised + other.renormalised,
            self.skipped_rows + other.skipped_rows,
            self.skipped_files + other.skipped_files,
            (self.messages + other.messages)[: Faults.SHOWN],
        )
