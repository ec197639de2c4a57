"""The installed release."""

from importlib.metadata import version

RELEASE = version("priorshift")
