"""pyarrow, which is an extra."""

from typing import Any

from app.core.errors import PriorshiftError

ArrowLibrary = Any
"""pyarrow tells no types; these names say what something of it is. Here: a module of it."""
ArrowType = Any
ArrowSchema = Any
ArrowScalar = Any
ArrowArray = Any
"""An array, or one in chunks."""
ArrowTable = Any
"""Rows: a record batch or a table."""
ArrowFile = Any
"""Something that is read or written: a file, or a reader or writer of one."""


class ExtraMissing(PriorshiftError):
    """Data sets need a package that is not installed."""


def pyarrow() -> ArrowLibrary:
    """The library; ``ExtraMissing`` with the command that installs it."""
    try:
        import pyarrow
    except ImportError:
        message = "data sets need the service's extra: pip install 'priorshift[arrow]'"
        raise ExtraMissing(message) from None
    return pyarrow
