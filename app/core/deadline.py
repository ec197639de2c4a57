"""A time budget for whoever waits: long computations look at it between their blocks.

It belongs to the context (a request, a thread started from it), so that no function carries it.
"""

from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from math import inf
from time import monotonic
from typing import TypeVar

from app.core.errors import PriorshiftError

T = TypeVar("T")
EVERY = 1_000
"""Items of a long list after which the time is looked at."""

_seconds: ContextVar[float] = ContextVar("seconds", default=inf)
_deadline: ContextVar[float] = ContextVar("deadline", default=inf)


class OutOfTime(PriorshiftError):
    """The computation took longer than its budget and was ended; nothing was stored."""


def begin(seconds: float) -> None:
    """From now on, in this context, ``check`` raises once ``seconds`` have passed."""
    _seconds.set(seconds)
    renew()


def renew() -> None:
    """Start the budget of this context anew, after waiting for work that has limits of its own."""
    _deadline.set(monotonic() + _seconds.get())


def remaining() -> float:
    """Seconds that are left; infinite without a budget."""
    return _deadline.get() - monotonic()


def check() -> None:
    """``OutOfTime`` if nothing is left."""
    if monotonic() > _deadline.get():
        raise OutOfTime(
            f"this would take longer than {_seconds.get():g} seconds; send fewer rows or classes "
            "at a time, ask for a cheaper method or interval, or raise PRIORSHIFT_REQUEST_SECONDS"
        )


def checked(items: Iterable[T]) -> Iterator[T]:
    """The items; ``OutOfTime`` between them if nothing is left."""
    for number, item in enumerate(items):
        if number % EVERY == 0:
            check()
        yield item
