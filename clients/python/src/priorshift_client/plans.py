"""Operations of many steps, written once: each client takes the steps in its own way.

A plan is a generator. It yields the step that it wants taken, is sent what came of it (or is thrown
what went wrong), and tells what the caller gets on the way.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from priorshift_client.calls import Call
from priorshift_client.errors import PriorshiftError
from priorshift_client.shells import Method, Runs, RunsAsync

P = ParamSpec("P")
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


class Listens(Runs, Protocol):
    """Runs calls, and listens to streams."""

    def listen(self, call: Call[T]) -> Iterator[T]:
        """What the events of a stream say, until it ends."""
        ...


class ListensAsync(RunsAsync, Protocol):
    """The same, to be awaited."""

    def listen(self, call: Call[T]) -> AsyncGenerator[T, None]:
        """What the events of a stream say, until it ends."""
        ...


class Tells(Method[Listens, P, Plan[T], Iterator[T]]):
    """A method that goes through what a plan tells."""

    def take(self, runner: Listens, built: Plan[T]) -> Iterator[T]:
        """All of it."""
        return _told(runner, built)


class TellsAsync(Method[ListensAsync, P, Plan[T], AsyncIterator[T]]):
    """The same, for ``async for``."""

    def take(self, runner: ListensAsync, built: Plan[T]) -> AsyncIterator[T]:
        """All of it."""
        return _told_async(runner, built)


class Ends(Method[Listens, P, Plan[T], T]):
    """A method that waits for the one thing that a plan tells."""

    def take(self, runner: Listens, built: Plan[T]) -> T:
        """That thing."""
        return next(_told(runner, built))


class EndsAsync(Method[ListensAsync, P, Plan[T], Coroutine[Any, Any, T]]):
    """The same, to be awaited."""

    async def take(self, runner: ListensAsync, built: Plan[T]) -> T:
        """That thing."""
        async with aclosing(_told_async(runner, built)) as told:
            return await anext(told)


def _told(runner: Listens, plan: Plan[T]) -> Generator[T, None, None]:
    go_on, stream = partial(next, plan), None
    while (step := _step(go_on)) is not None:
        came = None
        try:
            match step:
                case Tell(item):
                    yield item
                case Pause(seconds):
                    time.sleep(seconds)
                case Listen(call):
                    stream = stream or runner.listen(call)
                    came = next(stream, None)
                    stream = None if came is None else stream
                case call:
                    came = runner.run(call)
        except PriorshiftError as error:
            go_on, stream = partial(plan.throw, error), None
        else:
            go_on = partial(plan.send, came)


async def _told_async(runner: ListensAsync, plan: Plan[T]) -> AsyncGenerator[T, None]:
    go_on, stream = partial(next, plan), None
    try:
        while (step := _step(go_on)) is not None:
            came = None
            try:
                match step:
                    case Tell(item):
                        yield item
                    case Pause(seconds):
                        await asyncio.sleep(seconds)
                    case Listen(call):
                        stream = stream or runner.listen(call)
                        came = await anext(stream, None)
                        stream = None if came is None else stream
                    case call:
                        came = await runner.run(call)
            except PriorshiftError as error:
                go_on, stream = partial(plan.throw, error), None
            else:
                go_on = partial(plan.send, came)
    finally:
        if stream is not None:
            await stream.aclose()


def _step(go_on: Callable[[], Step[T]]) -> Step[T] | None:
    """The next step; None where the plan is through."""
    try:
        return go_on()
    except StopIteration:
        return None
