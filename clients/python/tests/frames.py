"""Small objects that speak one frame protocol each, as libraries do."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = dict[str, Any]
NUMBERS, BOOLEANS, TEXTS = (2, 64, "g", "="), (20, 8, "b", "="), (21, 8, "u", "=")


class ByArray:
    """Like a data frame of pandas: an array, and the names of its columns."""

    def __init__(self, cells: Any, columns: Sequence[Any]) -> None:
        self.cells, self.columns = np.asarray(cells), list(columns)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.cells


class ByInterchange:
    """``__dataframe__``: chunks of numbers, or of strings; a missing value is a set bit or byte."""

    def __init__(self, *chunks: Columns, missing: str = "") -> None:
        self.chunks, self.missing = chunks, missing

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> "ByInterchange":
        return self

    def column_names(self) -> list[str]:
        return list(self.chunks[0])

    def get_column_by_name(self, name: str) -> "InterchangeColumn":
        return InterchangeColumn([chunk[name] for chunk in self.chunks], self.missing)


class Buffer:
    """Memory at an address."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = np.ascontiguousarray(array)
        self.ptr = self.array.ctypes.data
        self.bufsize = self.array.nbytes


class InterchangeColumn:
    """A column, or a chunk of one, that begins one value after its buffer does."""

    offset = 1

    def __init__(self, chunks: list[Any], missing: str) -> None:
        self.chunks, self.missing = chunks, missing
        self.gaps = np.array([value is None for value in chunks[0]])
        self.values = [None, *chunks[0]]

    def size(self) -> int:
        return len(self.values) - 1

    def get_chunks(self) -> list["InterchangeColumn"]:
        return [InterchangeColumn([chunk], self.missing) for chunk in self.chunks]

    @property
    def _texts(self) -> bool:
        return any(isinstance(value, str) for value in self.values)

    @property
    def dtype(self) -> tuple[int, int, str, str]:
        if any(isinstance(value, bool) for value in self.values):
            return BOOLEANS
        return TEXTS if self._texts else NUMBERS

    @property
    def describe_null(self) -> tuple[int, int | None]:
        kinds: dict[str, tuple[int, int | None]] = {"": (0, None), "bits": (3, 0), "bytes": (4, 1)}
        return kinds[self.missing]

    def get_buffers(self) -> dict[str, Any]:
        gaps = np.array([True, *self.gaps])
        validity = {
            "": None,
            "bits": (Buffer(np.packbits(~gaps, bitorder="little")), None),
            "bytes": (Buffer(gaps.astype(np.uint8)), None),
        }[self.missing]
        if self._texts:
            encoded = [(value or "").encode() for value in self.values]
            data = np.frombuffer(b"".join(encoded), np.uint8)
            ends = np.cumsum([0, *map(len, encoded)]).astype(np.int64)
            offsets = (Buffer(ends), (0, 64, "l", "="))
            return {"data": (Buffer(data), None), "validity": validity, "offsets": offsets}
        numbers = np.array([0.0 if value is None else value for value in self.values], np.float64)
        return {"data": (Buffer(numbers), None), "validity": validity, "offsets": None}
