"""Columns as other libraries keep them: buffers at an address, bits for what is missing."""

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]
Mask = NDArray[np.bool_]


class Unreadable(Exception):
    """Not in this way; there may be another."""


def at(address: int, dtype: Any, count: int) -> Column:
    """``count`` numbers as they lie in memory; copy them before their owner goes."""
    if count == 0:
        return np.empty(0, dtype)
    kind = np.dtype(dtype)
    held = (ctypes.c_char * (count * kind.itemsize)).from_address(address)
    return np.frombuffer(memoryview(held), kind)


def bits(address: int, first: int, end: int) -> Mask:
    """Bits ``first`` to ``end``, the lowest of each byte first."""
    packed = at(address, np.uint8, -(-end // 8))
    return np.unpackbits(packed, bitorder="little")[first:end].astype(np.bool_)


def with_gaps(values: Column, missing: Mask | None) -> Column:
    """A copy in which what is missing is NaN."""
    return values.copy() if missing is None else np.where(missing, np.nan, values)


def objects(cells: list[Any]) -> Column:
    """A column of whatever these are."""
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column
