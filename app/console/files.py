"""Files of rows: what kind they are, and what a validation set in one says."""

import json
from pathlib import Path

from app.core.names import composed
from app.core.sheets import plain
from app.formats import arrow, npy
from app.formats.frame import Frame
from app.http.problems import ApiError

KINDS = {
    ".csv": arrow.CSV,
    ".parquet": arrow.PARQUET,
    ".arrow": arrow.ARROW,
    ".arrows": arrow.ARROW,
    ".ndjson": arrow.NDJSON,
    ".jsonl": arrow.NDJSON,
    ".json": "application/json",
    ".npy": npy.MEDIA_TYPE,
}
LIMITS = arrow.Limits(rows=50_000_000, bytes=1 << 33)
"""Of a file on one's own disk."""


def kind(path: Path) -> str:
    """The media type by the name's end; ``ValueError`` for others."""
    media_type = KINDS.get(path.suffix.lower())
    if media_type is None:
        raise ValueError(f"{path.name}: files end in {', '.join(KINDS)}")
    return media_type


def content(path: Path) -> bytes:
    """What is in the file; ``ValueError`` where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from None


def save(path: Path, data: bytes) -> None:
    """Write a file; ``ValueError`` where that cannot be."""
    try:
        path.write_bytes(data)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from None


def frame(path: Path) -> Frame:
    """The table in a file of named columns."""
    media_type = kind(path)
    if media_type not in arrow.KINDS:
        raise ValueError(f"{path.name}: a table of named columns is needed, CSV or Parquet say")
    try:
        return arrow.decode(media_type, content(path), LIMITS)
    except ApiError as error:
        raise ValueError(f"{path.name}: {error}") from None


def classes(table: Frame, label: str) -> tuple[str, ...]:
    """The columns that are named after labels, in the file's order."""
    labels = set(map(composed, table.text(label, label)[0])) - {""}
    columns = map(composed, map(plain, table.columns) if table.cells else table.columns)
    matching = tuple(name for name in columns if name in labels)
    missing = sorted(labels - set(matching))
    if missing:
        raise ValueError(f"column {label} has {missing[0]!r}, but there is no column of that name")
    return matching


def validation(table: Frame, label: str, names: tuple[str, ...]) -> dict[str, object]:
    """A validation set as the service takes it."""
    missing = [name for name in names if table.find(name) is None]
    if missing:
        raise ValueError(f"there is no column {missing[0]!r}, which is a class of the model")
    codes = table.labels(label, names, label)
    rows = table.numbers(names)
    return {
        "labels": [names[code] for code in codes],
        "posteriors": {name: rows[:, k].tolist() for k, name in enumerate(names)},
    }


def upload_of(content: dict[str, object]) -> bytes:
    """A JSON body."""
    return json.dumps(content, allow_nan=False).encode()
