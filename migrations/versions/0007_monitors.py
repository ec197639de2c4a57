"""Monitors: streams of rows in windows, and the alerts that come of them."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "monitors",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("takes", sa.String(16), nullable=True),
        sa.Column("content", sa.JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_monitors"),
        sa.UniqueConstraint("name", name="uq_monitors_name"),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name="fk_monitors_model_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_monitors_model_id", "monitors", ["model_id"])
    op.create_table(
        "streams",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("monitor_id", sa.String(32), nullable=False),
        sa.Column("segment", sa.String(256), nullable=False),
        sa.Column("watermark", sa.BigInteger, nullable=True),
        sa.Column("state", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_streams"),
        sa.UniqueConstraint("monitor_id", "segment", name="uq_streams_monitor_id_segment"),
        sa.ForeignKeyConstraint(
            ["monitor_id"], ["monitors.id"], name="fk_streams_monitor_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "windows",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("stream_id", sa.Integer, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("start", sa.BigInteger, nullable=False),
        sa.Column("end", sa.BigInteger, nullable=False),
        sa.Column("due", sa.BigInteger, nullable=True),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("loose", sa.Integer, nullable=False),
        sa.Column("sketched", sa.Integer, nullable=False),
        sa.Column("estimate_id", sa.String(32), nullable=True),
        sa.Column("said", sa.LargeBinary, nullable=True),
        sa.Column("note", sa.String(500), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_windows"),
        sa.UniqueConstraint("stream_id", "number", name="uq_windows_stream_id_number"),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name="fk_windows_stream_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_windows_stream_id_start", "windows", ["stream_id", "start"])
    op.create_index(
        "ix_windows_stream_id_state_number", "windows", ["stream_id", "state", "number"]
    )
    op.create_table(
        "window_rows",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("window_id", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_window_rows"),
        sa.ForeignKeyConstraint(
            ["window_id"], ["windows.id"], name="fk_window_rows_window_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_window_rows_window_id", "window_rows", ["window_id"])
    op.create_table(
        "alerts",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("monitor_id", sa.String(32), nullable=False),
        sa.Column("stream_id", sa.Integer, nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("content", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alerts"),
        sa.ForeignKeyConstraint(
            ["monitor_id"], ["monitors.id"], name="fk_alerts_monitor_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["stream_id"], ["streams.id"], name="fk_alerts_stream_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_alerts_opened_at_id", "alerts", ["opened_at", "id"])
    op.create_index(
        "ix_alerts_monitor_id_opened_at_id", "alerts", ["monitor_id", "opened_at", "id"]
    )
    op.create_index("ix_alerts_stream_id_state", "alerts", ["stream_id", "state"])


def downgrade() -> None:
    for table in ("alerts", "window_rows", "windows", "streams", "monitors"):
        op.drop_table(table)
