"""NPY: one two-dimensional array of real numbers."""

import io
import math
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from app.core.arrays import Floats
from app.core.errors import InvalidInput
from app.formats import Piece
from app.formats.errors import Unparseable

MEDIA_TYPE = "application/x-npy"
MAGIC = b"\x93NUMPY"
HEADERS: dict[tuple[int, ...], Callable[[IO[bytes]], Any]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
LONGEST_HEADER = 1 << 14
"""More than NumPy reads of a header (10,000 bytes)."""


def decode(body: bytes | bytearray, pointer: str = "/posteriors") -> Floats:
    """An N × C array as float64; the header may promise no more than the body holds."""
    if not body.startswith(MAGIC):
        raise Unparseable("the body is not an NPY file: it does not begin like one")
    version = tuple(body[len(MAGIC) : len(MAGIC) + 2])
    if version not in HEADERS:
        known = " or ".join(f"{major}.{minor}" for major, minor in HEADERS)
        raise Unparseable(f"the body is an NPY file of an unknown version; send {known}")
    stream = io.BytesIO(body[:LONGEST_HEADER])
    stream.seek(len(MAGIC) + 2)
    try:
        shape, fortran_order, dtype = HEADERS[version](stream)
    except Exception:
        # NumPy would quote the header, and what Python's parser made of it.
        message = "its header cannot be read; write it with numpy.save"
        raise Unparseable(f"the body is not an NPY file: {message}") from None
    if dtype.kind not in "fiu" or dtype.itemsize > 8:
        message = f"has dtype {str(dtype)[:80]}; send float16, float32, float64 or integers"
        raise InvalidInput.at(pointer, message)
    if len(shape) != 2 or not all(type(n) is int and n > 0 for n in shape):
        raise InvalidInput.at(pointer, f"has shape {str(shape)[:80]}; send rows × classes")
    promised = math.prod(shape) * dtype.itemsize
    there = len(body) - stream.tell()
    if promised != there:
        raise Unparseable(f"the NPY header promises {promised} bytes of data, the body has {there}")
    flat = np.frombuffer(body, dtype, offset=stream.tell())
    array = flat.reshape(shape, order="F" if fortran_order else "C")
    return np.require(array, np.float64, ["C_CONTIGUOUS", "ALIGNED"])


def encode(array: Floats) -> list[Piece]:
    """The array as NPY 1.0, float64: the header, and the numbers where they are."""
    rows = np.ascontiguousarray(array, dtype=np.float64)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(rows))
    return [header.getvalue(), rows.data.cast("B")]
