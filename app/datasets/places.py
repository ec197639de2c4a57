"""Where outputs may lie: apart from each other, by whatever name, and from what is read for them.

File systems differ in what they take for one name: some do not tell a from A, or an accented letter
from a letter and its accent. Outputs that differ in nothing else are the same here, wherever it is,
since what one writes may be moved to the other.
"""

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from unicodedata import normalize

from app.core import deadline
from app.datasets.folders import Entry, Segments
from app.datasets.listing import HIDDEN
from app.datasets.paths import Path, wild
from app.datasets.roots import Root

DONE = "_SUCCESS"
PART = re.compile(r"part-\d{5,}\.parquet")


def folded(place: Segments) -> Segments:
    """The same for all spellings of a place."""
    return tuple(normalize("NFC", normalize("NFC", name).casefold()) for name in place)


def overlap(one: Segments, other: Segments) -> bool:
    """Whether two places are the same, or one lies in the other."""
    return all(a == b for a, b in zip(folded(one), folded(other), strict=False))


def occupied(root: Root, place: Segments, fresh: bool) -> str | None:
    """Why what folders hold forbids an output at ``place``; None if nothing does.

    ``fresh``: also what the folder itself holds, in this very spelling.
    """
    link = _link(root, place)
    if link is not None:
        return f"leads through {link!a}, which is a link; name the folder itself"
    above: list[Segments] = [()]
    for depth, name in enumerate(place, 1):
        last = depth == len(place)
        found = [(*base, entry.name) for base in above for entry in _named(root, base, name)]
        for folder in found:
            if folder == place and not fresh:
                continue
            held = next(_holding(root, folder, anything=last), None)
            if held is not None:
                where = "is" if last else "lies in"
                shown = "/".join(folder)
                return f"{where} {shown!a}, which holds other files, {held[:80]!a}; name a new one"
        above = found
    return None


def read_again(root: Root, place: Segments, data: Root, path: Path) -> bool:
    """Whether what is written at ``place`` below ``root`` is found by a data set's ``path``."""
    whole = (*_absolute(root), *place, "part-00000.parquet")
    base = _absolute(data)
    if whole[: len(base)] != base:
        return False
    return _found(path.segments, path.folder, whole[len(base) :])


def _found(patterns: Segments, folder: bool, place: Segments) -> bool:
    """Whether a listing by ``patterns`` comes upon ``place``."""
    head, rest = patterns[0], patterns[1:]
    if head == "**":
        if not rest:
            return not any(map(_hidden, place))
        depths = range(len(place))
        return any(
            _found(rest, folder, place[k:]) for k in depths if not any(map(_hidden, place[:k]))
        )
    name, below = place[0], place[1:]
    if not (fnmatchcase(name, head) if wild(head) else name == head):
        return False
    if wild(head) and _hidden(name) and name[0] != head[0]:
        return False
    if rest:
        return bool(below) and _found(rest, folder, below)
    if not below:
        return not folder
    return (folder or not wild(head)) and not any(map(_hidden, below))


def _hidden(name: str) -> bool:
    return name.startswith(HIDDEN)


def _absolute(root: Root) -> Segments:
    where = root.where if root.remote else os.path.realpath(root.where)
    return tuple(where.rstrip("/").split("/"))


def _link(root: Root, place: Segments) -> str | None:
    """The first name on the way that is a link."""
    here = "" if root.remote else os.path.realpath(root.where)
    for name in () if root.remote else place:
        here = os.path.join(here, name)
        if os.path.islink(here):
            return name
    return None


def _named(root: Root, base: Segments, name: str) -> Iterator[Entry]:
    """Folders in ``base`` of this name, in any spelling."""
    wanted = folded((name,))
    for entry in _listed(root, base):
        if entry.kind == "folder" and folded((entry.name,)) == wanted:
            yield entry


def _holding(root: Root, folder: Segments, anything: bool) -> Iterator[str]:
    """Names in a folder that an output there, or below it, would be mixed up with."""
    for entry in _listed(root, folder):
        other = anything and not entry.name.startswith(".")
        if other or entry.name == DONE or PART.fullmatch(entry.name):
            yield entry.name


def _listed(root: Root, folder: Segments) -> Iterator[Entry]:
    try:
        for entry in root.folders.entries(folder):
            deadline.check()
            yield entry
    except FileNotFoundError:
        return
