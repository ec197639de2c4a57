"""Values that are found when they are first asked for, and kept."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801
    """As ``functools.cached_property`` is from Python 3.12 on: without a lock.

    In 3.11 that of a property is shared by all instances, so that threads wait for each other while
    one of them finds its own value. Two that ask one instance at once find the same value twice.
    """

    def __init__(self, find: Callable[[Any], T]) -> None:
        self._find = find
        self.__doc__ = find.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> "Self | T":
        """The value, which from now on is the instance's own attribute."""
        if instance is None:
            return self
        value = vars(instance)[self._name] = self._find(instance)
        return value
