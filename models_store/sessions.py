"""Sessions of browsers that were signed out before their time."""

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from models_store.tables import ended_sessions

MARGIN = timedelta(hours=1)
"""How far the clocks of two machines may be apart before a session is forgotten too early."""


class Sessions:
    """The ids of ended sessions, for as long as their cookies would stand."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def end(self, session_id: str, ends_at: datetime) -> None:
        """Let it open nothing any more; to do it twice is no mistake."""
        dialect = postgresql if self._connection.dialect.name == "postgresql" else sqlite
        statement = dialect.insert(ended_sessions).values(id=session_id, ends_at=ends_at)
        self._connection.execute(statement.on_conflict_do_nothing(index_elements=["id"]))

    def ended(self, session_id: str) -> bool:
        """Whether it was signed out."""
        statement = sa.select(ended_sessions.c.id).where(ended_sessions.c.id == session_id)
        return self._connection.execute(statement).first() is not None

    def any_over(self, now: datetime) -> bool:
        """Whether there are some whose time is over anyway."""
        statement = sa.select(ended_sessions.c.id).where(ended_sessions.c.ends_at < now - MARGIN)
        return self._connection.execute(statement.limit(1)).first() is not None

    def prune(self, now: datetime, limit: int) -> int:
        """Drop those, ``limit`` at a time; how many."""
        over = sa.select(ended_sessions.c.id).where(ended_sessions.c.ends_at < now - MARGIN)
        statement = ended_sessions.delete().where(ended_sessions.c.id.in_(over.limit(limit)))
        return self._connection.execute(statement).rowcount
