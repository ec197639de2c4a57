"""Large matrices of numbers in JSON, read in pieces.

A JSON parser makes an object of every number and keeps the interpreter to itself until it has read
them all. Here a matrix is read 128 KiB at a time by simdjson, straight into float64, and checked,
so that other requests go on meanwhile. Whatever is not plainly a matrix of JSON numbers is left to
the parser.
"""

import re
import secrets
from dataclasses import dataclass

import numpy as np
import simdjson

from app.core.prevalence.arrays import Floats

LARGE = 32_768
"""Bytes from which a matrix is worth it; more than anything that is stored as JSON."""
PIECE = 1 << 17
START = re.compile(rb'"(?:posteriors|features)"[ \t\n\r]*:[ \t\n\r]*(?=\[[ \t\n\r]*\[)')
SPACE = b" \t\n\r"
OPEN, CLOSE, COMMA = b"[],"
END = re.compile(rb"\][ \t\n\r]*\]")


@dataclass(frozen=True)
class Lifted:
    """JSON in which large matrices are names, and the matrices by these names."""

    text: bytes
    matrices: dict[str, Floats]


def lifted(body: bytes | bytearray) -> Lifted:
    """Take the large matrices out of a body."""
    nonce = secrets.token_hex(16)
    found: dict[str, Floats] = {}
    parts: list[bytes] = []
    done = 0
    for match in START.finditer(body):
        start = match.end()
        if start < done:
            continue
        end = _end(body, start)
        matrix = _matrix(body, start, end) if end - start >= LARGE else None
        if matrix is not None:
            name = f"{nonce}{len(found)}"
            found[name] = matrix
            parts += [bytes(body[done:start]), f'"{name}"'.encode()]
            done = end
    parts.append(bytes(body[done:]))
    return Lifted(b"".join(parts), found)


def _end(body: bytes | bytearray, start: int) -> int:
    """Where the first two closing brackets end; ``start`` if there are none."""
    close = body.find(b"]]", start)
    if close >= 0:
        return close + 2
    match = END.search(body, start)
    return start if match is None else match.end()


def _matrix(body: bytes | bytearray, start: int, end: int) -> Floats | None:
    """The rows of ``body[start:end]``, brackets included; None if they are not all of a kind."""
    width = body.count(b",", start, body.find(b"]", start)) + 1
    inside = body.find(b"[", start) + 1
    last = body.rfind(b"]", inside, end - 1) + 1
    parser = simdjson.Parser()
    parts: list[Floats] = []
    while inside < last:
        stop = body.rfind(b"]", inside, min(inside + PIECE, last)) + 1
        rows = _rows(parser, bytes(body[inside:stop]), width, not parts) if stop else None
        if rows is None:
            return None
        parts.append(rows)
        inside = stop
    return np.concatenate(parts) if parts else None


def _rows(parser: simdjson.Parser, piece: bytes, width: int, first: bool) -> Floats | None:
    """Rows like ``[1, 2], [3, 4]``; those after the first piece begin with a comma.

    The parser takes numbers of JSON only, but flattens whatever lists they are in; so brackets and
    commas are counted: ``width`` numbers before each bracket since the one before of its kind.
    """
    text = piece.lstrip(SPACE)
    if text.startswith(b",") == first:
        return None
    text = text.removeprefix(b",")
    try:
        array = parser.parse(b"[%b]" % text)
        assert isinstance(array, simdjson.Array)
        values = np.frombuffer(array.as_buffer(of_type="d"))
    except (ValueError, TypeError, RuntimeError):
        # The last is what simdjson says of integers beyond 64 bits, and of deep nesting.
        return None
    characters = np.frombuffer(text, np.uint8)
    opening = np.flatnonzero(characters == OPEN)
    closing = np.flatnonzero(characters == CLOSE)
    commas = np.flatnonzero(characters == COMMA)
    count = len(closing)
    before = np.arange(count) * width
    if len(values) != count * width or len(commas) != count * width - 1:
        return None
    if not np.array_equal(np.searchsorted(commas, opening), before):
        return None
    if not np.array_equal(np.searchsorted(commas, closing), before + width - 1):
        return None
    return values.reshape(count, width)
