"""The media types of batches and of adjusted rows: a row for each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from app.core.arrays import Floats
from app.formats import Piece, arrow, json, ndjson, npy
from app.formats.frame import Frame

Reader = Callable[[bytes | bytearray, arrow.Limits], Frame]
Writer = Callable[[Sequence[str], Floats], list[Piece]]


@dataclass(frozen=True)
class MediaType:
    """``read``: a table of named columns from a body; None where bodies are read otherwise.

    ``write``: N × C rows under their C names; None for JSON, whose answers hold more than rows.
    """

    name: str
    aliases: tuple[str, ...] = ()
    read: Reader | None = None
    write: Writer | None = None


def _table(name: str, *aliases: str) -> MediaType:
    return MediaType(name, aliases, partial(arrow.decode, name), partial(arrow.encode, name))


MEDIA_TYPES = (
    MediaType(json.MEDIA_TYPE),
    MediaType(npy.MEDIA_TYPE, write=lambda _, rows: npy.encode(rows)),
    _table(arrow.ARROW),
    _table(arrow.PARQUET, "application/x-parquet"),
    _table(arrow.CSV),
    _table(ndjson.MEDIA_TYPE, "application/jsonl"),
)
NAMES = tuple(known.name for known in MEDIA_TYPES)
ALIASES = {alias: known.name for known in MEDIA_TYPES for alias in known.aliases}
BY_NAME = {known.name: known for known in MEDIA_TYPES}


def canonical(name: str) -> str:
    """The name for which this one may be an alias."""
    return ALIASES.get(name, name)
