"""Folders of this machine, without a way out of them.

A path is first resolved, links and all, and must end below the root; then it is walked down from
the root, folder by folder, and every step refuses links. So a link that is put in its way between
the two is refused too, and what was opened is what was checked. Pipes and devices are refused
without waiting for them. (Hard links cannot be told from files: who may make one in a root may
write there.)
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from app.datasets.folders import Entry, Segments

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Outside(OSError):
    """A link that leaves the root."""


@dataclass(frozen=True)
class LocalFolders:
    """A folder of this machine, ``root``, absolute; its own links are the operator's."""

    root: str

    def entry(self, place: Segments) -> Entry | None:
        """What is at a place, None for nothing."""
        name = place[-1] if place else ""
        try:
            return self._resolved(place, name)
        except OSError as error:
            if os.path.islink(os.path.join(self.root, *place)):
                return Entry(name, "outside")
            if isinstance(error, FileNotFoundError | NotADirectoryError):
                return None
            raise

    def entries(self, place: Segments) -> Iterator[Entry]:
        """What a folder holds, in no order."""
        with self._opened(self._real(place), FOLDER) as folder, os.scandir(folder) as found:
            for item in found:
                if item.is_symlink():
                    entry = self.entry((*place, item.name))
                    if entry is not None:
                        yield entry
                    continue
                yield _entry(item.name, item.stat(follow_symlinks=False))

    def open(self, place: Segments) -> IO[bytes]:
        """A file to read from."""
        with self._opened(self._real(place), FILE) as file:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError("is no ordinary file")
            return os.fdopen(os.dup(file), "rb", buffering=0)

    def _resolved(self, place: Segments, name: str) -> Entry:
        try:
            real = self._real(place)
        except Outside:
            return Entry(name, "outside")
        with self._parent(real) as (folder, last):
            return _entry(name, os.stat(last, dir_fd=folder, follow_symlinks=False))

    def _real(self, place: Segments) -> Segments:
        """Where a place is below the root once every link is followed."""
        top = os.path.realpath(self.root)
        try:
            real = os.path.realpath(os.path.join(top, *place), strict=True)
        except OSError as error:
            raise _told(error) from None
        if real == top:
            return ()
        if not real.startswith(top.rstrip("/") + "/"):
            raise Outside("is a link that leaves its root")
        return tuple(os.path.relpath(real, top).split("/"))

    @contextmanager
    def _opened(self, real: Segments, flags: int) -> Iterator[int]:
        with self._parent(real) as (folder, last):
            file = _open(last, flags, folder)
        try:
            yield file
        finally:
            os.close(file)

    @contextmanager
    def _parent(self, real: Segments) -> Iterator[tuple[int, str]]:
        """The folder that holds a place, open, and the place's name in it."""
        folder = _open(os.path.realpath(self.root), FOLDER, None)
        try:
            for name in real[:-1]:
                below = _open(name, FOLDER, folder)
                os.close(folder)
                folder = below
            yield folder, real[-1] if real else "."
        finally:
            os.close(folder)


def _open(name: str, flags: int, folder: int | None) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        raise _told(error) from None


def _told(error: OSError) -> OSError:
    """The same error without the machine's paths."""
    return type(error)(error.errno, error.strerror)


def _entry(name: str, found: os.stat_result) -> Entry:
    if stat.S_ISDIR(found.st_mode):
        return Entry(name, "folder", identity=f"{found.st_dev}:{found.st_ino}")
    if stat.S_ISREG(found.st_mode):
        return Entry(name, "file", found.st_size)
    return Entry(name, "other")
