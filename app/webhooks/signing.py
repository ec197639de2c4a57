"""Secrets of webhooks, and signatures by them, as Standard Webhooks 1.0.0 has them.

A secret is derived from the server's own: HMAC-SHA256 over the webhook's id and the number of its
generation. So the database holds nothing that signs. After a rotation both secrets sign for a day,
so that a receiver may change over in its own time.
"""

import base64
import hashlib
import hmac
from datetime import datetime, timedelta

from models_store.records import WebhookRecord

PREFIX = "whsec_"
OVERLAP = timedelta(hours=24)


class SecretChanged(Exception):
    """The server's secret is another than when the webhook's was shown."""


def derive(server: bytes, webhook_id: str, generation: int) -> bytes:
    """The 32 bytes that a webhook's events are signed with."""
    told = f"webhook.{webhook_id}.{generation}".encode()
    return hmac.new(server, told, hashlib.sha256).digest()


def shown(secret: bytes) -> str:
    """A secret as its receiver takes it."""
    return PREFIX + base64.b64encode(secret).decode("ascii")


def check(secret: bytes) -> str:
    """What tells a secret from another, and tells nothing of it."""
    return hmac.new(secret, b"check", hashlib.sha256).hexdigest()[:32]


def message(event_id: str) -> str:
    """The identity of an event as receivers know it: the same in every attempt, to everyone."""
    return f"msg_{event_id}"


def headers(
    server: bytes, webhook: WebhookRecord, event_id: str, body: bytes, now: datetime
) -> dict[str, str]:
    """What goes with ``body`` at ``now``; ``SecretChanged`` if the receiver could not verify it."""
    present = derive(server, webhook.id, webhook.generation)
    if not hmac.compare_digest(check(present), webhook.check):
        raise SecretChanged("PRIORSHIFT_KEY_SECRET is not what it was; rotate the secret")
    secrets = [present]
    if webhook.rotated_at is not None and now < webhook.rotated_at + OVERLAP:
        secrets.append(derive(server, webhook.id, webhook.generation - 1))
    identity, moment = message(event_id), str(int(now.timestamp()))
    signed = b".".join([identity.encode(), moment.encode(), body])
    return {
        "webhook-id": identity,
        "webhook-timestamp": moment,
        "webhook-signature": " ".join(f"v1,{_signature(secret, signed)}" for secret in secrets),
    }


def _signature(secret: bytes, signed: bytes) -> str:
    return base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode("ascii")
