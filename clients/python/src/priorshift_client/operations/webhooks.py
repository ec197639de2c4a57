"""Webhooks, for administrators: where events are sent, and what came of it."""

from collections.abc import Sequence

from priorshift_client.bodies import change_body, json_body
from priorshift_client.calls import (
    Call,
    Listing,
    change,
    get,
    into,
    nothing,
    place,
    query,
    show_once,
    write,
)
from priorshift_client.operations.models import PAGE
from priorshift_client.options import UNCHANGED, Unchanged
from priorshift_client.webhooks import Delivery, EventType, Webhook


def create_webhook(
    url: str,
    events: Sequence[EventType],
    *,
    models: Sequence[str] | None = None,
    monitors: Sequence[str] | None = None,
    description: str = "",
    idempotency_key: str | None = None,
) -> Call[Webhook]:
    """Have events sent to an address, of these models and monitors only, or of all.

    This answer alone holds the secret that signs them. It is sent once, unless there is an
    ``idempotency_key``: what is sent again makes no other webhook, and its answer lacks the secret
    where an answer before was lost, with the warning ``shown-once``; ``rotate`` makes one.
    """
    content = {
        "url": url,
        "events": _listed(events),
        "models": _listed(models),
        "monitors": _listed(monitors),
        "description": description,
    }
    return show_once(place("webhooks"), json_body(content), into(Webhook), idempotency_key)


def get_webhook(id: str) -> Call[Webhook]:
    """A webhook, without its secret."""
    return get(place("webhooks", id), into(Webhook))


def list_webhooks(*, limit: int = PAGE) -> Listing[Webhook]:
    """Webhooks, newest first; ``limit`` is the size of a page."""
    return Listing(place("webhooks"), Webhook, query(limit=limit))


def change_webhook(
    webhook: Webhook | str,
    *,
    url: str | Unchanged = UNCHANGED,
    events: Sequence[EventType] | Unchanged = UNCHANGED,
    models: Sequence[str] | Unchanged | None = UNCHANGED,
    monitors: Sequence[str] | Unchanged | None = UNCHANGED,
    description: str | Unchanged = UNCHANGED,
    disabled: bool | Unchanged = UNCHANGED,
) -> Call[Webhook]:
    """Change a webhook; what waits to be sent goes to the new address. None is all of them."""
    content = {
        "url": url,
        "events": _listed(events),
        "models": _listed(models),
        "monitors": _listed(monitors),
        "description": description,
        "disabled": disabled,
    }
    return change("PATCH", _place(webhook), change_body(content), into(Webhook))


def delete_webhook(webhook: Webhook | str) -> Call[None]:
    """Delete a webhook, its history and what waits to be sent."""
    return change("DELETE", _place(webhook), None, nothing)


def rotate_secret(webhook: Webhook | str, *, idempotency_key: str | None = None) -> Call[Webhook]:
    """Make a new secret, in this answer only; for a day the one before signs as well.

    It is sent once, as each time makes another, unless there is an ``idempotency_key``.
    """
    return show_once(_place(webhook, "secret"), None, into(Webhook), idempotency_key)


def test_webhook(webhook: Webhook | str) -> Call[Delivery]:
    """Send the event ``webhook.test``, once; what comes of it is among the deliveries."""
    return write(_place(webhook, "test"), None, into(Delivery), None)


def list_deliveries(webhook: Webhook | str, *, limit: int = PAGE) -> Listing[Delivery]:
    """What was sent, or is to be, with every attempt, newest first; of 30 days."""
    return Listing(_place(webhook, "deliveries"), Delivery, query(limit=limit))


def _place(webhook: Webhook | str, *what: str) -> str:
    id = webhook.id if isinstance(webhook, Webhook) else webhook
    return place("webhooks", id, *what)


def _listed(names: Sequence[str] | Unchanged | None) -> list[str] | Unchanged | None:
    return names if names is None or isinstance(names, Unchanged) else list(names)
