"""The Python client: its distribution and its tests."""
