"""Bytes to values and back, a module per media type."""

Piece = bytes | memoryview
"""A part of an answer, sent as it is: nothing is copied together first."""
