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

from app.core.arrays import Floats
from app.formats.json_reader import MOST_NAMES, PIECE

LARGE = 32_768
"""Bytes from which a matrix is worth it; more than anything that is stored as JSON."""
MOST_MATRICES = 16
"""Matrices that are looked for; in what is sent there are at most four."""
GAP = rb"[ \t\n\r]{0,200}"
NAME = re.compile(rb'"(?:posteriors|features)"')
LONGEST_NAME = 12
START = re.compile(rb"%b:%b(?=\[%b\[|\{%b\")" % ((GAP,) * 4))
COLUMN = re.compile(rb'%b"(?:[^"\\]|\\.){0,400}"%b:%b(?=\[)' % ((GAP,) * 3))
NEXT = re.compile(rb"%b," % GAP)
CLOSE = re.compile(rb"%b\]" % GAP)
END = re.compile(rb"\]%b\]" % GAP)
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
    for _ in range(MOST_MATRICES):
        place = _after_name(body, place)
        if not place:
            break
        match = START.match(body, place)
        if match is not None:
            for start, end, values in _there(body, match.end()):
                if end - start >= LARGE:
                    name = f"{nonce}{len(found)}"
                    found[name] = values
                    parts += [bytes(body[done:start]), f'"{name}"'.encode()]
                    done = place = end
    parts.append(bytes(body[done:]))
    return Lifted(b"".join(parts), found)


def _after_name(body: Body, place: int) -> int:
    """The end of the next name that a matrix may have; 0 where there is none."""
    while place < len(body):
        match = NAME.search(body, place, place + PIECE + LONGEST_NAME)
        if match is not None:
            return match.end()
        place += PIECE
    return 0


def _there(body: Body, place: int) -> Iterator[tuple[int, int, Floats]]:
    """The matrix, or the columns, at ``place``: where they start and end, and their numbers."""
    if body[place] == OPEN:
        found = _matrix(body, place)
        if found is not None:
            yield place, found[1], found[0]
        return
    following = place + 1
    for _ in range(MOST_NAMES):
        name = COLUMN.match(body, following)
        if name is None:
            return
        start = name.end()
        end = body.find(b"]", start) + 1
        values = _column(body, start + 1, end - 1) if end - start >= LARGE else None
        if values is not None:
            yield start, end, values
        after = NEXT.match(body, end) if end else None
        if after is None:
            return
        following = after.end()


def _matrix(body: Body, start: int) -> tuple[Floats, int] | None:
    """The matrix that opens at ``start``, and where it ends; None if it is not plainly one."""
    first = body.find(b"]", start, start + PIECE)
    if first < 0:
        return None
    width = body.count(b",", start, first) + 1
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
