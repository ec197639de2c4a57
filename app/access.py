"""Who may call: API keys, scopes, and the gate that checks them.

A key is 256 random bits, shown once. Kept are its first 8 characters and its HMAC-SHA256 under the
server's secret, so that the database alone opens nothing.
"""

import hashlib
import hmac
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic, time
from typing import Literal, get_args
from uuid import uuid4

from app import sessions
from app.sessions import Session
from app.settings import Settings
from models_store.errors import NotFound, Unavailable
from models_store.records import KeyRecord
from models_store.store import Store

Scope = Literal["read", "estimate", "register", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
PREFIX = 8
SHORTEST_SECRET = 16
SHORTEST_KEY = 32
FRESH_SECONDS = 0.5
OUTAGE_SECONDS = 600.0
"""How long a caller that was let in is believed while the database cannot be reached."""
"""How long a key that was looked up stands; a revocation is felt by then."""
MOST_REMEMBERED = 1000


class Unauthenticated(Exception):
    """No key, or one that opens nothing; the message is for the caller."""


class Misconfigured(ValueError):
    """Keys cannot be used with these settings."""


@dataclass(frozen=True)
class Caller:
    """Who calls. ``models``: the only models that exist for this caller, None for all.

    ``roots``: the only data roots that do.
    """

    key_id: str | None
    name: str
    scopes: frozenset[str]
    models: frozenset[str] | None = None
    roots: frozenset[str] | None = None

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


def secret_of(settings: Settings) -> bytes | None:
    """The server's secret from the environment or its file; ``Misconfigured`` if it is short."""
    text = settings.key_secret.get_secret_value() if settings.key_secret is not None else None
    if settings.key_secret_file is not None:
        text = settings.key_secret_file.read_text().strip()
    if text is not None and len(text) < SHORTEST_SECRET:
        raise Misconfigured(
            f"PRIORSHIFT_KEY_SECRET must have at least {SHORTEST_SECRET} characters; "
            "make one with: openssl rand -hex 32"
        )
    return None if text is None else text.encode()


def new_key(
    secret: bytes,
    name: str,
    scopes: Sequence[str],
    models: Sequence[str] | None,
    expires_at: datetime | None,
    roots: Sequence[str] | None = None,
) -> tuple[str, KeyRecord]:
    """A key, to be shown once, and what is kept of it."""
    token = secrets.token_urlsafe(32)
    record = KeyRecord(
        id=uuid4().hex,
        prefix=token[:PREFIX],
        digest=digest(secret, token),
        name=name,
        scopes=tuple(scopes),
        models=None if models is None else tuple(models),
        created_at=datetime.now(UTC),
        expires_at=expires_at,
        roots=None if roots is None else tuple(roots),
    )
    return token, record


def digest(secret: bytes, token: str) -> str:
    """HMAC-SHA256 of a key."""
    return hmac.new(secret, token.encode(), hashlib.sha256).hexdigest()


class Gate:
    """Tells who a key belongs to. Looks into the database once per key and ``FRESH_SECONDS``.

    Open to anyone while there is neither a stored key nor an admin key file.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._secret = secret_of(settings)
        self._admin = _admin_key(settings)
        self._remembered: dict[bytes, tuple[Caller | None, float]] = {}
        self._keyed: tuple[bool, float] = (False, -FRESH_SECONDS)
        self._down_until = 0.0
        self._closed = False
        self._lock = threading.Lock()

    def secret(self) -> bytes:
        """What keys are digested with; ``Misconfigured`` where there is none."""
        if self._secret is None:
            raise Misconfigured("set PRIORSHIFT_KEY_SECRET, or PRIORSHIFT_KEY_SECRET_FILE")
        return self._secret

    def session(self, token: str) -> Session | None:
        """A session for whom this key belongs to, None where none is needed; ``Unauthenticated``.

        It opens what the key opens, and ends with it.
        """
        caller = self.caller(token)
        if caller is ANYONE:
            return None
        holder = caller.key_id or self._file_holder()
        return sessions.signed(self._signing(), holder, int(time()) + sessions.SECONDS)

    def remembered(self, token: "Credential | None") -> Caller | None:
        """Who calls, if that was looked up just now; never waits."""
        known = self._remembered.get(_fingerprint(token))
        now = monotonic()
        believed = OUTAGE_SECONDS if now < self._down_until else FRESH_SECONDS
        if known is None or now - known[1] > believed:
            return None
        return known[0]

    def caller(self, token: "Credential | None") -> Caller:
        """Who calls; ``Unauthenticated`` where the service has keys and this is none.

        While the database cannot be reached, whoever was let in lately is: to revoke a key takes
        the database too.
        """
        try:
            found = self._holder(token) if token is not None else None
            if found is None and not self.closed():
                found = ANYONE
        except Unavailable:
            known, since = self._remembered.get(_fingerprint(token), (None, 0.0))
            if known is None or monotonic() - since > OUTAGE_SECONDS:
                raise
            self._down_until = monotonic() + FRESH_SECONDS
            return known
        with self._lock:
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[_fingerprint(token)] = (found, monotonic())
        if found is None and token is None:
            raise Unauthenticated("this service needs a key: Authorization: Bearer KEY")
        if found is None and isinstance(token, Session):
            raise Unauthenticated("this session has ended: sign in again")
        if found is None:
            raise Unauthenticated("this key opens nothing: it is unknown, expired or revoked")
        return found

    def close(self) -> None:
        """Ask for a key from now on, whether or not there is one."""
        self._closed = True

    def closed(self) -> bool:
        """Whether a key is needed."""
        return self._closed or self.has_keys()

    def has_keys(self) -> bool:
        """Whether there is a key; in the database one may have been revoked meanwhile."""
        if self._admin is not None:
            return True
        keyed, since = self._keyed
        if not keyed and monotonic() - since > FRESH_SECONDS:
            with self._store.read() as unit:
                keyed = unit.keys.any()
            self._keyed = (keyed, monotonic())
        return keyed

    def _holder(self, credential: "Credential") -> Caller | None:
        if isinstance(credential, Session):
            return self._signed_in(credential)
        return self._known(credential)

    def _signed_in(self, session: Session) -> Caller | None:
        if self._secret is None and self._admin is None:
            return None
        holder = sessions.holder_of(self._signing(), session, time())
        if holder is None:
            return None
        if self._admin is not None and holder == self._file_holder():
            return KEY_FILE
        try:
            with self._store.read() as unit:
                record = unit.keys.get(holder)
        except NotFound:
            return None
        return _caller(record) if record.opens(datetime.now(UTC)) else None

    def _signing(self) -> bytes:
        """What sessions are signed with: the secret, or where only a file has a key, that key."""
        if self._secret is not None:
            return self._secret
        assert self._admin is not None
        return self._admin.encode()

    def _file_holder(self) -> str:
        """What the key of the file is known by; another key in it ends its sessions."""
        assert self._admin is not None
        return f"file-{hashlib.sha256(self._admin.encode()).hexdigest()[:32]}"

    def _known(self, token: str) -> Caller | None:
        if self._admin is not None and hmac.compare_digest(token.encode(), self._admin.encode()):
            return KEY_FILE
        if self._secret is None:
            return None
        now = datetime.now(UTC)
        own = digest(self._secret, token)
        with self._store.read() as unit:
            candidates = unit.keys.starting(token[:PREFIX])
        for record in candidates:
            if hmac.compare_digest(own, record.digest) and record.opens(now):
                self._note(record, now)
                return _caller(record)
        return None

    def _note(self, record: KeyRecord, now: datetime) -> None:
        if record.used_lately(now):
            return
        with self._store.write() as unit:
            unit.keys.used(record.id, now)


Credential = str | Session
"""A key, or the session of a browser that signed in with one."""


def _caller(record: KeyRecord) -> Caller:
    models = None if record.models is None else frozenset(record.models)
    roots = None if record.roots is None else frozenset(record.roots)
    return Caller(record.id, record.name, frozenset(record.scopes), models, roots)


def _fingerprint(token: Credential | None) -> bytes:
    if isinstance(token, Session):
        return hashlib.sha256(b"session " + token.text.encode()).digest()
    return b"" if token is None else hashlib.sha256(token.encode()).digest()


def _admin_key(settings: Settings) -> str | None:
    if settings.admin_key_file is None:
        return None
    key = settings.admin_key_file.read_text().strip()
    if len(key) < SHORTEST_KEY or not key.isascii():
        raise Misconfigured(
            f"the file of PRIORSHIFT_ADMIN_KEY_FILE must hold at least {SHORTEST_KEY} plain "
            "characters; make one with: openssl rand -hex 32"
        )
    return key
