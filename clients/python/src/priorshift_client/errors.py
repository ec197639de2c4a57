"""What can go wrong.

PriorshiftError
├── TransportError       the service was not reached, or it hung up
├── UnexpectedAnswer     the answer is none of this service's
├── JobError             a job is not done (in ``jobs``)
│   ├── JobFailed        it has failed
│   ├── JobCancelled     somebody has cancelled it
│   └── JobTimeout       it was not over in time
├── InvalidSignature     a delivery to a webhook is forged, altered or old
└── Problem              the service says what is wrong
    ├── Unauthenticated  401, no key, or one that opens nothing
    ├── Forbidden        403, the key lacks the scope
    ├── NotFound         404, no such model, version, alias, estimate
    ├── Conflict         409, the version cannot do this, a name is taken, a key was used before
    ├── TooLarge         413, over a limit of the service
    ├── InvalidInput     422, something is wrong with what was sent; ``rows`` are at fault
    ├── Busy             429, too much is under way
    └── Unavailable      503, the database, a slot or the time is missing
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self

SHOWN = 20
INVALID = "urn:priorshift:problem:invalid-input"


@dataclass(frozen=True)
class Fault:
    """One wrong thing: where, what, and in which row if it is in one."""

    pointer: str
    message: str
    row: int | None = None


class PriorshiftError(Exception):
    """Root of what this package raises."""


class TransportError(PriorshiftError):
    """The service was not reached, or it hung up before it had answered."""


class UnexpectedAnswer(PriorshiftError):
    """The answer cannot be read: something else answers at this address."""


class InvalidSignature(PriorshiftError):
    """A delivery to a webhook is not from the service, was altered, or is old."""


class Problem(PriorshiftError):
    """What the service says is wrong (RFC 9457)."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str,
        type: str = "about:blank",
        instance: str = "",
        errors: tuple[Fault, ...] = (),
        error_count: int | None = None,
    ) -> None:
        super().__init__(detail or title)
        self.status = status
        self.title = title
        self.detail = detail
        self.type = type
        self.instance = instance
        self.errors = errors
        self.error_count = len(errors) if error_count is None else error_count

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        parts = (self.status, self.title, self.detail, self.type, self.instance)
        return self.__class__, (*parts, self.errors, self.error_count)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}(status={self.status}, detail={self.detail!r})"


class Unauthenticated(Problem):
    """No key, or one that opens nothing."""


class Forbidden(Problem):
    """The key may not do this."""


class NotFound(Problem):
    """There is no such thing."""


class Conflict(Problem):
    """What is there does not allow it."""


class TooLarge(Problem):
    """Over a limit of the service."""


class InvalidInput(Problem):
    """Something is wrong with what was sent, or was about to be sent."""

    @property
    def rows(self) -> tuple[int, ...]:
        """The rows at fault; the first 20, ``error_count`` counts all."""
        return tuple(fault.row for fault in self.errors if fault.row is not None)

    @classmethod
    def found(cls, faults: Sequence[Fault]) -> Self:
        """What this client saw before anything was sent, told as the service tells it."""
        first, more = faults[0], len(faults) - 1
        detail = f"{first.pointer} {first.message}" + (f" (and {more} more)" if more else "")
        head = tuple(faults[:SHOWN])
        return cls(422, HTTPStatus(422).phrase, detail, INVALID, "", head, len(faults))


class Busy(Problem):
    """Too much is under way; try again later."""


class Unavailable(Problem):
    """The service cannot do it now; try again later."""


KINDS: Mapping[int, type[Problem]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    422: InvalidInput,
    429: Busy,
    503: Unavailable,
}


def problem(status: int, body: bytes) -> Problem:
    """The exception for an answer of 400 and above, whoever wrote it."""
    kind = KINDS.get(status, Problem)
    try:
        content = json.loads(body)
        title, detail = str(content["title"]), str(content["detail"])
        errors = tuple(_fault(item) for item in content.get("errors") or ())
    except (ValueError, KeyError, TypeError, AttributeError):
        return kind(status, _phrase(status), body[:200].decode(errors="replace").strip())
    type_, instance = str(content.get("type", "about:blank")), str(content.get("instance", ""))
    return kind(status, title, detail, type_, instance, errors, content.get("error_count"))


def _fault(item: Mapping[str, Any]) -> Fault:
    return Fault(str(item["pointer"]), str(item["message"]), item.get("row"))


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"status {status}"
