"""Whose turn it is to compute, and how much may wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from app.metrics import Metrics
from app.settings import Settings


class Busy(Exception):
    """Too much is under way; trying again later helps."""


@dataclass
class Slots:
    """``slots`` requests at a time; at most ``queue`` more wait."""

    name: str
    slots: int
    queue: int
    metrics: Metrics
    waiting: int = 0
    busy: int = 0
    _free: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._free = asyncio.Semaphore(self.slots)
        self.metrics.limits(self.name, self.slots, self.queue)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a slot; ``Busy`` where too many wait already."""
        if self._free.locked() and self.waiting >= self.queue:
            raise Busy(f"{self.waiting} requests of this kind wait already; try again later")
        self._count(waiting=1)
        try:
            await self._free.acquire()
        finally:
            self._count(waiting=-1)
        self._count(busy=1)
        try:
            yield
        finally:
            self._count(busy=-1)
            self._free.release()

    def _count(self, waiting: int = 0, busy: int = 0) -> None:
        self.waiting += waiting
        self.busy += busy
        self.metrics.lane(self.name, self.waiting, self.busy)


class Admission:
    """Small and large bodies have lanes of their own, so that small ones never wait for large.

    All of it runs on the event loop: no locks.
    """

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._metrics = metrics
        self._large_from = settings.large_body_bytes
        self._most_held = settings.max_held_bytes
        self._held = 0
        self._small = Slots("small", settings.small_slots, settings.queue, metrics)
        self._large = Slots("large", settings.large_slots, settings.queue, metrics)
        self.inflating = Slots("inflating", settings.large_slots, settings.queue, metrics)

    def hold(self, size: int) -> None:
        """Count ``size`` more bytes of bodies in memory; ``Busy`` where that is too much."""
        if self._held + size > self._most_held:
            raise Busy("the requests under way fill the memory set aside for them; try again later")
        self._held += size
        self._metrics.held(self._held)

    def free(self, size: int) -> None:
        """Count them out again."""
        self._held -= size
        self._metrics.held(self._held)

    def lane(self, size: int) -> Slots:
        """The lane for a body of this size."""
        return self._large if size >= self._large_from else self._small


class Twins:
    """Lets requests of one key wait for each other; all of it runs on the event loop."""

    def __init__(self) -> None:
        self._turns: dict[tuple[str, str, str], tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def turn(self, twin: tuple[str, str, str]) -> AsyncIterator[None]:
        """Wait until no other request has this owner, route and key."""
        lock, others = self._turns.get(twin, (asyncio.Lock(), 0))
        self._turns[twin] = lock, others + 1
        try:
            async with lock:
                yield
        finally:
            lock, others = self._turns.pop(twin)
            if others > 1:
                self._turns[twin] = lock, others - 1
