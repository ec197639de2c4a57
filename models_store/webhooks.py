"""Webhooks, and the events that go out to them.

An event is written for every webhook that wants it, with a task that delivers it, in the
transaction of what it tells: what is committed is sent.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, get_args
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from models_store.errors import NotFound
from models_store.paging import newest
from models_store.records import DeliveryRecord, DeliveryStatus, Page, WebhookRecord
from models_store.tables import deliveries, webhooks
from models_store.tasks import Tasks

Event = Literal["alert.opened", "alert.acknowledged", "alert.closed"]
EVENTS: tuple[Event, ...] = get_args(Event)
TEST = "webhook.test"
"""Sent to one webhook when it is asked for, whatever that one wants."""
DELIVER = "deliver"
"""The kind of the tasks; their key is the delivery's id."""


class Webhooks:
    """Webhooks by id, and their deliveries."""

    def __init__(self, connection: Connection, tasks: Tasks) -> None:
        self._connection = connection
        self._tasks = tasks

    def publish(
        self,
        event: Event,
        data: Mapping[str, Any],
        now: datetime,
        model: str | None = None,
        monitor: str | None = None,
    ) -> int:
        """Tell the webhooks that want it of an event, in this transaction; how many those are.

        ``data`` should be small: identities and what one reads first, below 20 kB.
        """
        # Locked against deletion only, so that none goes between this and its delivery.
        statement = (
            sa.select(webhooks)
            .where(webhooks.c.disabled.is_(False))
            .order_by(webhooks.c.id)
            .with_for_update(read=True, key_share=True)
        )
        enabled = [_webhook(row) for row in self._connection.execute(statement).all()]
        wanting = [record for record in enabled if record.wants(event, model, monitor)]
        event_id = uuid4().hex
        for record in wanting:
            self._send(record, event, event_id, data, now)
        return len(wanting)

    def test(self, webhook_id: str, now: datetime) -> DeliveryRecord:
        """Send the event ``TEST`` to one webhook."""
        record = self.lock(webhook_id)
        return self._send(record, TEST, uuid4().hex, {"webhook": webhook_id}, now)

    def _send(
        self, to: WebhookRecord, event: str, event_id: str, data: Mapping[str, Any], now: datetime
    ) -> DeliveryRecord:
        content = {"type": event, "timestamp": now.isoformat(), "data": data}
        body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        record = DeliveryRecord(
            id=uuid4().hex,
            webhook_id=to.id,
            event_id=event_id,
            type=event,
            body=body,
            status="pending",
            attempts=(),
            next_at=now,
            created_at=now,
        )
        values = {**vars(record), "attempts": []}
        self._connection.execute(deliveries.insert().values(values))
        self._tasks.add(DELIVER, record.id, {}, now)
        return record

    def add(self, record: WebhookRecord) -> None:
        """Keep a new webhook."""
        self._connection.execute(webhooks.insert().values(_values(record)))

    def get(self, webhook_id: str) -> WebhookRecord:
        """The webhook, or ``NotFound``."""
        return self._one(webhook_id, sa.select(webhooks))

    def lock(self, webhook_id: str) -> WebhookRecord:
        """The same, for a change that builds on it."""
        return self._one(webhook_id, sa.select(webhooks).with_for_update())

    def _one(self, webhook_id: str, statement: sa.Select[Any]) -> WebhookRecord:
        own = statement.where(webhooks.c.id == webhook_id)
        row = self._connection.execute(own).one_or_none()
        if row is None:
            raise NotFound(f"there is no webhook {webhook_id}")
        return _webhook(row)

    def list(self, before: tuple[datetime, str] | None, limit: int) -> Page[WebhookRecord]:
        """Webhooks, newest first."""
        return newest(self._connection, sa.select(webhooks), webhooks, before, limit, _webhook)

    def put(self, record: WebhookRecord) -> None:
        """Replace a webhook, which was locked, by another of its id."""
        own = webhooks.c.id == record.id
        self._connection.execute(webhooks.update().where(own).values(_values(record)))

    def disable(self, webhook_id: str, reason: str, now: datetime) -> None:
        """Send nothing to it any more; of a webhook that is gone, nothing."""
        values = {"disabled": True, "reason": reason, "updated_at": now}
        self._connection.execute(
            webhooks.update().where(webhooks.c.id == webhook_id).values(values)
        )

    def delete(self, webhook_id: str) -> None:
        """Delete a webhook with its deliveries, those that wait too."""
        own = webhooks.c.id == webhook_id
        if self._connection.execute(webhooks.delete().where(own)).rowcount == 0:
            raise NotFound(f"there is no webhook {webhook_id}")

    def delivery(self, delivery_id: str) -> tuple[DeliveryRecord, WebhookRecord] | None:
        """A delivery and its webhook; None if they were deleted."""
        statement = sa.select(deliveries).where(deliveries.c.id == delivery_id)
        row = self._connection.execute(statement).one_or_none()
        return None if row is None else (_delivery(row), self.get(row.webhook_id))

    def deliveries(
        self, webhook_id: str, before: tuple[datetime, str] | None, limit: int
    ) -> Page[DeliveryRecord]:
        """Deliveries of a webhook, newest first."""
        own = sa.select(deliveries).where(deliveries.c.webhook_id == webhook_id)
        return newest(self._connection, own, deliveries, before, limit, _delivery)

    def settle(
        self,
        record: DeliveryRecord,
        status: DeliveryStatus,
        attempt: Mapping[str, Any] | None = None,
        next_at: datetime | None = None,
    ) -> None:
        """Note what came of an attempt; of a delivery that is gone, nothing."""
        attempts = [*record.attempts, *([] if attempt is None else [dict(attempt)])]
        values = {"status": status, "attempts": attempts, "next_at": next_at}
        own = deliveries.c.id == record.id
        self._connection.execute(deliveries.update().where(own).values(values))

    def any_before(self, moment: datetime) -> bool:
        """Whether there are deliveries from before ``moment``."""
        old = sa.select(deliveries.c.id).where(deliveries.c.created_at < moment).limit(1)
        return self._connection.execute(old).first() is not None

    def prune(self, moment: datetime, most: int) -> int:
        """Drop deliveries from before ``moment``, ``most`` at once; how many were dropped."""
        old = sa.select(deliveries.c.id).where(deliveries.c.created_at < moment).limit(most)
        statement = deliveries.delete().where(deliveries.c.id.in_(old))
        return self._connection.execute(statement).rowcount


def _values(record: WebhookRecord) -> dict[str, Any]:
    listed = ("events", "models", "monitors")
    found = vars(record)
    return {**found, **{k: None if found[k] is None else list(found[k]) for k in listed}}


def _webhook(row: sa.Row[Any]) -> WebhookRecord:
    found = row._asdict()
    listed = ("events", "models", "monitors")
    return WebhookRecord(
        **{**found, **{k: None if found[k] is None else tuple(found[k]) for k in listed}}
    )


def _delivery(row: sa.Row[Any]) -> DeliveryRecord:
    return DeliveryRecord(**{**row._asdict(), "attempts": tuple(row.attempts)})
