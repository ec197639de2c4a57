"""Jobs: work on data sets, with what is needed to go on after a restart."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("model_id", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("asked", sa.JSON, nullable=False),
        sa.Column("progress", sa.JSON, nullable=True),
        sa.Column("checkpoint", sa.LargeBinary, nullable=True),
        sa.Column("result", sa.JSON, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.ForeignKeyConstraint(
            ["model_id"], ["models.id"], name="fk_jobs_model_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_jobs_created_at_id", "jobs", ["created_at", "id"])
    op.create_index("ix_jobs_model_id", "jobs", ["model_id"])


def downgrade() -> None:
    op.drop_table("jobs")
