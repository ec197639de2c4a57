"""Keys and the audit trail, as answers."""

from datetime import datetime

from pydantic import Field

from app.schemas.base import Out, WarningOut


class KeyOut(Out):
    """What is kept of an API key; ``key``: the key itself, in the answer that made it.

    ``models``, ``roots``: the only models and data roots that it opens, null for all.
    """

    id: str
    prefix: str
    name: str
    scopes: list[str]
    models: list[str] | None
    roots: list[str] | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    key: str | None = None
    warnings: list[WarningOut] = Field(default_factory=list)


class KeyPage(Out):
    """API keys, newest first."""

    items: list[KeyOut]
    next_cursor: str | None


class AuditOut(Out):
    """A write: who, what, when, from where."""

    at: datetime
    key_id: str | None
    key_name: str
    action: str
    target: str
    address: str


class AuditPage(Out):
    """Writes, newest first."""

    items: list[AuditOut]
    next_cursor: str | None
