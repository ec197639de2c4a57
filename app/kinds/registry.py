"""Every kind there is."""

from typing import Literal

from app.clock import rfc3339
from app.core.json_types import JsonObject
from app.kinds import Kind
from app.kinds.mixtures import RegressionMixtures
from app.kinds.trees import VersatileTrees
from app.schemas.requests import In
from models_store.adaptations import SourceRecord

KINDS: dict[str, Kind] = {
    "versatile-tree": VersatileTrees(),
    "regression-mixture": RegressionMixtures(),
}


def shapes(what: Literal["adapts", "predicts"]) -> list[type[In]]:
    """The bodies that the kinds take to adapt, or to predict."""
    return [getattr(kind, what) for kind in KINDS.values()]


def version(record: SourceRecord) -> JsonObject:
    """The page of a version."""
    return {
        "model": record.model,
        "kind": record.kind,
        "version": record.number,
        "digest": record.digest,
        "created_at": rfc3339(record.created_at),
        **KINDS[record.kind].version(record),
        "metadata": record.metadata,
    }
