"""Methods made of functions that build calls: one for who waits, one for who awaits."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from priorshift_client.calls import Call, Listing

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
B = TypeVar("B")


class Runs(Protocol):
    """Runs calls and waits."""

    def run(self, call: Call[T]) -> T:
        """The result of a call."""
        ...


class RunsAsync(Protocol):
    """Runs calls and awaits."""

    def run(self, call: Call[T]) -> Coroutine[Any, Any, T]:
        """The result of a call."""
        ...


class Method(Generic[R, P, B, T]):
    """A method: what a function builds of its arguments, taken by a runner."""

    def __init__(self, build: Callable[P, B]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: R, kind: type) -> Callable[P, T]: ...
    def __get__(self, owner: R | None, kind: type) -> Self | Callable[P, T]:
        if owner is None:
            return self
        runner = owner

        @wraps(self._build)
        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return self.take(runner, self._build(*args, **kwargs))

        return method

    def take(self, runner: R, built: B) -> T:
        """What comes of it."""
        raise NotImplementedError


class Does(Method[Runs, P, Call[T], T]):
    """A method that runs one call."""

    def take(self, runner: Runs, built: Call[T]) -> T:
        """The call's result."""
        return runner.run(built)


class DoesAsync(Method[RunsAsync, P, Call[T], Coroutine[Any, Any, T]]):
    """The same, to be awaited."""

    def take(self, runner: RunsAsync, built: Call[T]) -> Coroutine[Any, Any, T]:
        """The call's result, awaited."""
        return runner.run(built)


class Lists(Method[Runs, P, Listing[T], Iterator[T]]):
    """A method that gives the items of a list, fetching pages as they are needed."""

    def take(self, runner: Runs, built: Listing[T]) -> Iterator[T]:
        """The items."""
        return _items(runner, built)


class ListsAsync(Method[RunsAsync, P, Listing[T], AsyncIterator[T]]):
    """The same, for ``async for``."""

    def take(self, runner: RunsAsync, built: Listing[T]) -> AsyncIterator[T]:
        """The items."""
        return _items_async(runner, built)


def _items(runner: Runs, listing: Listing[T]) -> Iterator[T]:
    cursor, more = None, True
    while more:
        page = runner.run(listing.page(cursor))
        yield from page.items
        cursor = page.next_cursor
        more = cursor is not None


async def _items_async(runner: RunsAsync, listing: Listing[T]) -> AsyncIterator[T]:
    cursor, more = None, True
    while more:
        page = await runner.run(listing.page(cursor))
        for item in page.items:
            yield item
        cursor = page.next_cursor
        more = cursor is not None
