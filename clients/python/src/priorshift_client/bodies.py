"""What is sent: JSON, or NPY with its options in the query."""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorshift_client.batches import Batch
from priorshift_client.options import Unchanged
from priorshift_client.rows import listed

JSON = "application/json"
NPY = "application/x-npy"
NDJSON = "application/x-ndjson"
PREDICTED = "predicted label"
REPEATED = ("columns", "include")
LONGEST_QUERY = 8192
"""Characters; beyond it, options travel in a JSON body."""
Query = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Body:
    """Bytes, what they are, and what belongs into the query."""

    content: bytes = field(repr=False)
    media_type: str
    query: Query = ()


def json_body(content: Mapping[str, Any]) -> Body:
    """A JSON object without its fields that are None."""
    return _json({name: value for name, value in content.items() if value is not None})


def change_body(content: Mapping[str, Any]) -> Body:
    """A JSON object of what changes; None is sent, what is unchanged is not."""
    return _json({k: value for k, value in content.items() if not isinstance(value, Unchanged)})


def _json(content: Mapping[str, Any]) -> Body:
    written = json.dumps(content, ensure_ascii=False, allow_nan=False, default=_plain)
    return Body(written.encode(), JSON)


def batch_body(batch: Batch, options: Mapping[str, Any]) -> Body:
    """A batch with its options: NPY for posteriors wherever the options fit into a query."""
    fields = {**options, "columns": batch.columns}
    flat = _flat(fields) if batch.field == "posteriors" else None
    if flat is not None:
        return Body(npy(batch.content), NPY, flat)
    return json_body({batch.field: json_content(batch), **fields})


def grouped_body(batch: Batch, groups: list[Any], by: str, options: Mapping[str, Any]) -> Body:
    """Rows with their groups, a line of NDJSON for each; the options must fit into a query."""
    named = _named_columns(batch)
    if by in named:
        raise ValueError(f"a column of the batch is named {by!r} already; choose another name")
    columns = {**named, by: groups}
    if len(set(map(len, columns.values()))) != 1:
        raise ValueError(f"{len(groups)} groups for {len(next(iter(named.values())))} rows")
    predicted = {"predictions": PREDICTED} if batch.field == "predictions" else {}
    flat = _flat({**options, **predicted})
    if flat is None:
        raise ValueError("these options do not fit into a query; leave out what is not needed")
    rows = zip(*columns.values(), strict=True)
    lines = (json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) for row in rows)
    return Body("\n".join(lines).encode(), NDJSON, flat)


def _named_columns(batch: Batch) -> dict[str, list[Any]]:
    """Lists by name: of posteriors by class, or of predicted labels."""
    if batch.field == "predictions":
        return {PREDICTED: batch.content}
    if batch.field != "posteriors":
        raise TypeError("groups have rows of posteriors, or predicted labels")
    if batch.columns is None:
        raise ValueError("name the classes: columns=[…], or send a frame")
    rows = listed(batch.content, "/posteriors")
    return dict(zip(batch.columns, map(list, zip(*rows, strict=True)), strict=True))


def json_content(batch: Batch) -> Any:
    """The content of a batch as JSON has it."""
    return listed(batch.content, "/posteriors") if batch.field == "posteriors" else batch.content


def npy(array: NDArray[Any]) -> bytes:
    """The array as NPY."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def array_of(body: bytes) -> NDArray[np.float64]:
    """An array from NPY; ``ValueError`` for anything else."""
    try:
        array = np.load(io.BytesIO(body), allow_pickle=False)
    except EOFError as error:
        raise ValueError("the array is cut short") from error
    if not isinstance(array, np.ndarray) or array.ndim != 2:
        raise ValueError("not an array of rows")
    return array


def text(value: Any) -> str:
    """A value as it stands in a query."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _flat(options: Mapping[str, Any]) -> Query | None:
    """The options as query parameters, ``interval.level=0.9``; None if some do not fit."""
    pairs: list[tuple[str, str]] = []
    for name, value in options.items():
        if name in REPEATED and value is not None:
            pairs += [(name, str(item)) for item in value]
        elif isinstance(value, Mapping):
            pairs += [(f"{name}.{key}", _scalar(item)) for key, item in value.items()]
        elif value is not None:
            pairs.append((name, _scalar(value)))
    if _UNFIT in (item for _, item in pairs) or sum(map(_length, pairs)) > LONGEST_QUERY:
        return None
    return tuple(pairs)


_UNFIT = "\x00"


def _scalar(value: Any) -> str:
    fits = isinstance(value, str | int | float | np.generic | datetime)
    return text(value) if fits else _UNFIT


def _length(pair: tuple[str, str]) -> int:
    return len(pair[0]) + len(pair[1]) + 2


def _plain(value: Any) -> Any:
    """What ``json`` does not know."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be sent")
