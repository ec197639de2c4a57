"""Answers already given, so that a repeated request is answered and not repeated."""

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from models_store.errors import AlreadyAnswered, IdempotencyConflict
from models_store.records import RecordedAnswer
from models_store.tables import idempotency

LIFETIME = timedelta(hours=24)


class Idempotency:
    """Recorded answers by owner, route and key."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find(
        self, owner: str, route: str, key: str, body_hash: str, now: datetime
    ) -> RecordedAnswer | None:
        """The recorded answer; ``IdempotencyConflict`` if the key came with another body."""
        statement = sa.select(idempotency).where(
            idempotency.c.owner == owner,
            idempotency.c.route == route,
            idempotency.c.key == key,
            idempotency.c.created_at > now - LIFETIME,
        )
        row = self._connection.execute(statement).one_or_none()
        if row is None:
            return None
        if row.body_hash != body_hash:
            raise IdempotencyConflict(
                "this Idempotency-Key was used within 24 hours for another request; "
                "use a new key for a new request"
            )
        return RecordedAnswer(row.status, row.headers, row.body)

    def add(
        self,
        owner: str,
        route: str,
        key: str,
        body_hash: str,
        model_id: int | None,
        answer: RecordedAnswer,
        now: datetime,
    ) -> None:
        """Record an answer in place of an expired one; ``AlreadyAnswered`` if another was first.

        The record goes when the model goes, if it is of one: a replay never speaks of a model that
        is not there.
        """
        own = (idempotency.c.owner == owner, idempotency.c.route == route, idempotency.c.key == key)
        expired = idempotency.c.created_at <= now - LIFETIME
        self._connection.execute(idempotency.delete().where(*own, expired))
        statement = idempotency.insert().values(
            owner=owner,
            route=route,
            key=key,
            body_hash=body_hash,
            model_id=model_id,
            status=answer.status,
            headers=answer.headers,
            body=answer.body,
            created_at=now,
        )
        try:
            self._connection.execute(statement)
        except sa.exc.IntegrityError:
            raise AlreadyAnswered("another request with this key was first") from None

    def stale(self, now: datetime) -> bool:
        """Whether there are expired answers."""
        expired = sa.select(sa.literal(1)).where(idempotency.c.created_at <= now - LIFETIME)
        return self._connection.execute(expired.limit(1)).one_or_none() is not None

    def prune(self, now: datetime, most: int) -> int:
        """Drop expired answers, ``most`` of them at once; how many were dropped."""
        table = idempotency
        columns = (table.c.owner, table.c.route, table.c.key)
        expired = sa.select(*columns).where(table.c.created_at <= now - LIFETIME).limit(most)
        statement = table.delete().where(sa.tuple_(*columns).in_(expired))
        return self._connection.execute(statement).rowcount
