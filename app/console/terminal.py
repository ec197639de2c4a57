r"""The terminal, the only place where words are printed; those from outside stay words there.

Names of classes, columns, files and keys, and whatever a service answers, may hold anything: Rich's
markup, codes that steer a terminal, line breaks, characters that turn the order of others around.
``Terminal`` takes nothing for markup and shows such characters by their codes, as ``\x1b``.
"""

import io
import json
import sys
import unicodedata
from typing import Any

from rich.console import Console
from rich.text import Text

UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories that steer rather than show: controls, formats, halves of pairs, separators."""
JOINERS = "\u200c\u200d"
"""Formats that words and pictures of some scripts are written with; they steer nothing."""


def plain(text: str) -> str:
    """The same on one line, with codes in place of characters that cannot be seen."""
    if text.isprintable():
        return text
    return "".join(_code(char) if _unseen(char) else char for char in text)


class Terminal(Console):
    """Standard output, or standard error; every string that it prints or measures is plain."""

    def __init__(self, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """All strings come by here, cells of tables too."""
        return super().render_str(plain(text), **{**options, "markup": False, "emoji": False})

    def say(self, text: str, style: str | None = None) -> None:
        """One line, however long, so that it can be searched and copied."""
        self.print(text, style=style, soft_wrap=True)


def say(text: str = "") -> None:
    """A line on standard output."""
    Terminal().say(text)


def complain(message: str) -> None:
    """Say on standard error what went wrong."""
    Terminal(stderr=True).say(f"priorshift: {message}", "red")


def write_json(content: object) -> None:
    """JSON on one line, which a program reads as it was; what cannot be seen is escaped in it."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    text = json.dumps(content, ensure_ascii=encoding != "utf8")
    if not text.isprintable():
        text = "".join(json.dumps(char)[1:-1] if _unseen(char) else char for char in text)
    sys.stdout.write(text + "\n")


def lenient() -> None:
    """Have this process's output show by its code what its encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _unseen(char: str) -> bool:
    return unicodedata.category(char) in UNSEEN and char not in JOINERS


def _code(char: str) -> str:
    return char.encode("unicode_escape").decode()
