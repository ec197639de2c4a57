"""An index to find what is old enough to be pruned."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_estimates_created_at_id", "estimates", ["created_at", "id"])


def downgrade() -> None:
    op.drop_index("ix_estimates_created_at_id", "estimates")
