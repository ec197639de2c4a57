"""Sessions of browsers: a signed note of who signed in, and until when.

A cookie holds ``{ends}.{id}.{holder}.{signature}``: seconds since 1970, a random name, what the key
is known by (never the key), HMAC-SHA256 of them. Nothing is kept of a session until it is signed
out, so any worker can read it; whether it was, and whether the holder may still come in, is asked
of the database with every request.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

SECONDS = 12 * 3600
"""How long a session lasts."""
PURPOSE = b"priorshift session"
FORM = re.compile(r"([0-9]{1,12})\.([0-9a-f]{32})\.([a-z0-9-]{1,80})\.([0-9a-f]{64})")


@dataclass(frozen=True)
class Session:
    """What a cookie holds, believed or not."""

    text: str


@dataclass(frozen=True)
class Note:
    """What a genuine session says: its own id, whose it is, and until when (seconds since 1970)."""

    id: str
    holder: str
    ends: int


def signed(secret: bytes, holder: str, ends: int) -> Session:
    """A session of ``holder`` until ``ends``, in seconds since 1970."""
    told = f"{ends}.{secrets.token_hex(16)}.{holder}"
    return Session(f"{told}.{_signature(secret, told)}")


def read(secret: bytes, session: Session, now: float) -> Note | None:
    """What it says; None for one that was altered, or is over."""
    form = FORM.fullmatch(session.text)
    if form is None:
        return None
    told, _, signature = session.text.rpartition(".")
    genuine = hmac.compare_digest(signature, _signature(secret, told))
    note = Note(form[2], form[3], int(form[1]))
    return note if genuine and now < note.ends else None


def _signature(secret: bytes, told: str) -> str:
    own = hmac.new(secret, PURPOSE, hashlib.sha256).digest()
    return hmac.new(own, told.encode(), hashlib.sha256).hexdigest()
