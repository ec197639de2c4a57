"""Who may call, who wrote what, and what answers."""

from dataclasses import dataclass, field
from datetime import datetime

from priorshift_client.results import Warning


@dataclass(frozen=True)
class ApiKey:
    """What is kept of a key. ``key`` is the key itself, in the answer that made it only.

    ``models``, ``roots``: the only models and data roots that it opens, None for all.
    """

    id: str
    prefix: str
    name: str
    scopes: tuple[str, ...]
    models: tuple[str, ...] | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    key: str | None = field(default=None, repr=False)
    roots: tuple[str, ...] | None = None
    warnings: tuple[Warning, ...] = ()


@dataclass(frozen=True)
class AuditEntry:
    """A write: who, what, when, from where."""

    at: datetime
    key_id: str | None
    key_name: str
    action: str
    target: str
    address: str


@dataclass(frozen=True)
class Release:
    """What answers."""

    name: str
    version: str
    schema_revision: str = ""
