"""Whether a delivery is from the service, as Standard Webhooks 1.0.0 has it."""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from dataclasses import replace

from priorshift_client.errors import InvalidSignature, UnexpectedAnswer
from priorshift_client.reading import read
from priorshift_client.webhooks import Event

PREFIX = "whsec_"
TOLERANCE = 300.0
"""Seconds that the clocks of sender and receiver may differ, the way included."""


def verify(
    secret: str,
    headers: Mapping[str, str],
    body: bytes | bytearray | memoryview,
    *,
    tolerance: float = TOLERANCE,
    now: float | None = None,
) -> Event:
    """The event of a delivery; ``InvalidSignature`` if it is forged, altered or old.

    ``headers`` in any case; ``body``: the very bytes that came, before anything parses them;
    ``now``: seconds since 1970, the clock's without it. The same event may come more than once:
    remember ``message``.
    """
    key = _key(secret)
    if not isinstance(body, bytes | bytearray | memoryview):
        raise TypeError(f"body is the bytes that came, not {type(body).__name__}")
    content = bytes(body)
    named = {name.lower(): value for name, value in headers.items()}
    message, moment, signatures = (_header(named, f"webhook-{of}") for of in PARTS)
    _require_fresh(moment, tolerance, time.time() if now is None else now)
    payload = b".".join([_bytes(message), _bytes(moment), content])
    mine = b"v1," + base64.b64encode(hmac.digest(key, payload, hashlib.sha256))
    if not any(hmac.compare_digest(mine, _bytes(signature)) for signature in signatures.split()):
        raise InvalidSignature("not signed with this secret, or altered since")
    try:
        return replace(read(Event, json.loads(content)), message=message)
    except (KeyError, TypeError, ValueError) as error:
        raise UnexpectedAnswer(f"the signature holds, but this is no event: {error!r}") from error


PARTS = ("id", "timestamp", "signature")


def _key(secret: str) -> bytes:
    """What signs; ``ValueError`` does not show the secret."""
    try:
        key = base64.b64decode(secret.strip().removeprefix(PREFIX), validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if not (key and secret.strip().startswith(PREFIX)):
        raise ValueError(f"a secret is {PREFIX} and base64, as the answer that made it shows it")
    return key


def _header(named: Mapping[str, str], name: str) -> str:
    if not named.get(name):
        raise InvalidSignature(f"the header {name} is missing")
    return named[name]


def _bytes(text: str) -> bytes:
    """Signed texts are ASCII; what is not may hold anything that a header can, and never fits."""
    return text.encode(errors="replace")


def _require_fresh(moment: str, tolerance: float, now: float) -> None:
    if not (moment.isascii() and moment.isdigit() and len(moment) < 16):
        raise InvalidSignature("webhook-timestamp is no time")
    age = now - int(moment)
    if age > tolerance:
        raise InvalidSignature(f"sent {age:.0f} seconds ago, more than {tolerance:g}")
    if not age >= -tolerance:
        raise InvalidSignature(f"sent {-age:.0f} seconds from now: is the clock right?")
