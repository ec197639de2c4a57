"""NPY: one two-dimensional array of real numbers."""

import io
import math

import numpy as np

from app.api.problems import Unparseable
from app.api.wire.pieces import Piece
from app.core.errors import InvalidInput
from app.core.prevalence.arrays import Floats

MEDIA_TYPE = "application/x-npy"
LONGEST_HEADER = 1 << 14
"""More than NumPy reads of a header (10,000 bytes)."""


def decode(body: bytes | bytearray, pointer: str = "/posteriors") -> Floats:
    """An N × C array as float64; the header may promise no more than the body holds."""
    stream = io.BytesIO(body[:LONGEST_HEADER])
    try:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            header = np.lib.format.read_array_header_1_0(stream)
        elif version == (2, 0):
            header = np.lib.format.read_array_header_2_0(stream)
        else:
            raise ValueError(f"NPY version {version} is not supported; use 1.0 or 2.0")
        shape, fortran_order, dtype = header
    except Exception as error:
        raise Unparseable(f"the body is not an NPY file: {str(error)[:200]}") from None
    if dtype.kind not in "fiu" or dtype.itemsize > 8:
        message = f"has dtype {dtype}; send float16, float32, float64 or integers"
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
