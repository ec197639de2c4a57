"""Delivers events: at least once within about a day, or not at all and says so."""

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from app.logs import log
from app.operations.tasks import Lane, Lease
from app.release import RELEASE
from app.webhooks import signing
from app.webhooks.sending import Outcome, Sender
from app.webhooks.urls import parse
from models_store.records import DeliveryRecord, TaskRecord, WebhookRecord
from models_store.store import Store, UnitOfWork
from models_store.webhooks import DELIVER

SCHEDULE = (5.0, 60.0, 300.0, 1800.0, 7200.0, 18_000.0, 28_800.0, 28_800.0)
"""Seconds before the second attempt, the third, …: a day in all."""
JITTER = 0.2
LONGEST_RETRY_AFTER = 28_800.0
THREADS = 4
LEASE_SECONDS = 60.0
"""More than the resolver and an attempt take together; a kill delays what was under way by it."""
GONE = 410


class Deliver:
    """The handler of ``DELIVER``; ``secret`` gives the server's own, or raises.

    ``count`` is told what came of each attempt: delivered, postponed or failed.
    """

    def __init__(
        self,
        store: Store,
        sender: Sender,
        secret: Callable[[], bytes],
        count: Callable[[str], None],
    ) -> None:
        self._store = store
        self._sender = sender
        self._secret = secret
        self._count = count

    def lane(self) -> Lane:
        """Its threads: a receiver that hangs holds up one of them, for seconds."""
        return Lane(DELIVER, {DELIVER: self}, THREADS, LEASE_SECONDS)

    def __call__(self, task: TaskRecord, lease: Lease) -> None:
        """Make one attempt, note it, and settle the task."""
        with self._store.read() as unit:
            found = unit.webhooks.delivery(task.key)
        if found is None:
            lease.finish()
            return
        delivery, webhook = found
        if webhook.disabled:
            lease.finish(lambda unit: unit.webhooks.settle(delivery, "cancelled"))
            return
        now = datetime.now(UTC)
        outcome = self._attempt(delivery, webhook, now)
        self._count(_settle(lease, delivery, webhook, outcome, now))

    def _attempt(self, delivery: DeliveryRecord, webhook: WebhookRecord, now: datetime) -> Outcome:
        body = delivery.body.encode()
        try:
            signed = signing.headers(self._secret(), webhook, delivery.event_id, body, now)
        except signing.SecretChanged as error:
            return Outcome(None, str(error), 0.0)
        headers = {
            "User-Agent": f"priorshift/{RELEASE}",
            "Content-Type": "application/json",
            **signed,
        }
        return self._sender.post(parse(webhook.url), headers, body)


def _settle(
    lease: Lease, delivery: DeliveryRecord, webhook: WebhookRecord, outcome: Outcome, now: datetime
) -> str:
    attempt = {
        "at": now.isoformat(),
        "status": outcome.status,
        "error": outcome.error,
        "milliseconds": round(1000 * outcome.seconds, 1),
    }
    made = len(delivery.attempts) + 1
    told = {"webhook": webhook.id, "delivery": delivery.id, "attempt": made, "error": outcome.error}
    answered = outcome.status
    if answered is not None and 200 <= answered < 300:
        lease.finish(lambda unit: unit.webhooks.settle(delivery, "delivered", attempt))
        log.info("event delivered", status=answered, **told)
        return "delivered"
    if answered == GONE or made > len(SCHEDULE):
        lease.finish(lambda unit: _give_up(unit, delivery, attempt, answered == GONE))
        log.warning("event not delivered", status=answered, **told)
        return "failed"
    due = datetime.now(UTC) + timedelta(seconds=pause(made, outcome.retry_after, now))
    lease.postpone(
        due,
        outcome.error or f"answered {answered}",
        lambda unit: unit.webhooks.settle(delivery, "pending", attempt, due),
    )
    log.info("event to be delivered again", status=answered, **told)
    return "postponed"


def _give_up(
    unit: UnitOfWork, delivery: DeliveryRecord, attempt: Mapping[str, object], gone: bool
) -> None:
    # The webhook first, as whoever deletes it locks it first.
    if gone:
        unit.webhooks.disable(delivery.webhook_id, "answered 410 Gone", datetime.now(UTC))
    unit.webhooks.settle(delivery, "failed", attempt)


def pause(made: int, retry_after: str | None, now: datetime) -> float:
    """Seconds before the next attempt after ``made``; what the receiver asks for, if longer."""
    planned = SCHEDULE[made - 1] * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311
    return max(planned, min(_seconds(retry_after, now), LONGEST_RETRY_AFTER))


def _seconds(retry_after: str | None, now: datetime) -> float:
    """A Retry-After header, in seconds or as a date; 0 for none or nonsense."""
    if retry_after is None:
        return 0.0
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    aware = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return max((aware - now).total_seconds(), 0.0)
