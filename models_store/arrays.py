"""Arrays as bytes: NPY, compressed, never pickled."""

import io
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


def encode(array: NDArray[Any]) -> bytes:
    """The array in NPY format, deflated lightly."""
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return zlib.compress(buffer.getbuffer(), level=1)


def decode(content: bytes) -> NDArray[Any]:
    """The array of ``encode``."""
    array: NDArray[Any] = np.load(io.BytesIO(zlib.decompress(content)), allow_pickle=False)
    return array
