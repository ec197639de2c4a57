"""Messages between the service and its worker: named arrays and JSON, in NPZ; no pickle."""

import io
import json
from collections.abc import Mapping

import numpy as np

from app.core.arrays import AnyArray
from app.core.json_types import JsonObject, JsonValue

HEADER = 8
"""Bytes of the length that comes before a job."""


def encode(content: Mapping[str, JsonValue], arrays: Mapping[str, AnyArray]) -> bytes:
    """JSON content and named arrays as one message."""
    text = np.frombuffer(json.dumps(content).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, json=text, **{f"a.{k}": v for k, v in arrays.items()})
    return buffer.getvalue()


def decode(message: bytes) -> tuple[JsonObject, dict[str, AnyArray]]:
    """The content and the arrays of ``encode``."""
    with np.load(io.BytesIO(message), allow_pickle=False) as found:
        content: JsonObject = json.loads(found["json"].tobytes())
        arrays = {k.removeprefix("a."): found[k] for k in found.files if k != "json"}
    return content, arrays
