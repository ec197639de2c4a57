"""Persistence: the only place with SQL."""
