"""What a cell of a table stands for among known names, in whichever format it came.

JSON and Parquet tell 31 from "31", CSV does not, and a column of whole numbers with a gap is
written as 31.0. So a cell stands for the name that it spells, first of all exactly.
"""

import re
from collections.abc import Mapping
from typing import Any

from app.core.names import composed

Cell = str | int | float | bool
LARGEST_WHOLE = 2**53
"""Beyond it a float64 may be another whole number than was meant."""
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", re.ASCII)
WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)


def spelled(cell: Cell) -> str:
    """Text as it is, truth as ``true``, a number with the fewest digits: 31 for 31.0."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    whole = abs(cell) <= LARGEST_WHOLE and cell == int(cell)
    return str(int(cell)) if whole else repr(cell)


def exact(cell: Any) -> bool:
    """Whether a cell is no number that a float64 may have changed, and no NaN or infinity."""
    return isinstance(cell, str | bool) or abs(cell) <= LARGEST_WHOLE


def find(cell: Cell, known: Mapping[Any, int]) -> int | None:
    """The position of the name, text or a number, that ``cell`` stands for; None for no name.

    Of "31", 31 and 31.0 each stands for either other where it is not known itself; "007" and
    "1.50" stand for themselves only. Text is looked for in Unicode's normal form C, too.
    """
    text = spelled(cell)
    candidates: list[str | float] = [text]
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        candidates.insert(0, float(cell))
    elif isinstance(cell, str) and NUMBER.fullmatch(text):
        candidates.append(float(text))
    if WHOLE.fullmatch(text):
        candidates.append(f"{text}.0")
    elif WHOLE.fullmatch(text.removesuffix(".0")):
        candidates.append(text.removesuffix(".0"))
    candidates.append(composed(text))
    places = (known[candidate] for candidate in candidates if candidate in known)
    return next(places, None)


def learn(cell: Cell, known: dict[str | float, int]) -> int:
    """The position of the name that ``cell`` spells exactly, added where it is new."""
    name = composed(cell) if isinstance(cell, str) else float(cell)
    other = spelled(cell) if not isinstance(cell, str) else _number(cell)
    if name not in known and other in known:
        name = other
    return known.setdefault(name, len(known))


def _number(text: str) -> float | str:
    return float(text) if NUMBER.fullmatch(text) else text
