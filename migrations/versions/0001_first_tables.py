"""Models, versions, aliases, estimates and idempotency records."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "models",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("classes", sa.JSON, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_models"),
        sa.UniqueConstraint("name", name="uq_models_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "versions",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("derived", sa.JSON, nullable=False),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_versions"),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name="fk_versions_model_id", ondelete="CASCADE"
        ),
        sa.UniqueConstraint("model_id", "number", name="uq_versions_model_id_number"),
        sa.UniqueConstraint("model_id", "digest", name="uq_versions_model_id_digest"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "version_arrays",
        sa.Column("version_id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("version_id", "name", name="pk_version_arrays"),
        sa.ForeignKeyConstraint(
            ["version_id"],
            ["versions.id"],
            name="fk_version_arrays_version_id",
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "aliases",
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("alias", sa.String(63), nullable=False),
        sa.Column("version_id", sa.Integer, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("model_id", "alias", name="pk_aliases"),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name="fk_aliases_model_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["version_id"], ["versions.id"], name="fk_aliases_version_id", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "estimates",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("version_id", sa.Integer, nullable=False),
        sa.Column("moment", MOMENT, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("content", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_estimates"),
        sa.ForeignKeyConstraint(
            ["version_id"], ["versions.id"], name="fk_estimates_version_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_estimates_moment_id", "estimates", ["moment", "id"])
    op.create_index(
        "ix_estimates_version_id_moment_id", "estimates", ["version_id", "moment", "id"]
    )
    op.create_table(
        "estimate_segments",
        sa.Column("estimate_id", sa.String(32), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("value", sa.String(256), nullable=False),
        sa.PrimaryKeyConstraint("estimate_id", "key", name="pk_estimate_segments"),
        sa.ForeignKeyConstraint(
            ["estimate_id"],
            ["estimates.id"],
            name="fk_estimate_segments_estimate_id",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_estimate_segments_key_value", "estimate_segments", ["key", "value"])
    op.create_table(
        "idempotency",
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("route", sa.String(512), nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("body_hash", sa.String(64), nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("headers", sa.JSON, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("owner", "route", "key", name="pk_idempotency"),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name="fk_idempotency_model_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_idempotency_created_at", "idempotency", ["created_at"])


def downgrade() -> None:
    for table in (
        "idempotency",
        "estimate_segments",
        "estimates",
        "aliases",
        "version_arrays",
        "versions",
        "models",
    ):
        op.drop_table(table)
