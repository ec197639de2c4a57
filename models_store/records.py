"""What the store gives back: frozen, and nothing of the database in it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from app.core.prevalence.source import SourceModel

T = TypeVar("T")


@dataclass(frozen=True)
class ModelRecord:
    """A registered model; ``versions`` counts its versions."""

    id: int
    name: str
    kind: str
    classes: tuple[str, ...]
    description: str
    created_at: datetime
    updated_at: datetime
    versions: int = 0


@dataclass(frozen=True)
class VersionRecord:
    """An immutable version of a model; ``training``: how it was trained, if in the service."""

    id: int
    model_id: int
    model: str
    number: int
    digest: str
    source: SourceModel
    metadata: dict[str, Any]
    created_at: datetime
    training: dict[str, Any] | None = None


@dataclass(frozen=True)
class AliasRecord:
    """A name that points to a version."""

    model: str
    alias: str
    version: int
    updated_at: datetime


@dataclass(frozen=True)
class EstimateRecord:
    """A kept estimate. ``content`` is its JSON form; ``moment`` is observed_at, or created_at."""

    id: str
    model: str
    version: int
    moment: datetime
    content: dict[str, Any]


@dataclass(frozen=True)
class EvaluationRecord:
    """A kept evaluation. ``content`` is its JSON form."""

    id: str
    moment: datetime
    content: dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """A recorded HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Page(Generic[T]):
    """Part of a list, and where the next part starts (None at the end)."""

    items: tuple[T, ...]
    next: tuple[str, ...] | None
