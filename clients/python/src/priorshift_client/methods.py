"""Methods made of functions that build calls, lists and plans; each is written once.

Read at a client that waits, a method gives the result; at one that is awaited, it is awaited.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

from priorshift_client.calls import Call, Listing
from priorshift_client.plans import Plan
from priorshift_client.runners import AsyncRunner, Runner

P = ParamSpec("P")
T = TypeVar("T")
Built = TypeVar("Built")
Result = TypeVar("Result", covariant=True)
AsyncResult = TypeVar("AsyncResult", covariant=True)
AnyRunner = TypeVar("AnyRunner")


class Resource(Generic[AnyRunner]):
    """Operations on one kind of resource, and the runner that takes them to the service."""

    def __init__(self, runner: AnyRunner) -> None:
        self._runner = runner


class ClientMethod(Generic[P, Result, AsyncResult]):
    """A method: what ``build`` makes of its arguments, taken to the service by a runner."""

    def __init__(
        self,
        build: Callable[P, Built],
        run: Callable[[Runner, Built], Result],
        run_async: Callable[[AsyncRunner, Built], AsyncResult],
    ) -> None:
        self._build, self._run, self._run_async = build, run, run_async
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: Resource[Runner], kind: type) -> Callable[P, Result]: ...
    @overload
    def __get__(self, owner: Resource[AsyncRunner], kind: type) -> Callable[P, AsyncResult]: ...
    def __get__(self, owner: Resource[Any] | None, kind: type) -> Any:
        if owner is None:
            return self
        runner = owner._runner
        run: Callable[..., Any] = self._run if isinstance(runner, Runner) else self._run_async

        @wraps(self._build)
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return run(runner, self._build(*args, **kwargs))

        return method


def request(build: Callable[P, Call[T]]) -> ClientMethod[P, T, Coroutine[Any, Any, T]]:
    """A method that sends one call and gives its result."""
    return ClientMethod(build, Runner.run, AsyncRunner.run)


def paginate(build: Callable[P, Listing[T]]) -> ClientMethod[P, Iterator[T], AsyncIterator[T]]:
    """A method that gives the items of a list, fetching pages as they are needed."""
    return ClientMethod(build, Runner.paginate, AsyncRunner.paginate)


def iterate(build: Callable[P, Plan[T]]) -> ClientMethod[P, Iterator[T], AsyncIterator[T]]:
    """A method that goes through what a plan tells."""
    return ClientMethod(build, Runner.iterate, AsyncRunner.iterate)


def finish(build: Callable[P, Plan[T]]) -> ClientMethod[P, T, Coroutine[Any, Any, T]]:
    """A method that waits for the one thing that a plan tells."""
    return ClientMethod(build, Runner.finish, AsyncRunner.finish)
