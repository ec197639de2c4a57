"""What the store gives back: frozen, and nothing of the database in it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, TypeVar

from app.core.prevalence.source import SourceModel

T = TypeVar("T")
DeliveryStatus = Literal["pending", "delivered", "failed", "cancelled"]

USE_GRAIN = timedelta(minutes=1)
"""How exactly the last use of a key is kept."""


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
class RecordedAnswer:
    """A recorded HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Page(Generic[T]):
    """Part of a list, and where the next part starts (None at the end)."""

    items: tuple[T, ...]
    next: tuple[str, ...] | None


@dataclass(frozen=True)
class KeyRecord:
    """An API key as it is kept: its first characters, and a keyed digest of the whole.

    ``models``, ``roots``: names of models and of data roots that it is restricted to, None for all.
    """

    id: str
    prefix: str
    digest: str
    name: str
    scopes: tuple[str, ...]
    models: tuple[str, ...] | None
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    roots: tuple[str, ...] | None = None

    def used_lately(self, now: datetime) -> bool:
        """Whether the use that is on record is recent enough to stand."""
        return self.last_used_at is not None and now - self.last_used_at < USE_GRAIN

    def opens(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True)
class AuditRecord:
    """A write: by which key (None: none, or no stored one), what, to what, from which address."""

    at: datetime
    key_id: str | None
    key_name: str
    action: str
    target: str
    address: str
    id: int | None = None


@dataclass(frozen=True)
class TaskRecord:
    """A task. ``due_at``: when it may be taken; while it is taken, when that lease runs out.

    ``attempts`` counts the takings, the present one included; ``error``: how the last one failed.
    """

    id: str
    kind: str
    key: str
    payload: dict[str, Any]
    due_at: datetime
    attempts: int
    owner: str | None
    error: str | None
    created_at: datetime


@dataclass(frozen=True)
class WebhookRecord:
    """An address that is told of events, and which of them.

    ``models``, ``monitors``: names that it is told about, None for all. ``reason``: why the service
    disabled it. ``generation`` numbers its secrets; ``check`` tells that the present one can still
    be derived; ``rotated_at``: when it replaced the one before.
    """

    id: str
    url: str
    events: tuple[str, ...]
    models: tuple[str, ...] | None
    monitors: tuple[str, ...] | None
    description: str
    disabled: bool
    reason: str | None
    generation: int
    check: str
    rotated_at: datetime | None
    created_at: datetime
    updated_at: datetime

    def wants(self, event: str, model: str | None, monitor: str | None) -> bool:
        """Whether it is told of an event of this model and monitor.

        ``monitor``: as whoever sees all models calls it, or ``model:name``.
        """
        whole = f"{model}:{(monitor or '').rpartition(':')[2]}"
        return (
            event in self.events
            and (self.models is None or model in self.models)
            and (self.monitors is None or monitor in self.monitors or whole in self.monitors)
        )


@dataclass(frozen=True)
class DeliveryRecord:
    """An event for one webhook. ``body`` is sent as it is; ``event_id`` is the event's for all.

    ``attempts``: what came of each, the first first; ``next_at``: when it is tried again.
    """

    id: str
    webhook_id: str
    event_id: str
    type: str
    body: str
    status: DeliveryStatus
    attempts: tuple[dict[str, Any], ...]
    next_at: datetime | None
    created_at: datetime
