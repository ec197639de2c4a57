"""What the two kinds of roots have in common: folders that are listed, files that are opened."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Literal, Protocol

from app.datasets.arrow import ArrowFile

Segments = tuple[str, ...]
"""A place below a root; none is the root itself."""


@dataclass(frozen=True)
class Entry:
    """A name in a folder; ``size`` in bytes of a file; ``identity`` of a folder, where it has one.

    ``other``: a device, a pipe, a socket. ``outside``: a link that leaves the root, or leads
    nowhere.
    """

    name: str
    kind: Literal["file", "folder", "other", "outside"]
    size: int = 0
    identity: str | None = None


class Folders(Protocol):
    """A tree of folders that is not left, whatever links say.

    Everything raises ``FileNotFoundError`` for what is not there and ``OSError`` for what cannot
    be read, with words that say nothing of where the root is.
    """

    def entry(self, place: Segments) -> Entry | None:
        """What is at a place, None for nothing."""
        ...

    def entries(self, place: Segments) -> Iterator[Entry]:
        """What a folder holds, in no order."""
        ...

    def open(self, place: Segments) -> IO[bytes] | ArrowFile:
        """A file to read from: Python's, or one of pyarrow's."""
        ...
