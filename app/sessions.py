"""Sessions of browsers: a signed note of who signed in, and until when.

A cookie holds ``{ends}.{holder}.{signature}``: seconds since 1970, what the key is known by (never
the key), HMAC-SHA256 of both. Nothing is kept of it, so any worker can read it; whether the holder
may still come in is asked of the gate with every request.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass

SECONDS = 12 * 3600
"""How long a session lasts."""
PURPOSE = b"priorshift session"
FORM = re.compile(r"([0-9]{1,12})\.([a-z0-9-]{1,80})\.([0-9a-f]{64})")


@dataclass(frozen=True)
class Session:
    """What a cookie holds, believed or not."""

    text: str


def signed(secret: bytes, holder: str, ends: int) -> Session:
    """A session of ``holder`` until ``ends``, in seconds since 1970."""
    return Session(f"{ends}.{holder}.{_signature(secret, holder, ends)}")


def holder_of(secret: bytes, session: Session, now: float) -> str | None:
    """Whose session this is; None for one that was altered, or has ended."""
    form = FORM.fullmatch(session.text)
    if form is None:
        return None
    ends, holder, signature = int(form[1]), form[2], form[3]
    genuine = hmac.compare_digest(signature, _signature(secret, holder, ends))
    return holder if genuine and now < ends else None


def _signature(secret: bytes, holder: str, ends: int) -> str:
    own = hmac.new(secret, PURPOSE, hashlib.sha256).digest()
    return hmac.new(own, f"{ends}.{holder}".encode(), hashlib.sha256).hexdigest()
