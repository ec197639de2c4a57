"""Large matrices and columns of numbers in JSON, read in pieces.

A JSON parser makes an object of every number and keeps the interpreter to itself until it has read
them all. Here they are read 128 KiB at a time by simdjson, straight into float64, and checked, so
that other requests go on meanwhile. Whatever is not plainly a matrix, or an object of columns, of
JSON numbers is left to the parser.
"""

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import simdjson

from app.core.prevalence.arrays import Floats

LARGE = 32_768
"""Bytes from which a matrix is worth it; more than anything that is stored as JSON."""
PIECE = 1 << 17
START = re.compile(
    rb'"(?:posteriors|features)"[ \t\n\r]*:[ \t\n\r]*(?=\[[ \t\n\r]*\[|\{[ \t\n\r]*")'
)
COLUMN = re.compile(rb'[ \t\n\r]*"(?:[^"\\]|\\.){0,400}"[ \t\n\r]*:[ \t\n\r]*(?=\[)')
NEXT = re.compile(rb"[ \t\n\r]*,")
CLOSE = re.compile(rb"[ \t\n\r]*\]")
END = re.compile(rb"\][ \t\n\r]*\]")
OPEN = ord("[")
SPACE = b" \t\n\r"
NUMBERS = b"0123456789+-.eE" + SPACE
"""What numbers are made of; without it, a piece is its brackets and commas."""

Body = bytes | bytearray


@dataclass(frozen=True)
class Lifted:
    """JSON in which large matrices and columns are names, and they by these names."""

    text: bytes
    matrices: dict[str, Floats]


def lifted(body: Body) -> Lifted:
    """Take the large matrices and columns out of a body."""
    nonce = secrets.token_hex(16)
    found: dict[str, Floats] = {}
    parts: list[bytes] = []
    done = place = 0
    while (match := START.search(body, place)) is not None:
        place = match.end()
        for start, end, values in _there(body, place):
            if end - start >= LARGE:
                name = f"{nonce}{len(found)}"
                found[name] = values
                parts += [bytes(body[done:start]), f'"{name}"'.encode()]
                done = place = end
    parts.append(bytes(body[done:]))
    return Lifted(b"".join(parts), found)


def _there(body: Body, place: int) -> Iterator[tuple[int, int, Floats]]:
    """The matrix, or the columns, at ``place``: where they start and end, and their numbers."""
    if body[place] == OPEN:
        found = _matrix(body, place)
        if found is not None:
            yield place, found[1], found[0]
        return
    name = COLUMN.match(body, place + 1)
    while name is not None:
        start = name.end()
        end = body.find(b"]", start) + 1
        values = _column(body, start + 1, end - 1) if end - start >= LARGE else None
        if values is not None:
            yield start, end, values
        following = NEXT.match(body, end) if end else None
        name = COLUMN.match(body, following.end()) if following is not None else None


def _matrix(body: Body, start: int) -> tuple[Floats, int] | None:
    """The matrix that opens at ``start``, and where it ends; None if it is not plainly one."""
    width = body.count(b",", start, body.find(b"]", start)) + 1
    row = b"[%b]" % (b"," * (width - 1))
    parser, view = simdjson.Parser(), memoryview(body)
    parts, place = list[Floats](), start + 1
    while stop := body.rfind(b"]", place, place + PIECE) + 1:
        closing = CLOSE.match(body, stop)
        end = closing.end() if closing is not None else None
        rows = values(parser, _list(view[place:stop]), row, width)
        if rows is None and (inside := END.search(body, place, stop)) is not None:
            rows = values(parser, _list(view[place : inside.start() + 1]), row, width)
            end = inside.end()
        if rows is None:
            return None
        parts.append(rows)
        if end is not None:
            return np.concatenate(parts).reshape(-1, width), end
        following = NEXT.match(body, stop)
        if following is None:
            return None
        place = following.end()
    return None


def _column(body: Body, place: int, last: int) -> Floats | None:
    """The numbers of ``body[place:last]``, which commas part; None for anything else."""
    parser, view, parts = simdjson.Parser(), memoryview(body), list[Floats]()
    while place <= last:
        stop = last if last - place <= PIECE else body.rfind(b",", place, place + PIECE)
        found = values(parser, _list(view[place:stop]), b"", 1) if stop >= 0 else None
        if found is None:
            return None
        parts.append(found)
        place = stop + 1
    return np.concatenate(parts)


def _list(items: memoryview) -> bytes:
    """Items in brackets; the only copy of them that is made here."""
    return b"".join((b"[", items, b"]"))


def values(parser: simdjson.Parser, text: bytes, item: bytes, width: int) -> Floats | None:
    """The numbers of a list of items with ``width`` numbers each; None for anything else.

    The parser takes numbers of JSON only, but flattens whatever lists they are in; so what is left
    of each without its numbers must be ``item``.
    """
    try:
        array = parser.parse(text)
        assert isinstance(array, simdjson.Array)
        found = np.frombuffer(array.as_buffer(of_type="d"))
    except (ValueError, TypeError, RuntimeError):
        # The last is what simdjson says of integers beyond 64 bits, and of deep nesting.
        return None
    items = len(found) // width
    if items * width != len(found) or not items:
        return None
    plain = text.translate(None, NUMBERS) == b"[%b%b]" % ((item + b",") * (items - 1), item)
    return found if plain else None
