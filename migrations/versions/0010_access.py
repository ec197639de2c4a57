"""Sessions that were signed out; no key that is restricted to models makes other keys.

Such a key loses ``admin`` and keeps its models. Where it had no other scope it keeps what admin
covered of them. Nobody else knows which these were, so the way back leaves them as they are.
"""

import sys
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

COVERED = ["read", "estimate", "register"]


def upgrade() -> None:
    op.create_table(
        "ended_sessions",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ended_sessions"),
    )
    op.create_index("ix_ended_sessions_ends_at", "ended_sessions", ["ends_at"])
    _restrict(op.get_bind())


def downgrade() -> None:
    op.drop_table("ended_sessions")


def _restrict(connection: sa.Connection) -> None:
    keys = sa.table(
        "api_keys",
        sa.column("id", sa.String),
        sa.column("prefix", sa.String),
        sa.column("name", sa.String),
        sa.column("scopes", sa.JSON),
        sa.column("models", sa.JSON),
    )
    for key in connection.execute(sa.select(keys).order_by(keys.c.id)).all():
        if key.models is None or "admin" not in key.scopes:
            continue
        left = [scope for scope in key.scopes if scope != "admin"] or COVERED
        connection.execute(keys.update().where(keys.c.id == key.id).values(scopes=left))
        _trail(connection, key.id)
        # On standard error: what a command prints is for programs.
        sys.stderr.write(
            f"key {key.id} ({key.prefix}…, {key.name!r}) is restricted to {', '.join(key.models)} "
            f"and had the scope admin, which makes keys for any model: it has {', '.join(left)} "
            "now; make another key for what it administered\n"
        )


def _trail(connection: sa.Connection, key_id: str) -> None:
    audit = sa.table(
        "audit",
        sa.column("at", sa.DateTime(timezone=True)),
        *(sa.column(name, sa.String) for name in ("key_name", "action", "target", "address")),
    )
    connection.execute(
        audit.insert().values(
            at=datetime.now(UTC),
            key_name="command-line",
            action="migrate: admin taken from a key of some models",
            target=key_id,
            address="local",
        )
    )
