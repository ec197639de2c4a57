"""Monitors named within their model, keys restricted to data roots, answers of no model."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _require_replaceable()
    with op.batch_alter_table("monitors") as batch:
        batch.drop_constraint("uq_monitors_name", type_="unique")
        batch.create_unique_constraint("uq_monitors_model_id_name", ["model_id", "name"])
    op.create_index("ix_monitors_name", "monitors", ["name"])
    op.add_column("api_keys", sa.Column("roots", sa.JSON, nullable=True))
    with op.batch_alter_table("idempotency") as batch:
        batch.alter_column("model_id", existing_type=sa.Integer, nullable=True)


def downgrade() -> None:
    """Fails where two models have monitors of one name; rename or delete one of them."""
    op.execute("DELETE FROM idempotency WHERE model_id IS NULL")
    with op.batch_alter_table("idempotency") as batch:
        batch.alter_column("model_id", existing_type=sa.Integer, nullable=False)
    op.drop_column("api_keys", "roots")
    _require_replaceable()
    op.drop_index("ix_monitors_name", "monitors")
    with op.batch_alter_table("monitors") as batch:
        batch.drop_constraint("uq_monitors_model_id_name", type_="unique")
        batch.create_unique_constraint("uq_monitors_name", ["name"])


def _require_replaceable() -> None:
    """SQLite replaces a table by dropping it, which would take what refers to its rows along."""
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        return
    enforced = connection.exec_driver_sql("PRAGMA foreign_keys").scalar_one()
    if enforced and connection.exec_driver_sql("SELECT 1 FROM monitors LIMIT 1").first():
        raise RuntimeError("migrate with priorshift migrate, which keeps what refers to a table")
