"""Operations of many steps, written once: each runner takes the steps in its own way.

A plan is a generator. It yields the step that it wants taken, is sent what came of it (or is thrown
what went wrong), and tells what the caller gets on the way.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from priorshift_client.calls import Call

T = TypeVar("T")


@dataclass(frozen=True)
class Listen:
    """The next event of a stream, which is opened if it is not; None once it has ended."""

    call: Call[Any]


@dataclass(frozen=True)
class Pause:
    """Wait."""

    seconds: float


@dataclass(frozen=True)
class Tell(Generic[T]):
    """Give this to the caller."""

    item: T


Step = Call[Any] | Listen | Pause | Tell[T]
Plan = Generator[Step[T], Any, None]
"""Its calls are answered with their results."""


def next_step(go_on: Callable[[], Step[T]]) -> Step[T] | None:
    """The next step; None where the plan is through."""
    try:
        return go_on()
    except StopIteration:
        return None
