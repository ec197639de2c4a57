"""NPY: one two-dimensional array of real numbers."""

import io
import math

import numpy as np

from app.api.problems import Unparseable
from app.core.errors import InvalidInput
from app.core.prevalence.arrays import Floats

MEDIA_TYPE = "application/x-npy"


def decode(body: bytes | bytearray, pointer: str = "/posteriors") -> Floats:
    """An N × C array as float64; the header may promise no more than the body holds."""
    stream = io.BytesIO(body)
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
    return np.ascontiguousarray(array, dtype=np.float64)


def encode(array: Floats) -> bytes:
    """The array as NPY 1.0, float64."""
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array, dtype=np.float64), allow_pickle=False)
    return buffer.getvalue()
