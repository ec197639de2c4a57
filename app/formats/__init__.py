"""Bytes to values and back, a module per media type."""
