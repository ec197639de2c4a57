"""For administrators and operators: keys, the trail of writes, health."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from priorshift_client.access import ApiKey, AuditEntry, Release
from priorshift_client.bodies import change_body
from priorshift_client.calls import (
    Answer,
    Call,
    Listing,
    change,
    get,
    into,
    nothing,
    place,
    query,
    show_once,
)
from priorshift_client.operations.models import PAGE
from priorshift_client.options import UNCHANGED, Unchanged

Scope = Literal["read", "estimate", "register", "admin"]


def create_key(
    name: str,
    scopes: Sequence[Scope],
    *,
    models: Sequence[str] | None = None,
    roots: Sequence[str] | Unchanged | None = UNCHANGED,
    expires_at: datetime | str | None = None,
    idempotency_key: str | None = None,
) -> Call[ApiKey]:
    """Make a key; this answer alone holds it.

    It is sent once, unless there is an ``idempotency_key``: what is sent again makes no other, and
    its answer lacks the key where an answer before was lost, with the warning ``shown-once``.

    ``models``, ``roots``: the only models, and data roots for jobs, that it opens; None for all.
    Nothing said of roots, a key for some models opens none.
    """
    content = {
        "name": name,
        "scopes": list(scopes),
        "models": None if models is None else list(models),
        "roots": list(roots) if isinstance(roots, Sequence) else roots,
        "expires_at": expires_at,
    }
    body = change_body(content)
    return show_once(place("api-keys"), body, into(ApiKey), idempotency_key)


def list_keys(*, limit: int = PAGE) -> Listing[ApiKey]:
    """Keys, newest first; ``limit`` is the size of a page."""
    return Listing(place("api-keys"), ApiKey, query(limit=limit))


def get_key(id: str) -> Call[ApiKey]:
    """What is kept of a key."""
    return get(place("api-keys", id), into(ApiKey))


def revoke_key(id: str) -> Call[None]:
    """Revoke a key."""
    return change("DELETE", place("api-keys", id), None, nothing)


def audit(
    *,
    key: str | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    limit: int = PAGE,
) -> Listing[AuditEntry]:
    """Writes, newest first: who, what, when, from where."""
    which = query(key=key, since=since, until=until, limit=limit)
    return Listing(place("audit"), AuditEntry, which)


def health() -> Call[str]:
    """``"ready"``; raises ``Unavailable`` where the service is not."""
    return get("/readyz", _status)


def release() -> Call[Release]:
    """Which release answers."""
    return get("/version", into(Release))


def _status(answer: Answer) -> str:
    return str(answer.json()["status"])
