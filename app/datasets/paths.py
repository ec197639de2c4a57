"""Paths as callers write them: relative to a root, in plain text, with a few wildcards.

``[root:]folder/…/name``; in names ``*``, ``?`` and ``[…]`` stand for characters, and one folder
may be ``**``, any number of folders. Everything that a shell, a URL or a file system might read as
something else is refused, so that a path means one thing wherever it is read.
"""

import re
from dataclasses import dataclass

from app.core.errors import InvalidInput

LONGEST = 1024
MOST_SEGMENTS = 32
ROOT = re.compile(r"([A-Za-z0-9][A-Za-z0-9+._-]*):")
WILD = re.compile(r"[*?\[\]]")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
REFUSED = {
    "\\": "a backslash; part folders with /",
    "%": "a percent sign; write names as they are, not encoded",
    "$": "a dollar sign; variables are not replaced",
}


@dataclass(frozen=True)
class Path:
    """``root``: its name, None where none was given; ``segments`` below it, as patterns.

    ``folder``: whether it ended in a slash.
    """

    root: str | None
    segments: tuple[str, ...]
    folder: bool = False

    @property
    def plain(self) -> bool:
        """Whether it names one file or folder, without wildcards."""
        return not any(map(wild, self.segments))


def wild(segment: str) -> bool:
    """Whether a pattern may stand for several names."""
    return WILD.search(segment) is not None


def parse(text: str, at: str) -> Path:
    """The path in ``text``; ``InvalidInput`` at the pointer ``at`` for what is none."""
    if not text:
        raise InvalidInput.at(at, "is empty; name a file, a folder or a pattern")
    if len(text) > LONGEST:
        raise InvalidInput.at(at, f"is longer than {LONGEST} characters")
    if CONTROL.search(text):
        raise InvalidInput.at(at, "holds a control character or a lone surrogate")
    for character, what in REFUSED.items():
        if character in text:
            raise InvalidInput.at(at, f"holds {what}")
    root = ROOT.match(text)
    rest = text[root.end() :] if root is not None else text
    if rest.startswith("/"):
        message = "is absolute; give a path relative to a root of the operator's, no URL"
        raise InvalidInput.at(at, message)
    folder = rest.endswith("/")
    segments = tuple(rest.removesuffix("/").split("/"))
    _checked(segments, at)
    return Path(None if root is None else root[1], segments, folder)


def _checked(segments: tuple[str, ...], at: str) -> None:
    if len(segments) > MOST_SEGMENTS:
        raise InvalidInput.at(at, f"is more than {MOST_SEGMENTS} folders deep")
    if segments.count("**") > 1:
        raise InvalidInput.at(at, "has ** more than once")
    for segment in segments:
        if segment in ("", ".", ".."):
            shown = segment or "an empty name"
            raise InvalidInput.at(at, f"holds {shown} between slashes; name folders downwards")
        if segment.startswith("~"):
            raise InvalidInput.at(at, "holds a name that starts with ~; home folders are not read")
        if "**" in segment and segment != "**":
            raise InvalidInput.at(at, "has ** beside other characters; it stands for folders")
