"""pyarrow, which is an extra."""

from typing import Any

from app.core.errors import PriorshiftError


class ExtraMissing(PriorshiftError):
    """Data sets need a package that is not installed."""


def pyarrow() -> Any:
    """The library; ``ExtraMissing`` with the command that installs it."""
    try:
        import pyarrow
    except ImportError:
        message = "data sets need the service's extra: pip install 'priorshift[arrow]'"
        raise ExtraMissing(message) from None
    return pyarrow
