"""The engine of one machine: a few threads, each streaming a partition, in bounded memory.

NumPy and pyarrow release the lock where it counts. Sums are merged in the order of the partitions,
so that the answer is the same to the last bit, whatever the number of threads.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Condition, Lock

from app.engines.engine import A, Observer, Progress, R
from app.engines.partitions import Partition, Piece

MEMORY = 512 * 1024 * 1024
COPIES = 4
"""What reading a piece and working on it takes, in multiples of its size."""
AHEAD = 4
"""Partitions per thread that may be finished before their turn to be merged."""


def _cores() -> int:
    """Cores that the process may use: of a container with a quota, fewer than the machine has."""
    from joblib import cpu_count

    return int(cpu_count())


@dataclass(frozen=True)
class LocalEngine:
    """``memory``: bytes that pieces and the work on them may take at once.

    ``threads``: at most; as many as there are cores for this process.
    """

    memory: int = MEMORY
    threads: int = field(default_factory=_cores)

    def sum(
        self,
        function: Callable[[A, Partition], R],
        partitions: Sequence[Partition],
        argument: A,
        observer: Observer,
    ) -> R:
        """As every engine does."""
        counter = _Counter(observer, len(partitions))
        room = _Room(self.memory)
        waiting: deque[Future[R]] = deque()
        total: R | None = None
        stop = _Stop()
        watched = (_Watched(partition, room, counter, stop) for partition in partitions)
        with ThreadPoolExecutor(self.threads, "partition") as pool:
            try:
                for partition in watched:
                    waiting.append(pool.submit(function, argument, partition))
                    if len(waiting) >= AHEAD * self.threads:
                        total = _merge(total, waiting.popleft().result(), counter)
                while waiting:
                    total = _merge(total, waiting.popleft().result(), counter)
            except BaseException:
                stop.now = True
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        assert total is not None
        return total


def _merge(total: R | None, more: R, counter: "_Counter") -> R:
    counter.another()
    return more if total is None else total.merge(more)


@dataclass
class _Stop:
    now: bool = False


@dataclass
class _Counter:
    """Counts what is done, and says so."""

    observer: Observer
    of: int
    partitions: int = 0
    rows: int = 0
    lock: Lock = field(default_factory=Lock)

    def read(self, rows: int) -> None:
        """So many rows more were read; ``Cancelled`` if nobody waits."""
        self.observer.check()
        with self.lock:
            self.rows += rows

    def another(self) -> None:
        """One partition more is done."""
        self.partitions += 1
        self.observer.progress(Progress(self.observer.round, self.partitions, self.of, self.rows))


@dataclass
class _Room:
    """Bytes that may be in use at once; a single piece larger than that is let in alone.

    A piece is thought to be as large as the largest so far, the first to take everything.
    """

    bytes: int
    used: int = 0
    largest: int | None = None
    changed: Condition = field(default_factory=Condition)

    def enter(self) -> int:
        """Wait until another piece fits; what was set aside for it."""
        with self.changed:
            self.changed.wait_for(lambda: self.used == 0 or self.used + self._next <= self.bytes)
            reserved = self._next
            self.used += reserved
            return reserved

    def learn(self, reserved: int, size: int) -> int:
        """The piece takes ``size``, not ``reserved``."""
        with self.changed:
            self.largest = max(self.largest or 0, size)
            self.used += size - reserved
            self.changed.notify_all()
            return size

    def leave(self, reserved: int) -> None:
        """They are free again."""
        with self.changed:
            self.used -= reserved
            self.changed.notify_all()

    @property
    def _next(self) -> int:
        return self.bytes if self.largest is None else self.largest


@dataclass(frozen=True)
class _Watched:
    """A partition whose pieces come when there is room for them."""

    partition: Partition
    room: _Room
    counter: _Counter
    stop: _Stop

    @property
    def name(self) -> str:
        return self.partition.name

    def pieces(self) -> Iterator[Piece]:
        pieces = iter(self.partition.pieces())
        while not self.stop.now:
            reserved = self.room.enter()
            try:
                piece = next(pieces, None)
                if piece is None:
                    return
                reserved = self.room.learn(reserved, COPIES * piece.posteriors.nbytes)
                self.counter.read(len(piece.posteriors))
                yield piece
            finally:
                self.room.leave(reserved)
