"""What pydantic finds, as faults."""

from collections.abc import Sequence
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from app.core.errors import Fault, InvalidInput, pointer

MOST_FAULTS = 20
"""That an answer names."""
UNKNOWN = "is not permitted here; check the field's name in /docs"


class Findings(Protocol):
    """An error of pydantic's, or FastAPI's of the same form."""

    def errors(self) -> Sequence[Any]:
        """What is wrong, each with its place and a message."""


def schema_faults(error: Findings) -> list[Fault]:
    """The first of pydantic's findings as faults."""
    faults = []
    for item in error.errors()[:MOST_FAULTS]:
        location = [str(part) for part in item["loc"] if part not in ("body",)]
        message = UNKNOWN if item["type"] == "extra_forbidden" else item["msg"]
        message = message.removeprefix("Value error, ")
        faults.append(Fault(pointer(*location), message))
    return faults


def checked(shape: Any, value: Any, pointer: str) -> Any:
    """A query parameter of this shape; None stays None."""
    if value is None:
        return None
    try:
        return TypeAdapter(shape).validate_python(value)
    except ValidationError as error:
        message = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise InvalidInput.at(pointer, message) from None
