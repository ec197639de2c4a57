"""Large matrices of numbers in JSON, read in pieces.

A JSON parser makes an object of every number and keeps the interpreter to itself until it has read
them all. Here a matrix is checked and read 128 KiB at a time, straight into float64, so that other
requests go on meanwhile. Whatever is not plainly a matrix of JSON numbers is left to the parser.
"""

import re
import secrets
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.prevalence.arrays import Floats

LARGE = 32_768
"""Bytes from which a matrix is worth it; more than anything that is stored as JSON."""
PIECE = 1 << 17
START = re.compile(rb'"(?:posteriors|features)"[ \t\n\r]*:[ \t\n\r]*(?=\[[ \t\n\r]*\[)')
END = re.compile(rb"\][ \t\n\r]*\]")

Bytes = NDArray[np.uint8]


def _members(characters: bytes) -> NDArray[np.bool_]:
    table = np.zeros(256, np.bool_)
    table[list(characters)] = True
    return table


SPACE = _members(b" \t\n\r")
DIGIT = _members(b"0123456789")
STRUCTURE = _members(b"[],")
NUMBER_START = _members(b"-0123456789")
BEFORE_NUMBER = _members(b" \t\n\r[,")
ALLOWED = _members(b" \t\n\r[],0123456789+-.eE")
BLANKS = bytes.maketrans(b"[]", b"  ")


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
    parts: list[Floats] = []
    while inside < last:
        stop = body.rfind(b"]", inside, min(inside + PIECE, last)) + 1
        rows = _rows(bytes(body[inside:stop]), width, first=not parts) if stop else None
        if rows is None:
            return None
        parts.append(rows)
        inside = stop
    return np.concatenate(parts) if parts else None


def _rows(piece: bytes, width: int, first: bool) -> Floats | None:
    """Rows like ``[1, 2], [3, 4]``; those after the first piece begin with a comma."""
    characters = np.frombuffer(piece, np.uint8)
    count = _count(characters, width, first)
    if count is None or not _numbers(characters):
        return None
    text = piece.translate(BLANKS)
    if not first:
        text = text.lstrip().removeprefix(b",")
    try:
        # One number more at the end shows that nothing before it stopped the reading.
        values = np.fromstring(text + b",7", np.float64, sep=",")
    except (DeprecationWarning, ValueError):
        return None
    return values[:-1].reshape(count, width) if len(values) == count * width + 1 else None


def _count(characters: Bytes, width: int, first: bool) -> int | None:
    """How many rows there are; None if anything but rows of ``width`` cells, one number in each."""
    if not ALLOWED[characters].all():
        return None
    before = _before(characters)
    starts = BEFORE_NUMBER[before] & NUMBER_START[characters]
    shape = np.where(starts, ord("0"), characters)[STRUCTURE[characters] | starts]
    pattern = np.frombuffer(b",[" + b",".join([b"0"] * width) + b"]", np.uint8)
    if first:
        shape = np.concatenate([pattern[:1], shape])
    count, rest = divmod(len(shape), len(pattern))
    if rest or not count or not (shape.reshape(count, -1) == pattern).all():
        return None
    return count


def _numbers(characters: Bytes) -> bool:
    """Whether what ``fromstring`` takes for numbers are numbers of JSON too.

    It also takes a leading plus or zero, and a point without a digit on both sides.
    """
    before = _before(characters)
    after_is_digit = np.concatenate([DIGIT[characters][1:], [False]])
    exponent = (before | 0x20) == ord("e")
    starts = BEFORE_NUMBER[before]
    point = characters == ord(".")
    minus = characters == ord("-")
    after_minus = np.concatenate([[False], (minus & starts)[:-1]])
    zero = (characters == ord("0")) & (starts | after_minus)
    wrong = point & ~(DIGIT[before] & after_is_digit)
    wrong |= (characters == ord("+")) & ~(exponent & after_is_digit)
    wrong |= minus & ~(after_is_digit & (exponent | starts))
    wrong |= zero & after_is_digit
    return not wrong.any()


def _before(characters: Bytes) -> Bytes:
    """The character before each."""
    return np.concatenate([np.frombuffer(b"[", np.uint8), characters[:-1]])
