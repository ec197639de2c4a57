"""The tables. Migrations build them; these definitions only query them."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class UtcDateTime(sa.TypeDecorator[datetime]):
    """Aware UTC datetimes, microseconds kept, on every database."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse naive datetimes; store UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("naive datetime")
        return value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """SQLite gives naive datetimes back; they are UTC."""
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


models = sa.Table(
    "models",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(63), nullable=False, unique=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("classes", sa.JSON, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
    sqlite_autoincrement=True,
)

versions = sa.Table(
    "versions",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("model_id", sa.ForeignKey("models.id", ondelete="CASCADE"), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("derived", sa.JSON, nullable=False),
    sa.Column("metadata", sa.JSON, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.UniqueConstraint("model_id", "number"),
    sa.UniqueConstraint("model_id", "digest"),
    sqlite_autoincrement=True,
)

version_arrays = sa.Table(
    "version_arrays",
    metadata,
    sa.Column("version_id", sa.ForeignKey("versions.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
)

aliases = sa.Table(
    "aliases",
    metadata,
    sa.Column("model_id", sa.ForeignKey("models.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("alias", sa.String(63), primary_key=True),
    sa.Column("version_id", sa.ForeignKey("versions.id", ondelete="CASCADE"), nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
)

estimates = sa.Table(
    "estimates",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("version_id", sa.ForeignKey("versions.id", ondelete="CASCADE"), nullable=False),
    sa.Column("moment", UtcDateTime, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("content", sa.JSON, nullable=False),
    sa.Index(None, "moment", "id"),
    sa.Index(None, "version_id", "moment", "id"),
    sa.Index(None, "created_at", "id"),
)

estimate_segments = sa.Table(
    "estimate_segments",
    metadata,
    sa.Column("estimate_id", sa.ForeignKey("estimates.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("value", sa.String(256), nullable=False),
    sa.Index(None, "key", "value"),
)

evaluations = sa.Table(
    "evaluations",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("version_id", sa.ForeignKey("versions.id", ondelete="CASCADE"), nullable=False),
    sa.Column("estimate_id", sa.ForeignKey("estimates.id", ondelete="CASCADE"), nullable=True),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("content", sa.JSON, nullable=False),
    sa.Index(None, "created_at", "id"),
    sa.Index(None, "version_id", "created_at", "id"),
    sa.Index(None, "estimate_id"),
)

adaptations = sa.Table(
    "adaptations",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("version_id", sa.ForeignKey("versions.id", ondelete="CASCADE"), nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("content", sa.JSON, nullable=False),
    sa.Index(None, "version_id"),
)

adaptation_arrays = sa.Table(
    "adaptation_arrays",
    metadata,
    sa.Column(
        "adaptation_id", sa.ForeignKey("adaptations.id", ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("name", sa.String(32), primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("prefix", sa.String(8), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("scopes", sa.JSON, nullable=False),
    sa.Column("models", sa.JSON(none_as_null=True), nullable=True),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("expires_at", UtcDateTime, nullable=True),
    sa.Column("revoked_at", UtcDateTime, nullable=True),
    sa.Column("last_used_at", UtcDateTime, nullable=True),
    sa.Column("roots", sa.JSON(none_as_null=True), nullable=True),
    sa.Index(None, "prefix"),
    sa.Index(None, "created_at", "id"),
)

ended_sessions = sa.Table(
    "ended_sessions",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("ends_at", UtcDateTime, nullable=False),
    sa.Index(None, "ends_at"),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("key_id", sa.String(32), nullable=True),
    sa.Column("key_name", sa.String(200), nullable=False),
    sa.Column("action", sa.String(100), nullable=False),
    sa.Column("target", sa.String(512), nullable=False),
    sa.Column("address", sa.String(64), nullable=False),
    sa.Index(None, "at", "id"),
    sa.Index(None, "key_id", "at", "id"),
    sqlite_autoincrement=True,
)

idempotency = sa.Table(
    "idempotency",
    metadata,
    sa.Column("owner", sa.String(64), primary_key=True),
    sa.Column("route", sa.String(512), primary_key=True),
    sa.Column("key", sa.String(255), primary_key=True),
    sa.Column("body_hash", sa.String(64), nullable=False),
    sa.Column("status", sa.Integer, nullable=False),
    sa.Column("model_id", sa.ForeignKey("models.id", ondelete="CASCADE"), nullable=True),
    sa.Column("headers", sa.JSON, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Index(None, "created_at"),
)

tasks = sa.Table(
    "tasks",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("key", sa.String(200), nullable=False),
    sa.Column("payload", sa.JSON, nullable=False),
    sa.Column("due_at", UtcDateTime, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("owner", sa.String(64), nullable=True),
    sa.Column("error", sa.Text, nullable=True),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.UniqueConstraint("kind", "key"),
    sa.Index(None, "kind", "due_at"),
)

monitors = sa.Table(
    "monitors",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("name", sa.String(63), nullable=False),
    sa.Column("model_id", sa.ForeignKey("models.id", ondelete="CASCADE"), nullable=False),
    sa.Column("takes", sa.String(16), nullable=True),
    sa.Column("content", sa.JSON, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
    sa.UniqueConstraint("model_id", "name"),
    sa.Index(None, "model_id"),
    sa.Index(None, "name"),
)

streams = sa.Table(
    "streams",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("monitor_id", sa.ForeignKey("monitors.id", ondelete="CASCADE"), nullable=False),
    sa.Column("segment", sa.String(256), nullable=False),
    sa.Column("watermark", sa.BigInteger, nullable=True),
    sa.Column("state", sa.JSON, nullable=False),
    sa.UniqueConstraint("monitor_id", "segment"),
    sqlite_autoincrement=True,
)

windows = sa.Table(
    "windows",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("stream_id", sa.ForeignKey("streams.id", ondelete="CASCADE"), nullable=False),
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
    sa.UniqueConstraint("stream_id", "number"),
    sa.Index(None, "stream_id", "start"),
    sa.Index(None, "stream_id", "state", "number"),
    sqlite_autoincrement=True,
)

window_rows = sa.Table(
    "window_rows",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("window_id", sa.ForeignKey("windows.id", ondelete="CASCADE"), nullable=False),
    sa.Column("kind", sa.String(8), nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Index(None, "window_id"),
    sqlite_autoincrement=True,
)

alerts = sa.Table(
    "alerts",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("monitor_id", sa.ForeignKey("monitors.id", ondelete="CASCADE"), nullable=False),
    sa.Column("stream_id", sa.ForeignKey("streams.id", ondelete="CASCADE"), nullable=False),
    sa.Column("state", sa.String(12), nullable=False),
    sa.Column("opened_at", UtcDateTime, nullable=False),
    sa.Column("content", sa.JSON, nullable=False),
    sa.Index(None, "opened_at", "id"),
    sa.Index(None, "monitor_id", "opened_at", "id"),
    sa.Index(None, "stream_id", "state"),
)

webhooks = sa.Table(
    "webhooks",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("events", sa.JSON, nullable=False),
    sa.Column("models", sa.JSON(none_as_null=True), nullable=True),
    sa.Column("monitors", sa.JSON(none_as_null=True), nullable=True),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("disabled", sa.Boolean, nullable=False),
    sa.Column("reason", sa.Text, nullable=True),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("check", sa.String(32), nullable=False),
    sa.Column("rotated_at", UtcDateTime, nullable=True),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
    sa.Index(None, "created_at", "id"),
)

deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("webhook_id", sa.ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
    sa.Column("event_id", sa.String(32), nullable=False),
    sa.Column("type", sa.String(64), nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("attempts", sa.JSON, nullable=False),
    sa.Column("next_at", UtcDateTime, nullable=True),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Index(None, "webhook_id", "created_at", "id"),
    sa.Index(None, "created_at"),
)

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("model_id", sa.ForeignKey("models.id", ondelete="CASCADE"), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("state", sa.String(12), nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("started_at", UtcDateTime, nullable=True),
    sa.Column("finished_at", UtcDateTime, nullable=True),
    sa.Column("asked", sa.JSON, nullable=False),
    sa.Column("progress", sa.JSON, nullable=True),
    sa.Column("checkpoint", sa.LargeBinary, nullable=True),
    sa.Column("result", sa.JSON, nullable=True),
    sa.Index(None, "created_at", "id"),
    sa.Index(None, "model_id"),
)
