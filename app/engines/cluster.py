"""The engine of a Dask cluster: partitions stay with its workers, sums travel.

A round is a task per partition, or per some where there are many, and a tree of merges, sixteen at
a time, on the workers; the driver gets one sum. After the first round, when their size is known,
the rows are kept in the workers' memory if they take no more than half of it; otherwise every round
reads them again. A worker that dies takes nothing with it: its partitions are read by others. A
scheduler that dies, or does not answer, ends the round with ``EngineLost``: the state of the last
round goes on with another.

Dask pickles what its own processes send each other; whoever reaches its ports can run code there.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Event
from time import monotonic
from types import TracebackType
from typing import Any, Self

from distributed import Client, Future, KilledWorker

from app.engines.allocator import keep_memory
from app.engines.engine import A, Cancelled, EngineLost, Observer, Progress, R
from app.engines.partitions import Partition, Piece

FAN_IN = 16
PATIENCE = 60.0
"""Seconds that a scheduler may take to answer, and a cluster may be without any worker."""
TICK = 0.2
PING = 5.0
TASKS = 32
"""Tasks of a round per thread: few enough for the scheduler, which takes a millisecond for each,
and enough for none to be waited for long."""
MOST_TASKS = 4096
"""Most tasks of a round; a cluster of more threads than that gets one for each."""
MEMORY_SHARE = 0.5
"""Share of the workers' memory that may hold rows."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """A partition in a worker's memory."""

    name: str
    loaded: tuple[Piece, ...]

    def pieces(self) -> Iterator[Piece]:
        """As they were read."""
        return iter(self.loaded)

    def __sizeof__(self) -> int:
        return sum(_size(piece) for piece in self.loaded)


def _size(piece: Piece) -> int:
    return piece.posteriors.nbytes + (0 if piece.groups is None else piece.groups.nbytes)


def _load(bundle: Sequence[Partition]) -> tuple[InMemory, ...]:
    return tuple(InMemory(partition.name, tuple(partition.pieces())) for partition in bundle)


def _identity(argument: A) -> A:
    """A task, since scattered data would be lost with its worker."""
    return argument


def _leaf(bundle: Sequence[Partition], function: Callable[[A, Partition], R], argument: A) -> R:
    keep_memory()
    return _merge([function(argument, partition) for partition in bundle])


def _merge(sums: Sequence[R]) -> R:
    total = sums[0]
    for more in sums[1:]:
        total = total.merge(more)
    return total


@dataclass
class _Known:
    """What has been learnt of some partitions: their bytes; how they are bundled, and held."""

    partitions: Sequence[Partition]
    bundles: list[Sequence[Partition]]
    bytes: int | None = None
    in_memory: list[Future[Any]] | None = None


class Cluster:
    """``address``: of a scheduler, tcp://host:port; ``patience``: seconds, see ``PATIENCE``.

    ``keep``: hold rows in the workers' memory; ``tasks``: of a round, per thread of the workers and
    at most in all.
    """

    def __init__(
        self,
        address: str,
        patience: float = PATIENCE,
        keep: bool = True,
        tasks: tuple[int, int] = (TASKS, MOST_TASKS),
    ) -> None:
        self._patience, self._keep, self._tasks = patience, keep, tasks
        self._known: _Known | None = None
        try:
            self._client = Client(address, timeout=patience, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise EngineLost(f"no Dask scheduler answers at {address}: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the rows and of the connection; the cluster stays."""
        self._known = None
        self._client.close(timeout=min(self._patience, 5.0))

    def sum(
        self,
        function: Callable[[A, Partition], R],
        partitions: Sequence[Partition],
        argument: A,
        observer: Observer,
    ) -> R:
        """As every engine does; ``EngineLost`` where the cluster does not answer in time."""
        client = self._client
        try:
            known = self._about(partitions)
            shared = client.submit(_identity, argument, pure=False)
            leaves = client.map(
                _leaf,
                known.in_memory or known.bundles,
                function=function,
                argument=shared,
                pure=False,
            )
            level = leaves
            while len(level) > 1:
                groups = [level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN)]
                level = client.map(_merge, groups, pure=False)
            sizes = [len(bundle) for bundle in known.bundles]
            total: R = _Waiting(client, leaves, sizes, level[0], observer, self._patience).result()
        except (OSError, TimeoutError, AttributeError) as error:
            # A client whose scheduler is gone has lost its connection object, too.
            if client.status == "running" and not isinstance(error, OSError | TimeoutError):
                raise
            raise EngineLost(f"the Dask scheduler went away: {error}") from error
        known.bytes = total.bytes
        observer.progress(Progress(observer.round, len(partitions), len(partitions), total.rows))
        return total

    def _about(self, partitions: Sequence[Partition]) -> _Known:
        """Whether these very partitions were asked before, and where their rows are now."""
        workers = _workers(self._client).values()
        known = self._known
        if known is None or known.partitions is not partitions:
            threads = sum(worker["nthreads"] for worker in workers) or 1
            each, most = self._tasks
            tasks = max(min(each * threads, most), threads)
            step = -(-len(partitions) // tasks)
            bundles = [partitions[i : i + step] for i in range(0, len(partitions), step)]
            known = self._known = _Known(partitions, bundles)
        elif self._keep and known.in_memory is None and known.bytes is not None:
            memory = sum(worker["memory_limit"] or 0 for worker in workers)
            if known.bytes <= MEMORY_SHARE * memory:
                known.in_memory = self._client.map(_load, known.bundles, pure=False)
        return known


def _workers(client: Client) -> dict[str, Any]:
    workers: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return workers


class _Waiting:
    """Waits for a sum without trusting that it ever comes."""

    def __init__(
        self,
        client: Client,
        leaves: list[Future[Any]],
        sizes: list[int],
        top: Future[Any],
        observer: Observer,
        patience: float,
    ) -> None:
        self._client, self._leaves, self._sizes, self._top = client, leaves, sizes, top
        self._observer, self._patience = observer, patience
        self._pinged = self._seen = monotonic()
        self._reported = 0
        self._over = Event()
        top.add_done_callback(lambda _: self._over.set())

    def result(self) -> Any:
        """The sum; ``EngineLost``, ``Cancelled``, or what went wrong with a partition."""
        top = self._top
        while top.status == "pending":
            self._check()
            self._tell()
            self._over.wait(TICK)
        if top.status in ("cancelled", "lost"):
            raise EngineLost("the Dask scheduler went away and took the round's tasks with it")
        if top.status == "error":
            error = top.exception(timeout=self._patience)
            if isinstance(error, KilledWorker):
                raise EngineLost(f"several Dask workers died of one partition: {error}")
            raise error
        return top.result(timeout=self._patience)

    def _check(self) -> None:
        try:
            self._observer.check()
        except Cancelled:
            self._client.cancel([*self._leaves, self._top], force=True)
            raise
        if self._client.status != "running":
            raise EngineLost("the connection to the Dask scheduler was lost")
        now = monotonic()
        if now - self._pinged < min(PING, self._patience / 3):
            return
        self._pinged = now
        try:
            assert self._client.scheduler is not None
            threads = self._client.sync(
                self._client.scheduler.ncores, callback_timeout=self._patience
            )
        except (OSError, TimeoutError, AssertionError) as error:
            raise EngineLost(f"the Dask scheduler does not answer: {error!r}") from error
        if threads:
            self._seen = monotonic()
        elif now - self._seen > self._patience:
            raise EngineLost(f"the Dask cluster has had no worker for {self._patience:g} seconds")

    def _tell(self) -> None:
        finished = [leaf.status == "finished" for leaf in self._leaves]
        done = sum(size for size, over in zip(self._sizes, finished, strict=True) if over)
        if self._reported < done < sum(self._sizes):
            self._reported = done
            self._observer.progress(Progress(self._observer.round, done, sum(self._sizes), None))
