"""Operations of many steps, written once: each client takes the steps in its own way.

A plan is a generator. It yields the step that it wants taken, is sent what came of it (or is thrown
what went wrong), and tells what the caller gets on the way.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from priorshift_client.calls import Call
from priorshift_client.errors import PriorshiftError
from priorshift_client.shells import Runs, RunsAsync

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


class Tells(Generic[P, T]):
    """A method that goes through what a plan tells."""

    def __init__(self, build: Callable[P, Plan[T]]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: Listens, kind: type) -> Callable[P, Iterator[T]]: ...
    def __get__(self, owner: Listens | None, kind: type) -> Self | Callable[P, Iterator[T]]:
        if owner is None:
            return self
        runner = owner

        @wraps(self._build)
        def method(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
            return _told(runner, self._build(*args, **kwargs))

        return method


class TellsAsync(Generic[P, T]):
    """The same, for ``async for``."""

    def __init__(self, build: Callable[P, Plan[T]]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: ListensAsync, kind: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(
        self, owner: ListensAsync | None, kind: type
    ) -> Self | Callable[P, AsyncIterator[T]]:
        if owner is None:
            return self
        runner = owner

        @wraps(self._build)
        def method(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
            return _told_async(runner, self._build(*args, **kwargs))

        return method


class Ends(Generic[P, T]):
    """A method that waits for the one thing that a plan tells."""

    def __init__(self, build: Callable[P, Plan[T]]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: Listens, kind: type) -> Callable[P, T]: ...
    def __get__(self, owner: Listens | None, kind: type) -> Self | Callable[P, T]:
        if owner is None:
            return self
        runner = owner

        @wraps(self._build)
        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return next(_told(runner, self._build(*args, **kwargs)))

        return method


class EndsAsync(Generic[P, T]):
    """The same, to be awaited."""

    def __init__(self, build: Callable[P, Plan[T]]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: ListensAsync, kind: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(
        self, owner: ListensAsync | None, kind: type
    ) -> Self | Callable[P, Coroutine[Any, Any, T]]:
        if owner is None:
            return self
        runner = owner

        @wraps(self._build)
        async def method(*args: P.args, **kwargs: P.kwargs) -> T:
            async with aclosing(_told_async(runner, self._build(*args, **kwargs))) as told:
                return await anext(told)

        return method


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
