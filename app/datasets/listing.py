"""From a path to its files: one file, a folder with all below it, or a pattern.

Names that start with a dot or an underscore are hidden, as everywhere in data lakes, unless a
pattern spells that character. Of a folder only files with a known suffix count, of a pattern
those that match. What matches and leads out of the root, or is no ordinary file, is an error:
data must not go missing silently. A folder that links lead to twice is read once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from app.core import deadline
from app.core.errors import InvalidInput
from app.datasets.folders import Entry, Folders, Segments
from app.datasets.paths import MOST_SEGMENTS, Path, wild

MOST_FILES = 100_000
MOST_LOOKED_AT = 1_000_000
"""Names that are looked at for one path."""
HIDDEN = (".", "_")


@dataclass(frozen=True)
class File:
    """A file below a root, and its bytes when it was found."""

    place: Segments
    size: int

    @property
    def path(self) -> str:
        """The place in words."""
        return "/".join(self.place)


class Listing:
    """One search below ``folders``, for errors at the pointer ``at``."""

    def __init__(
        self, folders: Folders, suffixes: tuple[str, ...], at: str, most: int = MOST_FILES
    ) -> None:
        self.folders = folders
        self.suffixes = suffixes
        self.at = at
        self.most = most
        self._looked_at = 0

    def files(self, path: Path) -> list[File]:
        """Files in order of their path; at least one."""
        found: dict[Segments, File] = {}
        try:
            for file in self._from((), path.segments, path.folder):
                found[file.place] = file
                if len(found) > self.most:
                    raise InvalidInput.at(self.at, f"stands for more than {self.most} files")
        except OSError as error:
            raise InvalidInput.at(self.at, f"cannot be listed: {reason(error)}") from None
        if not found:
            kinds = ", ".join(self.suffixes)
            raise InvalidInput.at(self.at, f"stands for no file; files end in {kinds}")
        return [found[place] for place in sorted(found)]

    def _from(self, base: Segments, patterns: Segments, folder: bool) -> Iterator[File]:
        """Files that the rest of a path, ``patterns``, stands for below ``base``."""
        head, rest = patterns[0], patterns[1:]
        if head == "**":
            if rest:
                yield from self._within(self._walked(base, self._seen(base)), rest, folder)
            else:
                yield from self._below(base)
            return
        for entry in self._matching(base, head):
            place = (*base, entry.name)
            self._ordinary(entry, place)
            if rest and entry.kind == "folder":
                yield from self._from(place, rest, folder)
            elif not rest and entry.kind == "folder":
                # A pattern means files, a name may mean a folder.
                if folder or not wild(head):
                    yield from self._below(place)
            elif not rest and not folder:
                yield self._file(entry, place)

    def _within(self, below: Iterator[Segments], rest: Segments, folder: bool) -> Iterator[File]:
        for place in below:
            yield from self._from(place, rest, folder)

    def _below(self, base: Segments) -> Iterator[File]:
        """All files of known kinds below a folder."""
        for place in self._walked(base, self._seen(base)):
            for entry in self._visible(place):
                if entry.kind != "folder" and self._known(entry.name):
                    self._ordinary(entry, (*place, entry.name))
                    yield self._file(entry, (*place, entry.name))

    def _seen(self, base: Segments) -> set[str | None]:
        entry = self.folders.entry(base)
        return set() if entry is None else {entry.identity}

    def _walked(self, base: Segments, seen: set[str | None]) -> Iterator[Segments]:
        """A folder and all below it, each once: a link may lead back up."""
        if len(base) > MOST_SEGMENTS:
            raise InvalidInput.at(self.at, f"leads more than {MOST_SEGMENTS} folders deep")
        yield base
        for entry in sorted(self._visible(base), key=lambda entry: entry.name):
            if entry.kind == "outside" and not self._known(entry.name):
                self._ordinary(entry, (*base, entry.name))
            if entry.kind != "folder" or entry.identity in seen:
                continue
            seen.add(entry.identity)
            yield from self._walked((*base, entry.name), seen)

    def _visible(self, place: Segments) -> Iterator[Entry]:
        for entry in self._listed(place):
            if not entry.name.startswith(HIDDEN):
                yield entry

    def _matching(self, base: Segments, pattern: str) -> Iterator[Entry]:
        if not wild(pattern):
            entry = self.folders.entry((*base, pattern))
            if entry is not None:
                yield entry
            return
        for entry in self._listed(base):
            hidden = entry.name.startswith(HIDDEN) and entry.name[0] != pattern[0]
            if not hidden and fnmatchcase(entry.name, pattern):
                yield entry

    def _listed(self, place: Segments) -> Iterator[Entry]:
        for entry in self.folders.entries(place):
            deadline.check()
            self._looked_at += 1
            if self._looked_at > MOST_LOOKED_AT:
                message = f"leads past more than {MOST_LOOKED_AT} names; be more precise"
                raise InvalidInput.at(self.at, message)
            yield entry

    def _ordinary(self, entry: Entry, place: Segments) -> None:
        shown = "/".join(place).encode(errors="replace").decode()
        if entry.kind == "outside":
            raise InvalidInput.at(self.at, f"{shown} is a link that leaves its root")
        if entry.kind == "other":
            raise InvalidInput.at(self.at, f"{shown} is no ordinary file")
        if not "".join(place).isprintable():
            raise InvalidInput.at(self.at, f"{shown!a} is a name that cannot be shown")

    def _file(self, entry: Entry, place: Segments) -> File:
        if not self._known(entry.name):
            kinds = ", ".join(self.suffixes)
            raise InvalidInput.at(self.at, f"{'/'.join(place)} must end in one of {kinds}")
        return File(place, entry.size)

    def _known(self, name: str) -> bool:
        return name.endswith(self.suffixes)


def reason(error: BaseException) -> str:
    """An error in one line, without the machine's paths where the system adds them."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = str(error)
    return text.splitlines()[0][:200] if text else type(error).__name__
