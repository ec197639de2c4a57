import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
import pytest

from app.engines.allocator import keep_memory
from app.engines.engine import Observer, Progress
from app.engines.local import COPIES, LocalEngine
from app.engines.partitions import Partition, Piece


@dataclass(frozen=True)
class Order:
    """A mergeable that remembers in what order it was merged."""

    names: tuple[str, ...]
    rows: int = 0
    bytes: int = 0

    def merge(self, other: "Order") -> "Order":
        return Order(self.names + other.names, self.rows + other.rows)


@dataclass
class Gauge:
    """How many bytes of pieces are in use, and were at most."""

    used: int = 0
    most: int = 0
    lock: Lock = field(default_factory=Lock)

    def change(self, by: int) -> None:
        with self.lock:
            self.used += by
            self.most = max(self.most, self.used)


@dataclass(frozen=True, eq=False)
class Measured:
    """Pieces of a size, that are in use until the next is asked for."""

    name: str
    gauge: Gauge
    size: int
    count: int = 4
    broken: bool = False

    def pieces(self) -> Iterator[Piece]:
        for _ in range(self.count):
            if self.broken:
                raise ValueError(f"{self.name} is broken")
            self.gauge.change(self.size)
            yield Piece(np.zeros((self.size // 16, 2)))
            self.gauge.change(-self.size)


def count(scale: int, partition: Partition) -> Order:
    rows = sum(len(piece.posteriors) for piece in partition.pieces())
    return Order((partition.name,), rows * scale)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_merges_in_the_order_of_the_partitions(threads: int) -> None:
    gauge = Gauge()
    parts = [Measured(str(i), gauge, 1600 * (1 + 50 * (i % 3))) for i in range(50)]
    found = LocalEngine(threads=threads).sum(count, parts, 1, Observer())
    assert found.names == tuple(str(i) for i in range(50))


def test_holds_no_more_than_it_may() -> None:
    gauge, size = Gauge(), 1 << 20
    parts = [Measured(str(i), gauge, size) for i in range(12)]
    LocalEngine(memory=2 * COPIES * size, threads=8).sum(count, parts, 1, Observer())
    assert gauge.most <= 2 * size


def test_a_piece_larger_than_that_is_read_alone() -> None:
    gauge, size = Gauge(), 1 << 20
    parts = [Measured(str(i), gauge, size, count=2) for i in range(4)]
    found = LocalEngine(memory=size, threads=4).sum(count, parts, 2, Observer())
    assert gauge.most == size
    assert found.rows == 2 * 8 * size // 16


def test_what_is_wrong_with_a_partition_comes_out() -> None:
    gauge = Gauge()
    parts = [Measured(str(i), gauge, 1600, broken=i == 7) for i in range(100)]
    with pytest.raises(ValueError, match="7 is broken"):
        LocalEngine(threads=2).sum(count, parts, 1, Observer())


def test_progress_counts_up() -> None:
    seen: list[Progress] = []
    parts = [Measured(str(i), Gauge(), 1600) for i in range(9)]
    LocalEngine(threads=3).sum(count, parts, 1, Observer(seen.append, round=4))
    assert [p.partitions for p in seen] == list(range(1, 10))
    assert seen[-1] == Progress(4, 9, 9, 9 * 400)


def test_workers_keep_some_memory() -> None:
    assert keep_memory() in (True, False)


def test_takes_no_more_threads_than_the_process_has_cores() -> None:
    program = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
    program += "from app.engines import LocalEngine; print(LocalEngine().threads)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "1\n", done.stderr
