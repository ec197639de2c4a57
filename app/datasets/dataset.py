"""From what a caller asks for to partitions: files, their columns, and parts of bounded size.

    resolved = resolve(Roots.of(settings.data_roots), Asked("scores/2026-01/*.parquet"), classes)
    for partition in resolved.partitions:        # picklable; on any worker that sees the roots
        for piece in partition.pieces():         # n × C posteriors, groups, labels
            counts = counts.plus(piece)

Every footer is read and checked before work starts, so that a column that is missing somewhere is
known at once. ``folder=value`` in a path gives a column to filter and group by, a whole number
where all of them are, and stands before a column of that name in the files.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import unquote

from app.core import budget
from app.core.errors import Faults, InvalidInput
from app.datasets import columns, filters, parquet
from app.datasets.arrow import pyarrow
from app.datasets.conditions import Conditions, possible
from app.datasets.listing import File, Listing
from app.datasets.partition import (
    READERS,
    SUFFIXES,
    Counts,
    FilePartition,
    FolderValue,
    Wanted,
)
from app.datasets.reading import Chunk, Survey, Unreadable
from app.datasets.roots import Root, Roots

PARTITION_ROWS = 1_000_000
PARTITION_BYTES = 128 * 1024 * 1024
MOST_GROUP_COLUMNS = 4
AHEAD = 8
"""Footers that are read at a time."""
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Asked:
    """A data set in a caller's words. ``columns``: by class, the class's own name if not there.

    ``label``: a column of class names. ``keys``: columns that pass through beside the rows.
    ``on_error``: whether a row or file that is wrong ends the work, or is left out and counted.
    """

    path: str
    columns: Mapping[str, str] | None = None
    label: str | None = None
    group_by: tuple[str, ...] = ()
    filter: str | None = None
    keys: tuple[str, ...] = ()
    on_error: Literal["fail", "skip"] = "fail"


@dataclass(frozen=True)
class Resolved:
    """Partitions in order, and what was left out already.

    ``rows``: before the filter, None where a format does not tell. ``single``: whether all
    posteriors are float32. ``digest``: of the files, their sizes and what is read of them.
    """

    partitions: tuple[FilePartition, ...]
    rows: int | None
    single: bool
    skipped: Counts
    digest: str


def resolve(roots: Roots, asked: Asked, classes: Sequence[str], at: str = "/dataset") -> Resolved:
    """The partitions of a data set; ``InvalidInput`` below the pointer ``at``."""
    pyarrow()
    wanted = _wanted(asked, classes, at)
    root, path = roots.find(asked.path, f"{at}/path")
    files = Listing(root.folders, tuple(SUFFIXES), f"{at}/path").files(path)
    folders = _folder_values(files)
    plans = [_Plan(root, file, wanted, folders[file]) for file in files]
    plans = [plan for plan in plans if plan.possible()]
    if not plans:
        raise InvalidInput.at(f"{at}/filter", "passes no file: no folder's name suits it")
    with ThreadPoolExecutor(AHEAD) as pool:
        looked = [_waited(found) for found in [pool.submit(plan.looked) for plan in plans]]
    return _resolved(looked, wanted)


@dataclass(frozen=True)
class Looked:
    """A file after a look at its footer; ``problem``: why it cannot be read.

    ``place``: what the problem is of, below the data set's pointer.
    """

    file: File
    partitions: tuple[FilePartition, ...] = ()
    rows: int | None = 0
    problem: str | None = None
    place: str = ""


@dataclass(frozen=True)
class _Plan:
    """A file before its footer has been read."""

    root: Root
    file: File
    wanted: Wanted
    folders: tuple[FolderValue, ...]

    def possible(self) -> bool:
        """Whether the names of its folders leave a row that passes the filter."""
        if self.wanted.condition is None:
            return True
        values = {value.name: value for value in self.folders}
        types = {name: value.type for name, value in values.items()}
        at = f"{self.wanted.at}/filter"
        known = Conditions(types, lambda name: values[name].column(1), at)
        return possible(self.wanted.condition, known)

    def looked(self) -> Looked:
        """With its footer."""
        kind = next(f for suffix, f in SUFFIXES.items() if self.file.path.endswith(suffix))
        bare = FilePartition(
            self.root, self.file, kind, (), (), (), self.folders, self.wanted, whole=True
        )
        try:
            found = READERS[kind].survey(bare.opened, self.file.size, self.wanted.needed)
            problem = self._problem(found.types)
            if problem is not None:
                rows = _rows(found.chunks)
                return Looked(self.file, rows=rows, problem=problem)
            here = {value.name for value in self.folders}
            types = tuple((n, found.types[n]) for n in sorted(self.wanted.needed.keys() - here))
            skipped = self._unneeded(replace(bare, types=types))
        except Unreadable as error:
            return Looked(self.file, rows=None, problem=f"cannot be read: {error}")
        except InvalidInput as error:
            return Looked(self.file, rows=None, problem=error.faults[0].message, place="/filter")
        parts = tuple(
            replace(
                bare,
                types=types,
                chunks=chunks,
                rows=tuple(found.chunks[k].rows for k in chunks),
                whole=len(chunks) == len(found.chunks),
            )
            for chunks in _parts(found, skipped)
        )
        return Looked(self.file, parts, _rows(found.chunks))

    def _unneeded(self, part: FilePartition) -> frozenset[int]:
        """Chunks in which no row passes the filter."""
        if self.wanted.condition is None:
            return frozenset()
        import pyarrow.compute as pc

        values = {value.name: value for value in self.folders}

        def of(name: str) -> Any:
            if name in values:
                return pc.scalar(pyarrow().scalar(values[name].value, values[name].type))
            return pc.field(name)

        condition = part.conditions(of).met(self.wanted.condition)
        if part.format != "parquet":
            return frozenset()
        return parquet.unneeded(part.opened, condition)

    def _problem(self, types: Mapping[str, Any]) -> str | None:
        """What is wrong with the columns of a file."""
        here = {value.name: value.type for value in self.folders}
        for name in self.wanted.posteriors:
            if name in here or name not in types:
                return f"has no column {name[:80]!r}"
            if not columns.numeric(types[name]):
                return f"column {name[:80]!r} is of type {_short(types[name])}; send numbers"
        merged = {**types, **here}
        for name in sorted(self.wanted.needed):
            if name not in merged:
                return f"has no column {name[:80]!r}"
        label = self.wanted.label
        if label is not None and not columns.textual(merged[label]):
            kind = _short(merged[label])
            return f"column {label[:80]!r} is of type {kind}; labels are strings"
        for name in self.wanted.group_by:
            if not columns.groupable(merged[name]):
                kind = _short(merged[name])
                return f"column {name[:80]!r} is of type {kind}; group by text or whole numbers"
        for name in self.wanted.keys:
            if pyarrow().types.is_nested(merged[name]):
                return f"column {name[:80]!r} is of type {_short(merged[name])}; pass plain keys"
        return None


def _wanted(asked: Asked, classes: Sequence[str], at: str) -> Wanted:
    faults = Faults()
    mapping = dict(asked.columns or {})
    for name in mapping:
        if name not in classes:
            faults.add(f"{at}/columns", f"{name[:80]!r} is no class of the model")
    posteriors = tuple(mapping.get(name, name) for name in classes)
    once = [*posteriors, *([] if asked.label is None else [asked.label])]
    for place, names in (("columns", once), ("group_by", asked.group_by), ("keys", asked.keys)):
        for name in {name for name in names if list(names).count(name) > 1}:
            faults.add(f"{at}/{place}", f"names column {name[:80]!r} twice")
    if len(asked.group_by) > MOST_GROUP_COLUMNS:
        faults.add(f"{at}/group_by", f"names more than {MOST_GROUP_COLUMNS} columns")
    faults.raise_if_any()
    condition = None if asked.filter is None else filters.parse(asked.filter, f"{at}/filter")
    return Wanted(
        tuple(classes),
        posteriors,
        asked.label,
        asked.group_by,
        condition,
        asked.keys,
        asked.on_error,
        at,
    )


def _folder_values(files: Iterable[File]) -> dict[File, tuple[FolderValue, ...]]:
    found: dict[File, dict[str, str | None]] = {}
    texts: dict[str, set[str]] = {}
    for file in files:
        values = found.setdefault(file, {})
        for segment in file.place[:-1]:
            name, equals, value = segment.partition("=")
            if equals and name:
                text = None if value == NO_VALUE else unquote(value)
                values[unquote(name)] = text
                texts.setdefault(unquote(name), set()).update([] if text is None else [text])
    whole = {name for name, values in texts.items() if values and all(map(_is_whole, values))}
    return {
        file: tuple(
            FolderValue(n, int(v) if n in whole and v is not None else v, n in whole)
            for n, v in values.items()
        )
        for file, values in found.items()
    }


def _is_whole(text: str) -> bool:
    """Whether a number is written as int64 would be: 01 stays text."""
    digits = text.removeprefix("-")
    plain = digits.isascii() and digits.isdigit() and len(digits) <= 18
    return plain and str(int(text)) == text


def _parts(found: Survey, unneeded: frozenset[int]) -> Iterable[tuple[int, ...]]:
    """Runs of chunks of bounded size; an empty file is one part without rows."""
    part: list[int] = []
    rows = size = 0
    parts = []
    for k, chunk in enumerate(found.chunks):
        if k in unneeded:
            continue
        rows, size = rows + (chunk.rows or 0), size + chunk.bytes
        if part and (rows > PARTITION_ROWS or size > PARTITION_BYTES):
            parts.append(tuple(part))
            part, rows, size = [], chunk.rows or 0, chunk.bytes
        part.append(k)
    return [*parts, tuple(part)]


def _rows(chunks: Sequence[Chunk]) -> int | None:
    counts = [chunk.rows for chunk in chunks if chunk.rows is not None]
    return sum(counts) if len(counts) == len(chunks) else None


def _waited(future: Any) -> Looked:
    budget.check()
    found: Looked = future.result()
    return found


def _resolved(looked: Sequence[Looked], wanted: Wanted) -> Resolved:
    looked = _same_keys(looked, wanted)
    faults = Faults()
    skipped = Counts()
    for file in looked:
        if file.problem is not None:
            message = f"{file.file.path}: {file.problem}"
            faults.add(f"{wanted.at}{file.place}", message)
            lost = file.rows or 0
            skipped = skipped.and_(Counts(skipped_rows=lost, skipped_files=1, messages=(message,)))
    if wanted.on_error == "fail" or skipped.skipped_files == len(looked):
        faults.raise_if_any()
    good = [file for file in looked if file.problem is None]
    partitions = tuple(part for file in good for part in file.partitions)
    counts = [file.rows for file in good if file.rows is not None]
    kinds = {kind for part in partitions for n, kind in part.types if n in wanted.posteriors}
    return Resolved(
        partitions,
        sum(counts) if len(counts) == len(good) else None,
        columns.single(tuple(kinds)),
        skipped,
        _digest(partitions, wanted),
    )


def _same_keys(looked: Sequence[Looked], wanted: Wanted) -> list[Looked]:
    """Keys are of one type in all files, since they are written to one table."""
    first: dict[str, Any] = {}
    found = []
    for file in looked:
        types = dict(file.partitions[0].types) if file.partitions else {}
        other = [
            name
            for name in wanted.keys
            if name in types and first.setdefault(name, types[name]) != types[name]
        ]
        if other:
            kinds = f"{_short(types[other[0]])}, elsewhere of type {_short(first[other[0]])}"
            problem = f"column {other[0][:80]!r} is of type {kinds}"
            file = Looked(file.file, rows=file.rows, problem=problem)
        found.append(file)
    return found


def _digest(partitions: Sequence[FilePartition], wanted: Wanted) -> str:
    found = hashlib.sha256(json.dumps([str(wanted)]).encode())
    for part in partitions:
        place = [part.root.where, part.file.path, part.file.size, part.chunks, part.rows]
        found.update(json.dumps(place).encode())
    return found.hexdigest()


def _short(kind: Any) -> str:
    return str(kind)[:40]
