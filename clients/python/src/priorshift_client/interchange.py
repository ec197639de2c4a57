"""The dataframe interchange protocol (``__dataframe__``): numbers, and strings.

https://data-apis.org/dataframe-protocol/latest/API.html
"""

import ctypes
from itertools import pairwise
from typing import Any

import numpy as np

from priorshift_client.memory import Column, Mask, Unreadable, at, bits, objects, with_gaps

LETTERS = {0: "i", 1: "u", 2: "f"}
STRING = 21
BIT_MASK, BYTE_MASK = 3, 4


def columns(frame: Any) -> tuple[tuple[str, ...], list[Column]]:
    """Names and columns, copied."""
    names = tuple(map(str, frame.column_names()))
    read = []
    for name in frame.column_names():
        chunks = frame.get_column_by_name(name).get_chunks()
        read.append(np.concatenate([_chunk(chunk) for chunk in chunks]))
    return names, read


def _chunk(column: Any) -> Column:
    kind, width = int(column.dtype[0]), int(column.dtype[1])
    buffers = column.get_buffers()
    missing = _missing(column, buffers)
    if kind == STRING:
        return _texts(column, buffers, missing)
    if kind not in LETTERS:
        raise Unreadable
    return with_gaps(_values(buffers["data"][0], f"{LETTERS[kind]}{width // 8}", column), missing)


def _texts(column: Any, buffers: Any, missing: Mask | None) -> Column:
    data, (offsets, kind) = buffers["data"][0], buffers["offsets"]
    end = column.offset + column.size() + 1
    ends = at(offsets.ptr, f"i{int(kind[1]) // 8}", end)[column.offset :].tolist()
    texts = [ctypes.string_at(data.ptr + i, j - i).decode() for i, j in pairwise(ends)]
    if missing is None:
        return objects(texts)
    return objects([None if m else text for m, text in zip(missing, texts, strict=True)])


def _missing(column: Any, buffers: Any) -> Mask | None:
    """Which values are missing; None where none is, or where NaN says so."""
    how, absent = column.describe_null
    if how not in (BIT_MASK, BYTE_MASK) or buffers["validity"] is None:
        return None
    mask, first = buffers["validity"][0], column.offset
    if how == BIT_MASK:
        validity: Column = bits(mask.ptr, first, first + column.size())
    else:
        validity = _values(mask, "u1", column)
    return np.asarray(validity == absent, dtype=np.bool_)


def _values(buffer: Any, dtype: str, column: Any) -> Column:
    values = at(buffer.ptr, dtype, column.offset + column.size())
    return values[column.offset :]
