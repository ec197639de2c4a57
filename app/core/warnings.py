"""What the service decided for the caller, or what the caller should doubt."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Warning:
    """A stable code for programs, a message that tells people what to do."""

    code: str
    message: str
