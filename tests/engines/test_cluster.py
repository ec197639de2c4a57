import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from distributed import Client

from app.engines.cluster import Cluster
from app.engines.engine import Cancelled, EngineLost, Observer, Progress, TooManyGroups
from app.engines.estimation import estimate_partitions
from app.engines.local import LocalEngine
from app.engines.partitions import Piece
from app.engines.tallies import Json
from app.estimation import IntervalOptions, Request
from tests.engines.data import ArrayPartition, cut, draw, model
from tests.patience import patience

TARGET = np.array([0.55, 0.2, 0.15, 0.08, 0.02])
MODEL = model(5)
ROWS = draw(np.random.default_rng(1), TARGET, 60_000)[1]
MLE = Request("mle", interval=IntervalOptions())


@dataclass
class Dask:
    """Real processes: a scheduler, and workers without a nanny, so that the dead stay dead."""

    folder: Path

    def __post_init__(self) -> None:
        self.address_file = self.folder / "scheduler.json"
        self.scheduler = self.start(
            "scheduler",
            "--port",
            "0",
            "--no-dashboard",
            "--host",
            "127.0.0.1",
            "--scheduler-file",
            str(self.address_file),
        )
        self.workers: list[subprocess.Popen[bytes]] = []
        self.address = self.listening()

    def listening(self) -> str:
        """Its address, once the whole of it is written."""
        while True:
            assert self.scheduler.poll() is None
            with suppress(FileNotFoundError, ValueError):
                return str(json.loads(self.address_file.read_text())["address"])
            time.sleep(0.05)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        root = Path(__file__).parents[2]
        with (self.folder / f"{words[0]}-{time.monotonic_ns()}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{words[0]}", *words[1:]],
                cwd=root,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(root), "OPENBLAS_NUM_THREADS": "1"},
            )

    def work(self, count: int) -> None:
        for _ in range(count):
            self.workers.append(
                self.start(
                    "worker",
                    self.address,
                    "--no-nanny",
                    "--no-dashboard",
                    "--nthreads",
                    "1",
                    "--memory-limit",
                    "1GiB",
                    "--local-directory",
                    str(self.folder),
                )
            )
        with Client(self.address, set_as_default=False) as client:
            alive = [w for w in self.workers if w.poll() is None]
            client.wait_for_workers(len(alive), patience(60))

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    cluster = Dask(tmp_path_factory.mktemp("dask"))
    cluster.work(2)
    yield cluster
    cluster.stop()


@dataclass(frozen=True, eq=False)
class SlowPartition(ArrayPartition):
    """Takes a while to be read."""

    seconds: float = 0.2

    def pieces(self) -> Iterator[Piece]:
        time.sleep(self.seconds)
        yield from super().pieces()


def slow(count: int, seconds: float = 0.2) -> list[SlowPartition]:
    parts = np.array_split(ROWS, count)
    return [SlowPartition(f"slow-{i}", rows, seconds=seconds) for i, rows in enumerate(parts)]


class TestTheSameAnswerAsOneMachine:
    @pytest.mark.parametrize("method", ["cc", "pcc", "acc-qp", "pacc-qp"])
    def test_of_one_round(self, dask: Dask, method: str) -> None:
        request = Request(method, shift=None, interval=IntervalOptions())
        parts = cut(ROWS, 37)
        expected = estimate_partitions(MODEL, parts, request, LocalEngine())
        with Cluster(dask.address) as engine:
            found = estimate_partitions(MODEL, parts, request, engine)
        np.testing.assert_allclose(
            found.estimates[()].prevalence, expected.estimates[()].prevalence, rtol=0, atol=1e-9
        )

    @pytest.mark.parametrize("keep", [True, False])
    def test_of_the_maximum(self, dask: Dask, keep: bool) -> None:
        parts = cut(ROWS, 37)
        expected = estimate_partitions(MODEL, parts, MLE, LocalEngine()).estimates[()]
        with Cluster(dask.address, keep=keep) as engine:
            found = estimate_partitions(MODEL, parts, MLE, engine).estimates[()]
        assert found.diagnostics.optimality_gap is not None
        assert found.diagnostics.optimality_gap * found.size <= 1e-3
        np.testing.assert_allclose(found.prevalence, expected.prevalence, rtol=0, atol=1e-6)

    def test_of_groups(self, dask: Dask) -> None:
        codes = np.random.default_rng(2).integers(0, 3, len(ROWS))
        parts = cut(ROWS, 9, codes, [("a",), ("b",), ("c",)])
        expected = estimate_partitions(MODEL, parts, MLE, LocalEngine()).estimates
        with Cluster(dask.address) as engine:
            found = estimate_partitions(MODEL, parts, MLE, engine).estimates
            with pytest.raises(TooManyGroups):
                estimate_partitions(MODEL, parts, MLE, engine, most_groups=2)
        for name, answer in expected.items():
            np.testing.assert_allclose(found[name].prevalence, answer.prevalence, atol=1e-6)

    def test_of_other_partitions_of_the_same_names(self, dask: Dask) -> None:
        codes = np.random.default_rng(2).integers(0, 2, len(ROWS))
        request = Request("cc", shift=None)
        with Cluster(dask.address) as engine:
            estimate_partitions(MODEL, cut(ROWS, 9), MLE, engine)
            grouped = cut(ROWS, 9, codes, [("a",), ("b",)])
            found = estimate_partitions(MODEL, grouped, request, engine).estimates
        assert {group: answer.size for group, answer in found.items()} == {
            ("a",): np.count_nonzero(codes == 0),
            ("b",): np.count_nonzero(codes == 1),
        }

    def test_of_more_partitions_than_tasks(self, dask: Dask) -> None:
        request, seen = Request("pcc", shift=None), list[Progress]()
        expected = estimate_partitions(MODEL, cut(ROWS, 50), request, LocalEngine()).estimates[()]
        with Cluster(dask.address, tasks=(2, 3)) as engine:
            found = estimate_partitions(
                MODEL, cut(ROWS, 50), request, engine, observer=Observer(seen.append)
            ).estimates[()]
        np.testing.assert_allclose(found.prevalence, expected.prevalence, rtol=0, atol=1e-12)
        assert (seen[-1].partitions, seen[-1].of) == (50, 50)


class TestWhoWaits:
    def test_hears_of_progress(self, dask: Dask) -> None:
        seen: list[Progress] = []
        with Cluster(dask.address) as engine:
            request = Request("cc", shift=None)
            estimate_partitions(MODEL, slow(8), request, engine, observer=Observer(seen.append))
        assert seen[-1] == Progress(1, 8, 8, len(ROWS))
        assert {progress.rows for progress in seen[:-1]} <= {None}

    def test_may_change_their_mind(self, dask: Dask) -> None:
        left = iter([False] * 3)
        observer = Observer(cancelled=lambda: next(left, True))
        begun = time.monotonic()
        with Cluster(dask.address) as engine, pytest.raises(Cancelled):
            estimate_partitions(MODEL, slow(20, patience(1.0)), MLE, engine, observer=observer)
        assert time.monotonic() - begun < patience(10)


class TestWhenProcessesDie:
    @pytest.fixture
    def own(self, tmp_path: Path) -> Iterator[Dask]:
        cluster = Dask(tmp_path)
        yield cluster
        cluster.stop()

    @pytest.mark.parametrize("round", [1, 3])
    def test_a_worker_is_missed_by_nobody(self, own: Dask, round: int) -> None:
        own.work(2)
        parts = slow(8, 0.05)
        expected = estimate_partitions(MODEL, parts, MLE, LocalEngine()).estimates[()]

        def kill(progress: Progress) -> None:
            if progress.round == round and progress.partitions >= 2:
                os.kill(own.workers[0].pid, signal.SIGKILL)

        with Cluster(own.address, patience=patience(20)) as engine:
            found = estimate_partitions(MODEL, parts, MLE, engine, observer=Observer(kill))
        own.workers[0].wait(patience(10))
        np.testing.assert_allclose(
            found.estimates[()].prevalence, expected.prevalence, rtol=0, atol=1e-9
        )

    def test_a_scheduler_ends_the_round_and_another_goes_on(self, own: Dask, dask: Dask) -> None:
        own.work(1)
        kept: list[Json] = []

        def kill(progress: Progress) -> None:
            if progress.round == 2:
                os.kill(own.scheduler.pid, signal.SIGKILL)

        begun = time.monotonic()
        with Cluster(own.address, patience=patience(5)) as engine, pytest.raises(EngineLost):
            estimate_partitions(
                MODEL, slow(6, 0.05), MLE, engine, keep=kept.append, observer=Observer(kill)
            )
        assert time.monotonic() - begun < patience(30)
        assert len(kept) == 1
        expected = estimate_partitions(MODEL, slow(6, 0.05), MLE, LocalEngine()).estimates[()]
        with Cluster(dask.address) as engine:
            found = estimate_partitions(MODEL, slow(6, 0.05), MLE, engine, state=kept[-1])
        np.testing.assert_allclose(
            found.estimates[()].prevalence, expected.prevalence, rtol=0, atol=1e-9
        )

    def test_a_scheduler_that_hangs_is_not_waited_for(self, own: Dask) -> None:
        own.work(1)

        def freeze(progress: Progress) -> None:
            os.kill(own.scheduler.pid, signal.SIGSTOP)

        begun = time.monotonic()
        with Cluster(own.address, patience=patience(3)) as engine, pytest.raises(EngineLost):
            estimate_partitions(MODEL, slow(6, 0.05), MLE, engine, observer=Observer(freeze))
        assert time.monotonic() - begun < patience(30)

    def test_a_cluster_without_workers_is_not_waited_for(self, own: Dask) -> None:
        with (
            Cluster(own.address, patience=patience(6)) as engine,
            pytest.raises(EngineLost, match="worker"),
        ):
            estimate_partitions(MODEL, slow(2), MLE, engine)

    def test_no_scheduler_at_all(self) -> None:
        with pytest.raises(EngineLost, match="no Dask scheduler answers"):
            Cluster("tcp://127.0.0.1:9", patience=patience(1))
