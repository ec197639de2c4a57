"""Lines of NDJSON that all look like the first: the same names in the same order, and numbers.

They are read in pieces, as matrices are: what stands between the numbers of a line is checked byte
by byte, and simdjson reads the numbers.
"""

import re
from collections.abc import Iterator

import numpy as np
import simdjson

from app.core.arrays import Floats
from app.formats import json
from app.formats.errors import Unparseable
from app.formats.json_matrices import NUMBERS, Body, values
from app.formats.json_reader import PIECE

TOKEN = re.compile(rb'[{,][ \t]*"(?:[^"\\]|\\.)*"[ \t]*:')
CONTROLS = bytes(sorted({*range(32)} - {*b"\t\n\r"}))
"""JSON has none of them, so that they can stand for names."""
BETWEEN = NUMBERS.replace(b"\n", b"")
LONGEST_LINE = 1 << 14


def columns(body: Body) -> dict[str, Floats] | None:
    """The columns by name, or None where the lines are not that plain."""
    first = _first(body)
    try:
        names = list(json.decode(first))
    except Unparseable:
        return None
    tokens = TOKEN.findall(first)
    if not names or len(tokens) != len(names) or len(names) > len(CONTROLS):
        return None
    parts = []
    for text in _pieces(body):
        rows = _rows(text, tokens)
        if rows is None:
            return None
        parts.append(rows)
    return dict(zip(names, np.concatenate(parts).T, strict=True))


def _first(body: Body) -> bytes:
    end = body.find(b"\n", 0, LONGEST_LINE)
    return bytes(body[: end if end >= 0 else LONGEST_LINE])


def _pieces(body: Body) -> Iterator[bytes]:
    """Whole lines, each with its end."""
    place = 0
    while place < len(body):
        stop = body.rfind(b"\n", place, place + PIECE) + 1 or len(body)
        text = bytes(body[place:stop])
        yield text if text.endswith(b"\n") else text + b"\n"
        place = stop


def _rows(text: bytes, tokens: list[bytes]) -> Floats | None:
    """Numbers of lines, n × D; None if one of them differs from ``tokens``.

    A bracket or comma and the name after it become one control character, then a bracket or comma
    alone: ``{"a":1,"b":2}`` becomes ``[1,2]``.
    """
    if len(text.translate(None, CONTROLS)) < len(text):
        return None
    marks = CONTROLS[: len(tokens)]
    for position, token in enumerate(tokens):
        text = text.replace(token, marks[position : position + 1])
    lines, line = text.count(b"\n"), marks + b"}\n"
    if text.translate(None, BETWEEN) != line * lines:
        return None
    row = b"[%b]" % (b"," * (len(tokens) - 1))
    matrix = text.translate(bytes.maketrans(line, row + b","))
    found = values(simdjson.Parser(), b"[%b]" % matrix.removesuffix(b","), row, len(tokens))
    return None if found is None else found.reshape(lines, len(tokens))
