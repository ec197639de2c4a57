"""Runs the migrations on the connection that models_store.schema hands over."""

from alembic import context

from models_store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
