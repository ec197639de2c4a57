"""What can be wrong with a request, whatever brought it.

PriorshiftError
├── InvalidInput        something that was sent is wrong; carries each field and row
├── MethodUnavailable   the request is well formed, the source model cannot serve it
└── OutOfTime           it took too long (budget)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LONGEST_PART = 200
"""Characters of a part of a pointer; as many as a class name may have."""
LONGEST_POINTER = 1_000
LONGEST_MESSAGE = 1_000


def clipped(text: str, most: int) -> str:
    """A text that may come from a caller, cut to ``most`` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


@dataclass(frozen=True)
class Fault:
    """One wrong thing, and what to do about it; cut to a length.

    ``pointer``: JSON pointer to it.
    ``message``: what to do, to follow the pointer in a sentence.
    ``row``: position of the row; None where it is not of a row.
    """

    pointer: str
    message: str
    row: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "pointer", clipped(self.pointer, LONGEST_POINTER))
        object.__setattr__(self, "message", clipped(self.message, LONGEST_MESSAGE))


def pointer(*parts: str | int) -> str:
    """A JSON pointer (RFC 6901) from its unescaped parts, each cut to ``LONGEST_PART``."""
    short = (clipped(str(part), LONGEST_PART) for part in parts)
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in short)


class PriorshiftError(Exception):
    """Root of every error that a caller can act on."""


class InvalidInput(PriorshiftError):
    """Something that was sent is wrong.

    ``faults`` holds the first ones in order, ``count`` how many there are in all.
    """

    def __init__(self, faults: Sequence[Fault], count: int | None = None) -> None:
        self.faults = tuple(faults)
        self.count = len(self.faults) if count is None else count
        super().__init__("; ".join(f"{f.pointer}: {f.message}" for f in self.faults[:3]))

    def __reduce__(self) -> tuple[type["InvalidInput"], tuple[Sequence[Fault], int]]:
        """It may come from another process."""
        return type(self), (self.faults, self.count)

    @classmethod
    def at(cls, pointer: str, message: str, row: int | None = None) -> "InvalidInput":
        """One fault at one place."""
        return cls([Fault(pointer, message, row)])


class Faults:
    """Collects faults: keeps the first ``SHOWN``, counts all."""

    SHOWN = 20

    def __init__(self) -> None:
        self._first: list[Fault] = []
        self._count = 0

    @property
    def full(self) -> bool:
        """Whether the next one is only counted, so that nobody needs its words."""
        return len(self._first) >= self.SHOWN

    def some(self, rows: Any) -> list[int]:
        """The first of some rows at fault, which are to be added; the rest is counted here."""
        few = rows[: self.SHOWN - len(self._first)]
        self._count += len(rows) - len(few)
        return [int(row) for row in few]

    def add(self, pointer: str, message: str, row: int | None = None) -> None:
        """Count one more fault, and keep it if it is among the first."""
        self._count += 1
        if not self.full:
            self._first.append(Fault(pointer, message, row))

    def error(self) -> InvalidInput:
        """What there was, at least one."""
        assert self._first
        return InvalidInput(self._first, self._count)

    def raise_if_any(self) -> None:
        """``InvalidInput`` if there were any."""
        if self._count:
            raise self.error()


class MethodUnavailable(PriorshiftError):
    """The source model cannot serve this method on this batch."""

    def __init__(self, method: str, reason: str) -> None:
        self.method = method
        self.reason = reason
        super().__init__(f"{clipped(method, LONGEST_PART)} is not available: {reason}")

    def __reduce__(self) -> tuple[type["MethodUnavailable"], tuple[str, str]]:
        """It may come from another process."""
        return type(self), (self.method, self.reason)
