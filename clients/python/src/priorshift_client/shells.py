"""Methods made of functions that build calls: one for who waits, one for who awaits."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from priorshift_client.calls import Call, Listing

P = ParamSpec("P")
T = TypeVar("T")


class Runs(Protocol):
    """Runs calls and waits."""

    def run(self, call: Call[T]) -> T:
        """The result of a call."""
        ...


class RunsAsync(Protocol):
    """Runs calls and awaits."""

    async def run(self, call: Call[T]) -> T:
        """The result of a call."""
        ...


class Does(Generic[P, T]):
    """A method that runs one call."""

    def __init__(self, build: Callable[P, Call[T]]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: Runs, kind: type) -> Callable[P, T]: ...
    def __get__(self, owner: Runs | None, kind: type) -> Self | Callable[P, T]:
        if owner is None:
            return self
        runner = owner

        @wraps(self._build)
        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return runner.run(self._build(*args, **kwargs))

        return method


class DoesAsync(Generic[P, T]):
    """The same, to be awaited."""

    def __init__(self, build: Callable[P, Call[T]]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: RunsAsync, kind: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(
        self, owner: RunsAsync | None, kind: type
    ) -> Self | Callable[P, Coroutine[Any, Any, T]]:
        if owner is None:
            return self
        runner = owner

        @wraps(self._build)
        async def method(*args: P.args, **kwargs: P.kwargs) -> T:
            return await runner.run(self._build(*args, **kwargs))

        return method


class Lists(Generic[P, T]):
    """A method that gives the items of a list, fetching pages as they are needed."""

    def __init__(self, build: Callable[P, Listing[T]]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: Runs, kind: type) -> Callable[P, Iterator[T]]: ...
    def __get__(self, owner: Runs | None, kind: type) -> Self | Callable[P, Iterator[T]]:
        if owner is None:
            return self
        runner = owner

        @wraps(self._build)
        def method(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
            return _items(runner, self._build(*args, **kwargs))

        return method


class ListsAsync(Generic[P, T]):
    """The same, for ``async for``."""

    def __init__(self, build: Callable[P, Listing[T]]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: RunsAsync, kind: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, owner: RunsAsync | None, kind: type) -> Self | Callable[P, AsyncIterator[T]]:
        if owner is None:
            return self
        runner = owner

        @wraps(self._build)
        def method(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
            return _items_async(runner, self._build(*args, **kwargs))

        return method


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
