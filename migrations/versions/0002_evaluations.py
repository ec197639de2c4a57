"""Evaluations: what late truth said of estimates."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "evaluations",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("version_id", sa.Integer, nullable=False),
        sa.Column("estimate_id", sa.String(32), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("content", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_evaluations"),
        sa.ForeignKeyConstraint(
            ["version_id"], ["versions.id"], name="fk_evaluations_version_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["estimate_id"],
            ["estimates.id"],
            name="fk_evaluations_estimate_id",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_evaluations_created_at_id", "evaluations", ["created_at", "id"])
    op.create_index(
        "ix_evaluations_version_id_created_at_id",
        "evaluations",
        ["version_id", "created_at", "id"],
    )
    op.create_index("ix_evaluations_estimate_id", "evaluations", ["estimate_id"])


def downgrade() -> None:
    op.drop_table("evaluations")
