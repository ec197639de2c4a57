"""The Arrow C stream interface, read with ctypes: structs of numbers and strings.

https://arrow.apache.org/docs/format/CStreamInterface.html. Buffers are copied, and what the
producer handed out is released, before anything is returned.
"""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int64, c_void_p
from functools import partial
from typing import Any

import numpy as np

from priorshift_client.memory import Column, Mask, Unreadable, at, bits, objects, with_gaps

NUMBERS = {
    "e": np.float16,
    "f": np.float32,
    "g": np.float64,
    "c": np.int8,
    "C": np.uint8,
    "s": np.int16,
    "S": np.uint16,
    "i": np.int32,
    "I": np.uint32,
    "l": np.int64,
    "L": np.uint64,
}
OFFSETS: dict[str, type[np.integer[Any]]] = {"u": np.int32, "U": np.int64}
INLINE = 12


class Schema(Structure):
    """struct ArrowSchema."""


class Array(Structure):
    """struct ArrowArray."""


class Stream(Structure):
    """struct ArrowArrayStream."""


Schema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_void_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(Schema))),
    ("dictionary", POINTER(Schema)),
    ("release", ctypes.CFUNCTYPE(None, POINTER(Schema))),
    ("private_data", c_void_p),
]
Array._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(Array))),
    ("dictionary", POINTER(Array)),
    ("release", ctypes.CFUNCTYPE(None, POINTER(Array))),
    ("private_data", c_void_p),
]
Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(c_int, POINTER(Stream), POINTER(Schema))),
    ("get_next", ctypes.CFUNCTYPE(c_int, POINTER(Stream), POINTER(Array))),
    ("get_last_error", ctypes.CFUNCTYPE(c_void_p, POINTER(Stream))),
    ("release", ctypes.CFUNCTYPE(None, POINTER(Stream))),
    ("private_data", c_void_p),
]


def columns(value: Any) -> tuple[tuple[str, ...] | None, list[Column]]:
    """Names and columns of a stream of structs; one column without a name for any other type."""
    capsule = value.__arrow_c_stream__()
    stream = ctypes.cast(_pointer(capsule, b"arrow_array_stream"), POINTER(Stream))
    with _filled(Schema(), stream, stream.contents.get_schema) as schema:
        struct = schema.format == b"+s"
        kinds = [schema.children[k].contents for k in range(schema.n_children)]
        names = tuple((kind.name or b"").decode() for kind in kinds) if struct else None
        pieces = list(_pieces(stream, kinds if struct else [schema], struct))
    if not pieces:
        raise ValueError("the frame holds no rows; send at least one")
    return names, [np.concatenate(parts) for parts in zip(*pieces, strict=True)]


def _pointer(capsule: Any, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    address: int = get(capsule, name)
    return address


def _pieces(stream: Any, kinds: list[Any], struct: bool) -> Iterator[list[Column]]:
    while True:
        with _filled(Array(), stream, stream.contents.get_next) as array:
            if not array.release:
                return
            start, length = (array.offset, array.length) if struct else (0, array.length)
            parts = [array.children[k].contents for k in range(len(kinds))] if struct else [array]
            yield [
                _column(kind, part)[start : start + length]
                for kind, part in zip(kinds, parts, strict=True)
            ]


@contextmanager
def _filled(place: Any, stream: Any, fill: Callable[..., int]) -> Iterator[Any]:
    """A struct that the stream has filled; it is released afterwards."""
    if fill(stream, byref(place)) != 0:
        address = stream.contents.get_last_error(stream)
        error = ctypes.string_at(address) if address else b"no reason given"
        raise ValueError(f"the Arrow stream ended: {error.decode(errors='replace')}")
    try:
        yield place
    finally:
        if place.release:
            place.release(byref(place))


def _column(schema: Any, array: Any) -> Column:
    """One array, copied; missing values are NaN or None."""
    kind = schema.format.decode()
    missing = _missing(array)
    if schema.dictionary:
        levels = [*_column(schema.dictionary.contents, array.dictionary.contents), None]
        codes = _numbers(kind, array)
        chosen = codes if missing is None else np.where(missing, len(levels) - 1, codes)
        return objects([levels[int(code)] for code in chosen])
    if kind in NUMBERS:
        return with_gaps(_numbers(kind, array), missing)
    rows = range(array.offset, array.offset + array.length)
    text = _reader(kind)
    if missing is None:
        return objects([text(array, row) for row in rows])
    return objects([None if m else text(array, row) for m, row in zip(missing, rows, strict=True)])


def _numbers(kind: str, array: Any) -> Column:
    if kind not in NUMBERS:
        raise Unreadable
    values = at(array.buffers[1], NUMBERS[kind], array.offset + array.length)
    return values[array.offset :]


def _reader(kind: str) -> Callable[[Any, int], str]:
    """Reads one string of an array of this kind."""
    if kind == "vu":
        return _view
    if kind not in OFFSETS:
        raise Unreadable
    return partial(_span, OFFSETS[kind])


def _span(width: type[np.integer[Any]], array: Any, row: int) -> str:
    first, last = at(array.buffers[1], width, row + 2)[row:].tolist()
    return ctypes.string_at(array.buffers[2] + first, last - first).decode() if last > first else ""


def _view(array: Any, row: int) -> str:
    """16 bytes each: the length, then the text itself or where it is."""
    place = array.buffers[1] + 16 * row
    length, _, buffer, offset = (ctypes.c_int32 * 4).from_address(place)
    start = place + 4 if length <= INLINE else array.buffers[2 + buffer] + offset
    return ctypes.string_at(start, length).decode()


def _missing(array: Any) -> Mask | None:
    if array.null_count == 0 or array.n_buffers == 0 or not array.buffers[0]:
        return None
    return ~bits(array.buffers[0], array.offset, array.offset + array.length)
