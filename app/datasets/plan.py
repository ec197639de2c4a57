"""Files before work starts: what their folders say, what their footers say, in which parts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote

from app.core.errors import InvalidInput
from app.core.names import composed
from app.core.sheets import Header
from app.datasets import columns
from app.datasets.arrow import ArrowType, pyarrow
from app.datasets.conditions import Conditions, possible
from app.datasets.listing import File
from app.datasets.partition import READERS, SUFFIXES, FilePartition, FolderValue, Wanted
from app.datasets.reading import Chunk, Survey, Unreadable
from app.datasets.roots import Root

PARTITION_ROWS = 1_000_000
PARTITION_BYTES = 128 * 1024 * 1024
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


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
class Plan:
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
            header = Header(found.types, sheet=kind == "csv")
            there = {n: header.find(n) for n in self.wanted.needed}
            called = {n: own for n, own in there.items() if own is not None}
            known = {**found.types, **{n: found.types[own] for n, own in called.items()}}
            problem = self._problem(known)
            if problem is not None:
                rows = _rows(found.chunks)
                return Looked(self.file, rows=rows, problem=problem)
            here = {value.name for value in self.folders}
            types = tuple((n, known[n]) for n in sorted(self.wanted.needed.keys() - here))
            bare = replace(bare, types=types, called=tuple(called.items()))
            self._tested(bare)
        except Unreadable as error:
            return Looked(self.file, rows=None, problem=f"cannot be read: {error}")
        except InvalidInput as error:
            return Looked(self.file, rows=None, problem=error.faults[0].message, place="/filter")
        parts = tuple(
            replace(
                bare,
                chunks=chunks,
                rows=tuple(found.chunks[k].rows for k in chunks),
                whole=len(chunks) == len(found.chunks),
            )
            for chunks in _parts(found)
        )
        return Looked(self.file, parts, _rows(found.chunks))

    def _tested(self, part: FilePartition) -> None:
        """``InvalidInput`` for a filter that does not suit the types of the columns."""
        if self.wanted.condition is not None:
            import pyarrow.compute as pc

            part.conditions(pc.field).met(self.wanted.condition)

    def _problem(self, types: Mapping[str, ArrowType]) -> str | None:
        """What is wrong with the columns of a file."""
        here = {value.name: value.type for value in self.folders}
        for name in self.wanted.posteriors:
            if name in here or name not in types:
                return f"has no column {name[:80]!r}"
            if not columns.numeric(types[name]):
                return f"column {name[:80]!r} is of type {short(types[name])}; send numbers"
        merged = {**types, **here}
        for name in sorted(self.wanted.needed):
            if name not in merged:
                return f"has no column {name[:80]!r}"
        label = self.wanted.label
        if label is not None and not columns.spells(merged[label], self.wanted.classes):
            what = f"is of type {short(merged[label])}; labels are strings"
            return f"column {label[:80]!r} {what}, and no class is called by such a value"
        for name in self.wanted.group_by:
            if not columns.groupable(merged[name]):
                kind = short(merged[name])
                return f"column {name[:80]!r} is of type {kind}; group by text or whole numbers"
        for name in self.wanted.keys:
            if pyarrow().types.is_nested(merged[name]):
                return f"column {name[:80]!r} is of type {short(merged[name])}; pass plain keys"
        return None


def folder_values(files: Iterable[File]) -> dict[File, tuple[FolderValue, ...]]:
    """What the names of folders say of each file, whole numbers where all of a name are."""
    found: dict[File, dict[str, str | None]] = {}
    texts: dict[str, set[str]] = {}
    for file in files:
        values = found.setdefault(file, {})
        for segment in file.place[:-1]:
            name, equals, value = segment.partition("=")
            if equals and name:
                text = None if value == NO_VALUE else unquote(value)
                called = composed(unquote(name))
                values[called] = text
                texts.setdefault(called, set()).update([] if text is None else [text])
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


def _parts(found: Survey) -> Iterable[tuple[int, ...]]:
    """Runs of chunks of bounded size; an empty file is one part without rows."""
    part: list[int] = []
    rows = size = 0
    parts = []
    for k, chunk in enumerate(found.chunks):
        rows, size = rows + (chunk.rows or 0), size + chunk.bytes
        if part and (rows > PARTITION_ROWS or size > PARTITION_BYTES):
            parts.append(tuple(part))
            part, rows, size = [], chunk.rows or 0, chunk.bytes
        part.append(k)
    return [*parts, tuple(part)]


def _rows(chunks: Sequence[Chunk]) -> int | None:
    counts = [chunk.rows for chunk in chunks if chunk.rows is not None]
    return sum(counts) if len(counts) == len(chunks) else None


def short(kind: ArrowType) -> str:
    """A type in words."""
    return str(kind)[:40]
