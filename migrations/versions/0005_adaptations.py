"""Adaptations: models of the other kinds, fitted to a target sample."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "adaptations",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("version_id", sa.Integer, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("content", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_adaptations"),
        sa.ForeignKeyConstraint(
            ["version_id"], ["versions.id"], name="fk_adaptations_version_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_adaptations_version_id", "adaptations", ["version_id"])
    op.create_table(
        "adaptation_arrays",
        sa.Column("adaptation_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("adaptation_id", "name", name="pk_adaptation_arrays"),
        sa.ForeignKeyConstraint(
            ["adaptation_id"],
            ["adaptations.id"],
            name="fk_adaptation_arrays_adaptation_id",
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    op.drop_table("adaptation_arrays")
    op.drop_table("adaptations")
