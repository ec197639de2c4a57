"""Who may call: API keys, scopes, and the gate that checks them.

A key is 256 random bits, shown once. Kept are its first 8 characters and its HMAC-SHA256 under the
server's secret, so that the database alone opens nothing.
"""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from time import monotonic, time
from typing import Literal, get_args
from uuid import uuid4

from app.access import sessions
from app.access.callers import ANYONE, KEY_FILE, Caller, Known
from app.access.sessions import Session
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
"""How long a key that was looked up stands; a revocation is felt by then."""
OUTAGE_SECONDS = 600.0
"""How long a caller that was let in is believed while the database cannot be reached."""


class Unauthenticated(Exception):
    """No key, or one that opens nothing; the message is for the caller."""


class Misconfigured(ValueError):
    """Keys cannot be used with these settings."""


class Contradiction(ValueError):
    """A key that would be restricted, and could make itself another that is not.

    ``restriction``: models or roots.
    """

    def __init__(self, restriction: str) -> None:
        self.restriction = restriction
        super().__init__(
            "does not go with the scope admin, which makes keys of every kind: leave one of the "
            "two out"
        )


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
    """A key, to be shown once, and what is kept of it; ``Contradiction``."""
    if "admin" in scopes and not (models is None and roots is None):
        raise Contradiction("models" if models is not None else "roots")
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


Credential = str | Session
"""A key, or the session of a browser that signed in with one."""


class Gate:
    """Tells who a key belongs to. Looks into the database once per key and ``FRESH_SECONDS``.

    Open to anyone while there is neither a stored key nor an admin key file.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._secret = secret_of(settings)
        self._admin = _admin_key(settings)
        self._known = Known()
        self._unended: dict[str, datetime] = {}
        self._opened_at = float("-inf")
        self._down_until = 0.0
        self.needs_key = self._admin is not None
        """Whether a key is known to be needed. Once it is, it stays so."""

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

    def sign_out(self, session: Session) -> None:
        """End a session, for every worker; ``Unavailable``: for this one now, for all later."""
        note = self._read(session)
        if note is None:
            return
        self._unended[note.id] = datetime.fromtimestamp(note.ends, UTC)
        self.settle()

    def settle(self) -> None:
        """Write down the sessions that were signed out while the database could not be reached."""
        ended = dict(self._unended)
        if not ended:
            return
        with self._store.write() as unit:
            for session_id, ends_at in ended.items():
                unit.sessions.end(session_id, ends_at)
        for session_id in ended:
            self._unended.pop(session_id, None)

    def remembered(self, credential: Credential | None) -> Caller | None:
        """Who calls, if that was looked up just now; never waits."""
        down = monotonic() < self._down_until
        return self._believed(credential, OUTAGE_SECONDS if down else FRESH_SECONDS)

    def caller(self, credential: Credential | None) -> Caller:
        """Who calls; ``Unauthenticated`` where the service has keys and this is none.

        While the database cannot be reached, whoever was let in lately with a key is: to revoke it
        takes the database too. A session is not believed then, as it may have been signed out.
        """
        try:
            found = self._holder(credential)
            if found is None and not self.closed():
                found = ANYONE
        except Unavailable:
            found = self._believed(credential, OUTAGE_SECONDS)
            if found is None:
                raise
            self._down_until = monotonic() + FRESH_SECONDS
            return found
        if found is None:
            raise Unauthenticated(_advice(credential))
        self.needs_key = self.needs_key or found is not ANYONE
        if isinstance(credential, str) and found is not ANYONE:
            self._known.note(_fingerprint(credential), found)
        return found

    def lets_in(self, credential: Credential | None) -> bool:
        """Whether it still opens anything; ``Unavailable``."""
        try:
            return (self.remembered(credential) or self.caller(credential)) is not None
        except Unauthenticated:
            return False

    def close(self) -> None:
        """Ask for a key from now on, whether or not there is one."""
        self.needs_key = True

    def closed(self) -> bool:
        """Whether a key is needed."""
        return self.needs_key or self.has_keys()

    def has_keys(self) -> bool:
        """Whether there is a key; in the database one may have been revoked meanwhile."""
        if self._admin is not None:
            return True
        if monotonic() - self._opened_at <= FRESH_SECONDS:
            return False
        asked = monotonic()
        with self._store.read() as unit:
            keyed = unit.keys.any()
        if keyed:
            self.needs_key = True
        else:
            self._opened_at = asked
        return keyed

    def _believed(self, credential: Credential | None, seconds: float) -> Caller | None:
        """Who was let in no longer ago: with this key, or anyone while none was needed."""
        if isinstance(credential, str):
            found = self._known.find(_fingerprint(credential), seconds)
            if found is not None:
                return found
        open_to_all = not self.needs_key and monotonic() - self._opened_at <= seconds
        return ANYONE if open_to_all else None

    def _holder(self, credential: Credential | None) -> Caller | None:
        if credential is None:
            return None
        if isinstance(credential, Session):
            return self._signed_in(credential)
        return self._key_holder(credential)

    def _signed_in(self, session: Session) -> Caller | None:
        note = self._read(session)
        if note is None:
            return None
        self.settle()
        with self._store.read() as unit:
            if unit.sessions.ended(note.id):
                return None
            if self._admin is not None and note.holder == self._file_holder():
                return KEY_FILE
            try:
                record = unit.keys.get(note.holder)
            except NotFound:
                return None
        return _caller(record) if record.opens(datetime.now(UTC)) else None

    def _read(self, session: Session) -> sessions.Note | None:
        if self._secret is None and self._admin is None:
            return None
        return sessions.read(self._signing(), session, time())

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

    def _key_holder(self, token: str) -> Caller | None:
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


def _caller(record: KeyRecord) -> Caller:
    models = None if record.models is None else frozenset(record.models)
    roots = None if record.roots is None else frozenset(record.roots)
    scopes = frozenset(record.scopes)
    if models is not None or roots is not None:
        # An older release, that still runs beside this one, may have made such a key.
        scopes -= {"admin"}
    return Caller(record.id, record.name, scopes, models, roots, record.expires_at)


def _advice(credential: Credential | None) -> str:
    if credential is None:
        return "this service needs a key: Authorization: Bearer KEY"
    if isinstance(credential, Session):
        return "this session has ended: sign in again"
    return "this key opens nothing: it is unknown, expired or revoked"


def _fingerprint(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


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
