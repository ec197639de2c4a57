"""Folders of object storage, by pyarrow's file systems and fsspec's.

Credentials are the machine's: environment, profile, instance. Objects know no links.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import ENOENT
from functools import lru_cache
from typing import Any

from app.datasets.arrow import ArrowFile, pyarrow
from app.datasets.folders import Entry, Segments

NATIVE = ("s3", "gs", "abfs")
"""What pyarrow reads itself; the rest is fsspec's."""


@dataclass(frozen=True)
class RemoteFolders:
    """Everything below a URL."""

    url: str

    def entry(self, place: Segments) -> Entry | None:
        """What is at a place, None for nothing."""
        files, base = _files(self.url)
        with _anonymous(base):
            return _entry(files.get_file_info("/".join((base, *place))))

    def entries(self, place: Segments) -> Iterator[Entry]:
        """What a folder holds, in no order."""
        from pyarrow.fs import FileSelector

        files, base = _files(self.url)
        with _anonymous(base):
            listed = files.get_file_info(FileSelector("/".join((base, *place))))
        for found in listed:
            entry = _entry(found)
            if entry is not None:
                yield entry

    def open(self, place: Segments) -> ArrowFile:
        """A file to read from."""
        files, base = _files(self.url)
        with _anonymous(base):
            return files.open_input_file("/".join((base, *place)))

    def put(self, place: Segments, content: ArrowFile) -> None:
        """Write an object in one go; ``content``: bytes or a buffer.

        It appears when it is closed. An upload that fails may leave a part of it: whoever reads it
        must be able to tell.
        """
        files, base = _files(self.url)
        if files.type_name.startswith("py::"):
            files.handler.fs.pipe_file("/".join((base, *place)), bytes(content))
            return
        with files.open_output_stream("/".join((base, *place))) as stream:
            stream.write(content)


@lru_cache(maxsize=32)
def _files(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    pyarrow()
    from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

    if url.partition("://")[0] in NATIVE:
        files, base = FileSystem.from_uri(url)
    else:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise ModuleNotFoundError("this root needs fsspec: pip install fsspec") from None
        found, base = url_to_fs(url)
        files = PyFileSystem(FSSpecHandler(found))
    return files, base.rstrip("/")


@contextmanager
def _anonymous(base: str) -> Iterator[None]:
    """Errors within do not say where the root is."""
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(ENOENT, "there is no such file") from None
    except OSError as error:
        raise OSError(str(error).replace(base.strip("/"), "…")) from None


def _entry(found: Any) -> Entry | None:
    from pyarrow.fs import FileType

    if found.type == FileType.NotFound:
        return None
    if found.type == FileType.Directory:
        return Entry(found.base_name, "folder", identity=found.path)
    if found.type == FileType.File:
        return Entry(found.base_name, "file", found.size)
    return Entry(found.base_name, "other")
