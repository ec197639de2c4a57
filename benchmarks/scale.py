"""Data sets on one machine and on a cluster: the same answer, in what time and memory.

python -m benchmarks.scale agree      in memory, local and Dask side by side
python -m benchmarks.scale files      out of core, against reading the files with pyarrow
python -m benchmarks.scale workers    a Dask cluster of one worker process, and of two
python -m benchmarks.scale reduce     a Dask scheduler, many partitions, no data
python -m benchmarks.scale constants  what a number costs in a pass
"""

import argparse
import logging
import os
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Literal

import numpy as np
import pyarrow.parquet as pq
from distributed import LocalCluster

from app.core.arrays import NARROW, Codes, Floats
from app.core.prevalence.matching.version import MatchingOptions, ReferenceRows
from app.core.prevalence.source import Source, SourceModel, ValidationSet, derive
from app.datasets.reading import BATCH_ROWS
from app.engines import Engine, LocalEngine, Observer, Partition, Piece, estimate_partitions
from app.engines.cluster import MEMORY_SHARE, MOST_TASKS, TASKS, Cluster
from app.engines.partition_work import Task, work
from app.engines.statistics import Derivatives, Pass, SurveyPass, pack_triangle, survey
from app.engines.statistics import WorkerModel as Passed
from app.engines.tallies import Group, Read, Sums, Tally
from app.estimation import Estimate, IntervalOptions, PosteriorBatch, Request, estimate
from benchmarks.report import heading, table
from benchmarks.scale_data import Array, draw, model, partitions, write

PACKAGES = ("numpy", "scipy", "pyarrow", "distributed")
FIVE = np.array([0.55, 0.2, 0.15, 0.08, 0.02])
TWO = np.array([0.97, 0.03])
ONE_ROUND = ("cc", "pcc", "acc", "acc-qp", "pacc-qp")


def main() -> None:
    """One of the measurements, as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "what", choices=["agree", "files", "workers", "reduce", "constants", "predict"]
    )
    parser.add_argument("--rows", type=float)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="where files are written, and deleted again")
    given = parser.parse_args()
    logging.getLogger("distributed").setLevel(logging.ERROR)
    print(heading("scale", PACKAGES))
    print(f"load average at the start {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores\n")
    if given.what == "agree":
        agree(int(given.rows or 2e6))
    elif given.what == "files":
        with folder(given.folder) as where:
            files(int(given.rows or 1e8), where)
    elif given.what == "workers":
        with folder(given.folder) as where:
            workers(int(given.rows or 5e7), where)
    elif given.what == "reduce":
        reduce(given.partitions)
    elif given.what == "constants":
        constants(int(given.rows or 2e6))
    else:
        predict()
    print(f"load average at the end {os.getloadavg()[0]:.1f}")


@contextmanager
def folder(asked: Path | None) -> Iterator[Path]:
    """A folder of its own, which is gone afterwards."""
    where = Path(tempfile.mkdtemp(dir=asked))
    try:
        yield where
    finally:
        shutil.rmtree(where)


@contextmanager
def dask(
    processes: int, memory: str = "2GiB", tasks: tuple[int, int] = (TASKS, MOST_TASKS)
) -> Iterator[Cluster]:
    """An engine on worker processes of one thread."""
    cluster = LocalCluster(
        n_workers=processes,
        threads_per_worker=1,
        processes=True,
        memory_limit=memory,
        dashboard_address=None,
    )
    try:
        with Cluster(cluster.scheduler_address, tasks=tasks) as engine:
            yield engine
    finally:
        cluster.close()


def agree(rows: int) -> None:
    """The largest difference of any share between the engines."""
    posteriors = draw(np.random.default_rng(1), FIVE, rows)[1]
    parts = uneven(posteriors, None)
    codes = np.random.default_rng(2).choice(7, rows, p=[0.5, 0.2, 0.1, 0.1, 0.06, 0.03, 0.01])
    grouped = uneven(posteriors, codes)
    version, matched = model(5), matching(5)
    lines = []
    with dask(2) as cluster:
        for method in (*ONE_ROUND, "rffm", "mle"):
            request = Request(method, shift=None if method != "mle" else Request().shift)
            which = matched if method == "rffm" else version
            whole = estimate(which, PosteriorBatch(posteriors), request)
            lines.append(compared(method, which, parts, request, {(): whole}, cluster))
        for request in (Request("pcc", shift=None), Request("mle")):
            alone: dict[Group, Estimate] = {
                (f"group-{code}",): estimate(version, PosteriorBatch(rows_of), request)
                for code, rows_of in enumerate(posteriors[codes == code] for code in range(7))
            }
            name = f"{request.method}, 7 groups"
            lines.append(compared(name, version, grouped, request, alone, cluster))
    empty = sum(len(part.rows) == 0 for part in parts)
    print(
        f"{rows:.0e} rows of 5 classes in {len(parts)} uneven partitions, {empty} of them empty\n"
    )
    names = ["method", "rounds", "local", "Dask", "N · gap in memory", "local", "Dask"]
    print(table(names, lines))


def matching(classes: int) -> SourceModel:
    """A version that matches posteriors by random features."""
    names = tuple(f"class-{k}" for k in range(classes))
    labels, rows = draw(np.random.default_rng(0), np.full(classes, 1 / classes), 5000)
    return derive(
        Source(
            names,
            validation=ValidationSet(labels, rows),
            reference=ReferenceRows(labels, rows, names),
            matching=MatchingOptions(feature_map="posteriors", dimension=200),
        )
    )


def uneven(rows: Floats, codes: Codes | None) -> list[Array]:
    """37 partitions, some of them empty."""
    rng = np.random.default_rng(3)
    ends = np.sort(rng.integers(0, len(rows), 36))
    ends[11], ends[-1], ends[0] = ends[10], len(rows), 0
    names = tuple((f"group-{code}",) for code in range(7))
    bounds = [0, *np.sort(ends).tolist(), len(rows)]
    return [
        Array(f"part-{i}", rows[a:b], None if codes is None else codes[a:b], names)
        for i, (a, b) in enumerate(pairwise(bounds))
    ]


def compared(
    name: str,
    version: SourceModel,
    parts: Sequence[Partition],
    request: Request,
    expected: dict[Group, Estimate],
    cluster: Cluster,
) -> list[str]:
    """A line of the table."""
    engines: list[Engine] = [LocalEngine(), cluster]
    found = [estimate_partitions(version, parts, request, engine) for engine in engines]
    differences = [
        max(
            float(np.abs(outcome.estimates[group].prevalence - answer.prevalence).max())
            for group, answer in expected.items()
        )
        for outcome in found
    ]
    gaps = [gap(expected), *(gap(outcome.estimates) for outcome in found)]
    return [name, str(found[0].rounds), *(f"{d:.1e}" for d in differences), *gaps]


def gap(estimates: dict[Group, Estimate]) -> str:
    """The largest N · gap; of methods that have one in these units."""
    found = [
        answer.size * (answer.diagnostics.optimality_gap or 0.0)
        for answer in estimates.values()
        if answer.method == "mle"
    ]
    return f"{max(found):.1e}" if found else ""


@dataclass(frozen=True)
class Run:
    """Seconds of each round, and of processors; most resident memory in bytes; what came out."""

    seconds: list[float]
    processors: float
    resident: int
    shares: list[float]


def files(rows: int, where: Path) -> None:
    """Each in a process of its own, whose memory is its own."""
    paths = write(where, rows, 16, TWO)
    size = sum(path.stat().st_size for path in paths)
    print(f"{rows:.0e} rows of 2 classes, float32, 16 Parquet files, {size / 1e9:.2f} GB\n")
    read = fastest(reading, paths)
    once = read.seconds[0]
    lines = [line("pyarrow, reading alone", read, once)]
    for name, calibrated, method in (
        ("acc-qp, no shift test", True, "acc-qp"),
        ("mle, calibrated, with test and interval", True, "mle"),
        ("mle, uncalibrated, with test and interval", False, "mle"),
    ):
        lines.append(line(name, fastest(local, where, calibrated, method), once))
    print("the fastest of five runs, each in a process of its own\n")
    names = ["what", "rounds", "seconds", "per round / reading", "CPU s per round"]
    names += ["resident MB", "share of class 1"]
    print(table(names, lines))


def line(name: str, run: Run, once: float) -> list[str]:
    """A line of the table; ``once``: seconds of reading alone."""
    rounds = len(run.seconds)
    return [
        name,
        str(rounds),
        " + ".join(f"{s:.2f}" for s in run.seconds),
        f"{sum(run.seconds) / rounds / once:.1f}",
        f"{run.processors / rounds:.1f}",
        f"{run.resident / 1e6:.0f}",
        f"{run.shares[1]:.6f}" if run.shares else "",
    ]


def fastest(function: object, *arguments: object) -> Run:
    """Others use this machine, too."""
    return min((apart(function, *arguments) for _ in range(5)), key=lambda run: sum(run.seconds))


def apart(function: object, *arguments: object) -> Run:
    """In a new process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        found: Run = pool.submit(function, *arguments).result()  # type: ignore[arg-type]
        return found


def reading(paths: Sequence[Path]) -> Run:
    """Every record batch, once, and nothing done with it."""
    begun, spent = time.perf_counter(), time.process_time()
    for path in paths:
        with pq.ParquetFile(path) as file:
            for _ in file.iter_batches(BATCH_ROWS):
                pass
    seconds = [time.perf_counter() - begun]
    return Run(seconds, time.process_time() - spent, resident(), [])


def local(where: Path, calibrated: bool, method: str) -> Run:
    """An estimate by the engine of one machine; listing the files is in it."""
    ends, spent = [time.perf_counter()], time.process_time()
    request = Request(method, interval=IntervalOptions())
    if method != "mle":
        request = Request(method, interval=IntervalOptions(), shift=None)
    version = model(2, calibrated)
    outcome = estimate_partitions(
        version,
        partitions(where, version.classes),
        request,
        LocalEngine(),
        keep=lambda _: ends.append(time.perf_counter()),
    )
    shares = outcome.estimates[()].prevalence.tolist()
    return Run(np.diff(ends).tolist(), time.process_time() - spent, resident(), shares)


def resident() -> int:
    """The largest memory that this process ever had resident, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise OSError("the system does not tell")


def workers(rows: int, where: Path) -> None:
    """The same files with one worker process and with two."""
    paths = write(where, rows, 50, FIVE)
    size = sum(path.stat().st_size for path in paths)
    version = model(5)
    parts = partitions(where, version.classes)
    print(f"{rows:.0e} rows of 5 classes, float32, 50 Parquet files, {size / 1e9:.2f} GB\n")
    lines, totals = [], []
    for processes in (1, 2):
        ends = [0.0]
        with dask(processes, "4GiB") as engine:
            ends[0] = time.perf_counter()
            outcome = estimate_partitions(
                version,
                parts,
                Request("mle", interval=IntervalOptions()),
                engine,
                keep=lambda _, to=ends: to.append(time.perf_counter()),  # type: ignore[misc]
            )
        seconds = np.diff(ends)
        totals.append(float(seconds.sum()))
        lines.append(
            [
                str(processes),
                " + ".join(f"{s:.1f}" for s in seconds),
                f"{totals[-1]:.1f}",
                f"{totals[0] / totals[-1]:.2f}",
                f"{outcome.read.rows * outcome.rounds / totals[-1] / 1e6:.1f}",
            ]
        )
    names = ["worker processes", "seconds by round", "total", "speed-up", "million rows/s per pass"]
    print(table(names, lines))


@dataclass(frozen=True)
class Nothing:
    """A partition without data."""

    name: str

    def pieces(self) -> Iterator[Piece]:
        """None."""
        return iter(())


def pretended(classes: int, partition: Partition) -> Tally:
    """The sums of a round, without the rows."""
    C = classes
    added = {
        "multipliers": np.ones(C),
        "gain": np.ones(1),
        "hessian": pack_triangle(np.ones((C, C))),
    }
    return Tally({(): Sums(added, {})}, 1, Read(rows=1))  # type: ignore[arg-type]


def reduce(partitions: int) -> None:
    """Rounds of a real scheduler and two worker processes."""
    parts = [Nothing(f"part-{i}") for i in range(partitions)]
    lines = []
    for tasks in ((partitions, partitions), (TASKS, MOST_TASKS)):
        with dask(2, tasks=tasks) as engine:
            engine.sum(pretended, parts[:100], 2, Observer())
            step = -(-partitions // min(2 * tasks[0], tasks[1]))
            count = -(-partitions // step)
            lines += [round_of(engine, parts, classes, count) for classes in (2, 10, 100)]
    print(f"{partitions} partitions, {resident() / 1e6:.0f} MB resident in the driver\n")
    names = ["tasks", "classes", "seconds per round", "ms per task", "MB of sums", "kB to driver"]
    print(table(names, lines))


def round_of(engine: Cluster, parts: Sequence[Nothing], classes: int, tasks: int) -> list[str]:
    """The median of three rounds; one of very many tasks."""
    seconds = []
    for _ in range(3 if tasks <= MOST_TASKS else 1):
        begun = time.perf_counter()
        found = engine.sum(pretended, parts, classes, Observer())
        seconds.append(time.perf_counter() - begun)
        assert found.rows == len(parts)
    each, one = median(seconds), (classes + classes * (classes + 1) // 2 + 1) * 8
    return [
        str(tasks),
        str(classes),
        f"{each:.2f} ({min(seconds):.2f}–{max(seconds):.2f})",
        f"{1e3 * each / tasks:.2f}",
        f"{tasks * one / 1e6:.1f}",
        f"{one / 1e3:.1f}",
    ]


def constants(rows: int) -> None:
    """Nanoseconds of one core per number of a float32 matrix in memory."""
    lines = []
    for classes in (2, 5, 20, 100):
        count = rows * 5 // classes
        drawn = draw(np.random.default_rng(0), np.full(classes, 1 / classes), count)[1]
        # As files are read.
        order: Literal["F", "C"] = "F" if classes <= NARROW else "C"
        part = Array("part", drawn.astype(np.float32, order))
        line = [str(classes)]
        for calibrated in (False, True):
            version = model(classes, calibrated)
            passed = Passed(version.priors, version.calibration, version.bins)
            even = np.full(classes, 1 / classes)
            passes: tuple[dict[Group, Pass] | SurveyPass, ...] = (
                survey(passed),
                {(): Derivatives(even, False)},
                {(): Derivatives(even, True)},
            )
            for asked in passes:
                seconds = []
                for _ in range(3):
                    begun = time.process_time()
                    work(Task(passed, asked, 1, 1000), part)
                    seconds.append(time.process_time() - begun)
                line.append(f"{1e9 * min(seconds) / drawn.size:.1f}")
        lines.append(line)
    names = ["classes", "survey", "multipliers", "with Hessian"]
    names += [f"calibrated: {name}" for name in names[1:]]
    print(table(names, lines))
    with folder(None) as where:
        paths = write(where, rows * 20, 40, FIVE)
        numbers = rows * 20 * len(FIVE)
        takes = (apart(reading, paths), apart(checking, where, False), apart(checking, where, True))
    names = ["pyarrow's reading", "and checking", "and keeping"]
    print(table(names, [[f"{1e9 * run.processors / numbers:.1f}" for run in takes]]))


def checking(where: Path, keep: bool) -> Run:
    """What a data set of the service takes to read, on one thread; all rows kept, or none."""
    found = partitions(where, model(5).classes)
    begun, spent = time.perf_counter(), time.process_time()
    pieces = (piece for partition in found for piece in partition.pieces())
    deque(pieces, maxlen=None if keep else 0)
    seconds = [time.perf_counter() - begun]
    return Run(seconds, time.process_time() - spent, resident(), [])


@dataclass(frozen=True)
class Costs:
    """What the predictions rest on. Measured here: nanoseconds of a core per number, and per task.

    Assumed: bytes per second from storage, and bytes of memory, of a worker of one core.
    """

    read: float = 3.0
    hold: float = 6.5
    survey: float = 5.5
    further: float = 3.5
    task: float = 1.5e6
    storage: float = 200e6
    memory: float = 4e9

    def seconds(self, rows: float, classes: int, workers: int, rounds: int) -> list[float]:
        """The first round; one that reads again; one on rows in memory; all rounds."""
        numbers, per = rows * classes / workers, 1e-9
        storage = numbers * 4 / self.storage
        tasks = max(min(TASKS * workers, MOST_TASKS), workers) * self.task * per
        first = storage + numbers * (self.read + self.survey) * per + tasks
        kept = numbers * 4 <= MEMORY_SHARE * self.memory
        again = storage + numbers * (self.read + self.further + self.hold * kept) * per + tasks
        held = numbers * self.further * per + tasks
        following = again + (rounds - 2) * (held if kept else again)
        return [first, again, held if kept else np.nan, first + following]


def predict() -> None:
    """From the cost model of docs/scaling.md."""
    costs, classes, rounds = Costs(), 10, 6
    lines = []
    for rows in (1e9, 1e10, 1e12):
        for count in (10, 100, 1000):
            first, again, held, total = costs.seconds(rows, classes, count, rounds)
            tasks = max(min(TASKS * count, MOST_TASKS), count)
            network = tasks * (classes + classes * (classes + 1) / 2 + 1) * 8
            lines.append(
                [
                    f"{rows:.0e}",
                    str(count),
                    spoken(first),
                    spoken(again),
                    "–" if np.isnan(held) else spoken(held),
                    spoken(tasks * costs.task * 1e-9),
                    f"{network / 1e6:.1f}",
                    spoken(total),
                ]
            )
    print(f"{costs}, {classes} classes, {rounds} rounds\n")
    names = ["rows", "workers", "first round", "reading again", "on rows in memory"]
    print(table([*names, "of it for tasks", "MB of sums", "all rounds"], lines))


def spoken(seconds: float) -> str:
    """Seconds, minutes or hours."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


if __name__ == "__main__":
    main()
