"""Text in CSV, which spreadsheets open: an apostrophe stands before what they take for a formula.

A name like ``=HYPERLINK(…)`` becomes ``'=HYPERLINK(…)`` in a cell, and only there; a plain number
like ``-1`` is no formula. Where apostrophes stand before such a text already, it gets one more, so
that ``plain`` gives back what ``cell`` was given.
"""

import re
from collections.abc import Collection

from app.core.names import Spellings

FORMULA = re.compile("'*(?:[\t\r\n]|\\s*[=+\\-@＝＋－＠])")
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def cell(text: str) -> str:
    """The text as a cell has it."""
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def plain(text: str) -> str:
    """The text of a cell that ``cell`` wrote."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def quoted(text: str) -> str:
    """A cell between commas: in quotes where it must be."""
    text = cell(text)
    if any(sign in text for sign in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


class Header:
    """The columns of a table, found by name in whatever normal form; ``sheet``: cells of CSV.

    In a sheet a name is looked for as ``cell`` writes it, and as it is.
    """

    def __init__(self, columns: Collection[str], sheet: bool) -> None:
        self._columns = columns
        self._sheet = sheet
        self._listed = list(columns)
        self._spelled = Spellings([plain(name) for name in columns] if sheet else self._listed)

    def find(self, name: str) -> str | None:
        """What the column of this name is called; None if there is none."""
        own = self._own(name)
        if own in self._columns:
            return own
        place = self._spelled.find(name)
        return None if place is None else self._listed[place]

    def _own(self, name: str) -> str:
        written = cell(name) if self._sheet else name
        raw = name in self._columns and not name.startswith("'")
        return name if raw or written not in self._columns else written
