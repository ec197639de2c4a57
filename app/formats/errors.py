"""What can be wrong with the bytes of a table, whatever brought them."""


class FormatError(Exception):
    """Root of what a reader of a format refuses."""


class Unparseable(FormatError):
    """The body cannot be read."""


class TooLarge(FormatError):
    """Something is over a limit."""


class Unsupported(FormatError):
    """The body's media type is not known."""
