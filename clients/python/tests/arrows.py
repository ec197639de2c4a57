"""An object that speaks ``__arrow_c_stream__`` without Arrow: NumPy columns, lent with ctypes."""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_void_p, cast, pointer, py_object, pythonapi
from typing import Any

import numpy as np

from priorshift_client.arrow import Array, Schema, Stream

FORMATS = {"f8": "g", "f4": "f", "f2": "e", "i8": "l", "i4": "i", "u1": "C", "i1": "c"}
NAME = b"arrow_array_stream"


def _members(struct: Any) -> dict[str, Any]:
    return dict(struct._fields_)


class ByArrow:
    """``__arrow_c_stream__``: record batches of NumPy columns, made with ctypes.

    ``released`` counts what the consumer has given back. ``masked`` columns lack their last value.
    """

    def __init__(
        self, *chunks: dict[str, Any], masked: Sequence[str] = (), fails: bool = False
    ) -> None:
        self.chunks, self.masked, self.fails = chunks, masked, fails
        self.handed, self.released = 0, 0
        self._kept: list[Any] = []
        self._next = 0

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        kinds = _members(Stream)
        stream = Stream()
        stream.get_schema = self._keep(kinds["get_schema"](self._schema))
        stream.get_next = self._keep(kinds["get_next"](self._array))
        error = ctypes.addressof(self._keep(ctypes.create_string_buffer(b"out of luck")))
        stream.get_last_error = self._keep(kinds["get_last_error"](lambda _: error))
        self._next = 0
        new = pythonapi.PyCapsule_New
        new.restype, new.argtypes = py_object, [c_void_p, ctypes.c_char_p, c_void_p]
        capsule: object = new(cast(pointer(self._keep(stream)), c_void_p), NAME, None)
        return capsule

    def _keep(self, value: Any) -> Any:
        self._kept.append(value)
        return value

    def _schema(self, stream: Any, out: Any) -> int:
        fields = [self._field(name, column) for name, column in self.chunks[0].items()]
        schema = out.contents
        schema.format, schema.name, schema.n_children = b"+s", b"", len(fields)
        schema.children = self._pointers(Schema, fields)
        self._hand(schema, Schema)
        return 0

    def _field(self, name: str, column: Any) -> Schema:
        field = Schema(name=name.encode(), n_children=0)
        field.format = self._format(column)
        if isinstance(column, tuple):
            levels = Schema(format=self._format(column[1]), name=b"", n_children=0)
            field.dictionary = pointer(self._keep(levels))
        return field

    def _format(self, column: Any) -> bytes:
        codes = column[0] if isinstance(column, tuple) else column
        if isinstance(codes, list):
            return b"u"
        known = FORMATS.get(codes.dtype.str[1:], "b" if codes.dtype == bool else "vu")
        return known.encode()

    def _array(self, stream: Any, out: Any) -> int:
        if self.fails:
            return 5
        array = out.contents
        if self._next == len(self.chunks):
            array.release = _members(Array)["release"]()
            return 0
        chunk = self.chunks[self._next]
        self._next += 1
        columns = [self._column(name, column) for name, column in chunk.items()]
        array.length, array.offset, array.null_count = columns[0].length - 1, 1, 0
        array.n_buffers, array.n_children = 1, len(columns)
        array.buffers = self._addresses([None])
        array.children = self._pointers(Array, columns)
        self._hand(array, Array)
        return 0

    def _column(self, name: str, column: Any) -> Array:
        """A column behind one value that does not belong to it."""
        array = Array(n_children=0, null_count=0, offset=0)
        codes = column[0] if isinstance(column, tuple) else column
        array.length = len(codes) + 1
        mask = None
        if name in self.masked:
            array.null_count = 1
            bits = np.packbits([True, *[True] * (len(codes) - 1), False], bitorder="little")
            mask = self._keep(bits).ctypes.data
        if isinstance(codes, list):
            buffers = [mask, *self._texts(["", *codes])]
        elif codes.dtype.kind == "O":
            buffers = [mask, *self._views(["", *codes.tolist()])]
        else:
            shifted = self._keep(np.concatenate([codes[:1], codes]))
            buffers = [mask, shifted.ctypes.data]
        array.n_buffers, array.buffers = len(buffers), self._addresses(buffers)
        if isinstance(column, tuple):
            levels = Array(n_children=0, null_count=0, offset=0, length=len(column[1]))
            places = [None, *self._texts(column[1])]
            levels.n_buffers, levels.buffers = len(places), self._addresses(places)
            array.dictionary = pointer(self._keep(levels))
        return array

    def _texts(self, texts: list[str]) -> list[int]:
        encoded = [text.encode() for text in texts]
        ends = self._keep(np.cumsum([0, *map(len, encoded)]).astype(np.int32))
        data = self._keep(np.frombuffer(b"".join(encoded) or b" ", np.uint8))
        return [ends.ctypes.data, data.ctypes.data]

    def _views(self, texts: list[str]) -> list[int]:
        views, data = [], b""
        for text in map(str.encode, texts):
            long = len(text) > 12
            rest = text[:4] + np.array([0, len(data)], np.int32).tobytes() if long else text
            views.append(np.int32(len(text)).tobytes() + rest.ljust(12, b"\0"))
            data += text if long else b""
        held = [self._keep(np.frombuffer(b, np.uint8)) for b in (b"".join(views), data or b" ")]
        sizes = self._keep(np.array([len(data)], np.int64))
        return [held[0].ctypes.data, held[1].ctypes.data, sizes.ctypes.data]

    def _addresses(self, addresses: list[int | None]) -> Any:
        return cast(self._keep((c_void_p * len(addresses))(*addresses)), POINTER(c_void_p))

    def _pointers(self, kind: Any, items: list[Any]) -> Any:
        array = (POINTER(kind) * len(items))(*[pointer(self._keep(item)) for item in items])
        return cast(self._keep(array), POINTER(POINTER(kind)))

    def _hand(self, struct: Any, kind: Any) -> None:
        self.handed += 1
        release = _members(kind)["release"]

        def back(given: Any) -> None:
            self.released += 1
            given.contents.release = release()

        struct.release = self._keep(release(back))
