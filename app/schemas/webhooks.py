"""Webhooks and their deliveries, as answers."""

from datetime import datetime

from pydantic import Field

from app.schemas.base import Out, WarningOut
from models_store.records import DeliveryStatus


class WebhookOut(Out):
    """A webhook; ``secret``: what its receiver verifies with, in the answer that made it.

    ``reason``: why the service itself disabled it.
    """

    id: str
    url: str
    events: list[str]
    models: list[str] | None
    monitors: list[str] | None
    description: str
    disabled: bool
    reason: str | None
    created_at: datetime
    updated_at: datetime
    secret_rotated_at: datetime | None
    secret: str | None = None
    warnings: list[WarningOut] = Field(default_factory=list)


class WebhookPage(Out):
    """Webhooks, newest first."""

    items: list[WebhookOut]
    next_cursor: str | None


class AttemptOut(Out):
    """An attempt: the status of the answer, or why there was none."""

    at: datetime
    status: int | None
    error: str | None
    milliseconds: float


class DeliveryOut(Out):
    """An event for a webhook; ``message``: its header webhook-id, the same in every attempt."""

    id: str
    message: str
    type: str
    status: DeliveryStatus
    created_at: datetime
    next_attempt_at: datetime | None
    attempts: list[AttemptOut]


class DeliveryPage(Out):
    """Deliveries, newest first."""

    items: list[DeliveryOut]
    next_cursor: str | None
