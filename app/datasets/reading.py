"""What the readers of all formats give: chunks of a file beforehand, batches of rows later."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

from app.datasets.arrow import ArrowFile, ArrowSchema, ArrowTable, ArrowType, pyarrow
from app.datasets.listing import reason

BATCH_ROWS = 131_072
"""Rows that are read at a time; C columns of them are a few megabytes."""


class Unreadable(Exception):
    """A file, or a part of one, that is not what its name says."""


@dataclass(frozen=True)
class Chunk:
    """A part of a file that can be read alone; ``rows``: None where only reading tells.

    ``bytes``: what its columns take in memory, about.
    """

    rows: int | None
    bytes: int


@dataclass(frozen=True)
class Survey:
    """What the footer or head of a file says: ``types`` by column, and its chunks."""

    types: Mapping[str, ArrowType]
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True)
class Spread:
    """Where the rows of a batch are, in stretches that follow each other.

    Stretch k begins at row ``starts[k]`` of the batch, the first at zero, and holds the rows of
    ``chunks[k]`` from ``firsts[k]`` on.
    """

    chunks: Sequence[int]
    starts: Sequence[int]
    firsts: Sequence[int]

    @classmethod
    def of(cls, chunk: int, first: int) -> "Spread":
        """One stretch."""
        return cls((chunk,), (0,), (first,))

    def place(self, row: int) -> tuple[int, int]:
        """The chunk of a row, and the row in it."""
        k = bisect_right(self.starts, row) - 1
        return self.chunks[k], row - self.starts[k] + self.firsts[k]


@dataclass(frozen=True)
class Batch:
    """Rows, where they are, and what the reader found wrong with some: row and message."""

    rows: ArrowTable
    spread: Spread
    wrong: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Broken:
    """A chunk that cannot be read, or no further; None: the file.

    ``rows`` of it are lost, None where nobody knows; ``row``: the one row that is meant.
    """

    message: str
    chunk: int | None = None
    rows: int | None = None
    row: int | None = None


@dataclass(frozen=True)
class Selection:
    """Which chunks of a file to read, their rows, and which columns.

    ``types``: of the columns; ``coded``: text that should come as codes and levels.
    """

    chunks: tuple[int, ...]
    rows: tuple[int | None, ...]
    types: Mapping[str, ArrowType]
    coded: tuple[str, ...]


Use = Literal["number", "text", "any"]
"""What a column is wanted as; formats without types of their own need to know."""


class FormatReader(Protocol):
    """A format. ``unit``: what its chunks are called; empty where a file is one chunk."""

    @property
    def unit(self) -> str:
        """What a chunk is called."""
        ...

    def survey(self, opened: "Opening", size: int, columns: Mapping[str, Use]) -> Survey:
        """What a file holds; ``Unreadable``."""
        ...

    def batches(
        self, opened: "Opening", selection: Selection, remote: bool
    ) -> Iterator[Batch | Broken]:
        """The rows of some chunks, in order."""
        ...


Opening = Callable[[], ArrowFile]
"""Opens the file anew."""


@contextmanager
def readable() -> Iterator[None]:
    """Whatever the library says of bad bytes becomes ``Unreadable``, in one line."""
    pa = pyarrow()
    kinds = (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError)
    try:
        yield
    except kinds as error:
        raise Unreadable(reason(error)) from None


def named(schema: ArrowSchema) -> dict[str, ArrowType]:
    """Types by column; ``Unreadable`` for two columns of one name."""
    types = dict(zip(schema.names, schema.types, strict=True))
    if len(types) < len(schema.names):
        raise Unreadable("has two columns of one name")
    return types


def source(opened: ArrowFile) -> ArrowFile:
    """A file as pyarrow reads it: by itself, where the system has a name for what is open.

    Otherwise every page goes through a Python object, while all other threads wait.
    """
    pa = pyarrow()
    if isinstance(opened, pa.NativeFile):
        return opened
    try:
        return pa.OSFile(f"/dev/fd/{opened.fileno()}")
    except OSError:
        return pa.PythonFile(opened, mode="r")
