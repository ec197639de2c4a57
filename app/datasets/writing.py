"""Files that appear when they are whole: below the operator's output root, and nowhere else.

On a disk a file is written under another name beside its own, made durable, then renamed; folders
are made on the way, and no step follows links. Object storage shows an object when it is complete.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

from app.datasets.arrow import ArrowFile, pyarrow
from app.datasets.folders import Segments
from app.datasets.local import FOLDER
from app.datasets.remote import RemoteFolders
from app.datasets.roots import Root

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
UNFINISHED = ".tmp"
Fill = Callable[[ArrowFile], None]


def put(root: Root, place: Segments, fill: Fill) -> None:
    """Write a file by ``fill``, which gets it open, replacing one of its name."""
    if root.remote:
        sink = pyarrow().BufferOutputStream()
        fill(sink)
        RemoteFolders(root.where).put(place, sink.getvalue())
        return
    *folders, name = place
    with _folder(root.where, folders) as folder:
        _replace(folder, name, fill)


def make(root: Root, place: Segments) -> None:
    """A folder, unless it is there; object storage has none of its own."""
    if not root.remote:
        with _folder(root.where, list(place)):
            pass


def sweep(root: Root, place: Segments) -> None:
    """Remove what killed writers left in a folder; nobody may be writing there."""
    if root.remote:
        return
    with _folder(root.where, list(place)) as folder:
        for name in os.listdir(folder):
            if name.startswith(".part-") and name.endswith(UNFINISHED):
                os.unlink(name, dir_fd=folder)


def _replace(folder: int, name: str, fill: Fill) -> None:
    unfinished = f".{name}.{uuid4().hex}{UNFINISHED}"
    file = os.open(unfinished, NEW, 0o640, dir_fd=folder)
    try:
        with os.fdopen(file, "wb") as opened:
            fill(opened)
            opened.flush()
            os.fsync(opened.fileno())
        os.rename(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(unfinished, dir_fd=folder)
        raise
    os.fsync(folder)


@contextmanager
def _folder(root: str, below: list[str]) -> Iterator[int]:
    """A folder, open, made where it is missing."""
    folder = os.open(os.path.realpath(root), FOLDER)
    try:
        for name in below:
            with suppress(FileExistsError):
                os.mkdir(name, 0o750, dir_fd=folder)
            inner = os.open(name, FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)
