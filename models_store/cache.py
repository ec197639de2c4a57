"""What was loaded, while it fits: the least recently used goes first."""

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Cache(Generic[K, V]):
    """At most so many bytes and items. For what never changes: nothing in it is ever stale."""

    def __init__(self, max_bytes: int, max_items: int = 1000) -> None:
        self._max_bytes = max_bytes
        self._max_items = max_items
        self._items: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """The value, if it is here."""
        with self._lock:
            if key not in self._items:
                return None
            self._items.move_to_end(key)
            return self._items[key][0]

    def add(self, key: K, value: V, size: int) -> None:
        """Keep a value of ``size`` bytes, dropping others over the bounds."""
        with self._lock:
            if key in self._items:
                return
            self._items[key] = (value, size)
            self._bytes += size
            while self._bytes > self._max_bytes or len(self._items) > self._max_items:
                _, (_, freed) = self._items.popitem(last=False)
                self._bytes -= freed
