"""Who calls, and who was let in lately."""

import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic

MOST_KNOWN = 1000


@dataclass(frozen=True)
class Caller:
    """Who calls. ``models``: the only models that exist for this caller, None for all.

    ``roots``: the only data roots that do. ``expires_at``: when the key ends, None for never.
    """

    key_id: str | None
    name: str
    scopes: frozenset[str]
    models: frozenset[str] | None = None
    roots: frozenset[str] | None = None
    expires_at: datetime | None = None

    def may(self, scope: str) -> bool:
        """Whether the scopes cover ``scope``; admin covers all."""
        return scope in self.scopes or "admin" in self.scopes

    def sees(self, model: str) -> bool:
        """Whether the model exists for this caller."""
        return self.models is None or model in self.models

    @property
    def owner(self) -> str:
        """Whose idempotency keys these are."""
        return self.key_id or self.name


ANYONE = Caller(None, "anonymous", frozenset({"admin"}))
KEY_FILE = Caller(None, "admin-key-file", frozenset({"admin"}))
COMMAND_LINE = Caller(None, "command-line", frozenset({"admin"}))


class Known:
    """Callers that a key has let in, by its fingerprint; of too many the one longest unseen goes.

    What opened nothing is not in here, so that wrong keys push out nobody.
    """

    def __init__(self, most: int = MOST_KNOWN) -> None:
        self._most = most
        self._seen: dict[bytes, tuple[Caller, float]] = {}
        self._lock = threading.Lock()

    def note(self, fingerprint: bytes, caller: Caller) -> None:
        """Let in just now."""
        with self._lock:
            self._seen.pop(fingerprint, None)
            self._seen[fingerprint] = caller, monotonic()
            if len(self._seen) > self._most:
                del self._seen[next(iter(self._seen))]

    def find(self, fingerprint: bytes, seconds: float) -> Caller | None:
        """Who was let in no longer ago, with a key that has not expired since."""
        caller, since = self._seen.get(fingerprint, (None, 0.0))
        if caller is None or monotonic() - since > seconds:
            return None
        expired = caller.expires_at is not None and datetime.now(UTC) >= caller.expires_at
        return None if expired else caller
