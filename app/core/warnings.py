"""What the service decided for the caller, or what the caller should doubt."""

from dataclasses import dataclass

from app.core.errors import LONGEST_MESSAGE, clipped


@dataclass(frozen=True)
class Warning:
    """Something that the caller of an answer should know; cut to a length.

    ``code``: stable, for programs.
    ``message``: tells people what to do.
    """

    code: str
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", clipped(self.message, LONGEST_MESSAGE))
