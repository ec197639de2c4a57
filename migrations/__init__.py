"""Alembic migrations; the tests' databases are built by them."""
