"""Runners: each task is settled once, whatever fails, whoever dies."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from app.operations import tasks
from app.operations.tasks import Handler, Lane, Lease, TaskRunner
from models_store.engine import connect
from models_store.records import TaskRecord
from models_store.store import Store, UnitOfWork
from tests.patience import patience, until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(tasks, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(tasks, "FIRST_SECONDS", 0.01)


@contextmanager
def running(store: Store, handler: Handler, **options: float) -> Iterator[TaskRunner]:
    threads, lease = int(options.get("threads", 1)), options.get("lease_seconds", 60.0)
    runner = TaskRunner(store, [Lane("test", {"a": handler}, threads, lease)])
    runner.start()
    try:
        yield runner
    finally:
        runner.close()


def add(store: Store, *keys: str, kind: str = "a", wait: float = 0.0) -> None:
    due = datetime.now(UTC) + timedelta(seconds=wait)
    with store.write() as unit:
        for key in keys:
            assert unit.tasks.add(kind, key, {}, due)


def left(store: Store, kind: str = "a") -> bool:
    with store.read() as unit:
        return unit.tasks.next_due([kind]) is not None


def model(name: str) -> tasks.Work:
    """An effect that shows when it happens twice: names are taken once."""

    def work(unit: UnitOfWork) -> None:
        unit.models.create(name, "classifier", ("a", "b"), "", datetime.now(UTC))

    return work


def models(store: Store) -> set[str]:
    with store.read() as unit:
        return {record.name for record in unit.models.list(None, 200).items}


def test_two_runners_never_run_one_task_at_once(store: Store) -> None:
    keys = [f"k{n}" for n in range(40)]
    under_way: list[str] = []
    met: list[str] = []

    def run(task: TaskRecord, lease: Lease) -> None:
        if task.key in under_way:
            met.append(task.key)
        under_way.append(task.key)
        lease.finish(model(task.key))

    with running(store, run, threads=3), running(store, run, threads=3):
        add(store, *keys)
        until(lambda: not left(store))
    assert met == []
    assert sorted(under_way) == sorted(keys)
    assert models(store) == set(keys)


def test_a_task_begins_when_it_is_due_and_not_before(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "POLL_SECONDS", 30.0)
    began: dict[str, datetime] = {}
    ended = threading.Event()

    def run(task: TaskRecord, lease: Lease) -> None:
        began[task.key] = datetime.now(UTC)
        lease.finish()
        if len(began) == 2:
            ended.set()

    with running(store, run):
        add(store, "now")
        added = datetime.now(UTC)
        add(store, "later", wait=0.3)
        assert ended.wait(patience(20))
    assert began["later"] >= added + timedelta(seconds=0.3)


def test_a_handler_that_fails_is_asked_again(store: Store) -> None:
    errors: list[str | None] = []

    def run(task: TaskRecord, lease: Lease) -> None:
        errors.append(task.error)
        if task.attempts == 1:
            raise ValueError("not yet")
        if task.attempts == 2:
            return
        if task.attempts == 3:
            lease.finish(failing)
        lease.finish()

    def failing(unit: UnitOfWork) -> None:
        model("half")(unit)
        raise RuntimeError("half way")

    with running(store, run):
        add(store, "x")
        until(lambda: not left(store))
    assert errors[:2] == [None, "ValueError: not yet"]
    assert errors[2:] == [
        "RuntimeError: the handler did not settle its task",
        "RuntimeError: half way",
    ]
    assert models(store) == set()


def test_a_late_worker_changes_nothing(store: Store) -> None:
    """The first attempt sleeps through its lease, and wakes when the second is at it."""
    second = threading.Event()
    outcomes: list[int] = []

    def run(task: TaskRecord, lease: Lease) -> None:
        if task.attempts == 1:
            assert second.wait(patience(20))
        else:
            second.set()
            until(lambda: 1 in outcomes)
        try:
            lease.finish(model(f"by-{task.attempts}"))
        finally:
            outcomes.append(task.attempts)

    with running(store, run, threads=2, lease_seconds=0.2):
        add(store, "x")
        until(lambda: len(outcomes) == 2)
        until(lambda: not left(store))
    assert models(store) == {"by-2"}


def test_what_takes_long_holds_up_its_own_lane_only(store: Store) -> None:
    ended = threading.Event()

    def long(task: TaskRecord, lease: Lease) -> None:
        assert ended.wait(patience(20))
        lease.renew()
        lease.finish()

    def short(task: TaskRecord, lease: Lease) -> None:
        lease.finish()
        ended.set()

    runner = TaskRunner(store, [Lane("long", {"a": long}), Lane("short", {"b": short})])
    runner.start()
    add(store, "x")
    until(lambda: taken(store))
    add(store, "x", kind="b")
    until(lambda: not left(store))
    runner.close()


def taken(store: Store) -> bool:
    with store.read() as unit:
        task = unit.tasks.get("a", "x")
    return task is not None and task.owner is not None


def test_closing_ends_after_the_task_under_way(store: Store) -> None:
    begun = threading.Event()

    def run(task: TaskRecord, lease: Lease) -> None:
        begun.set()
        until(lambda: lease.stopping)
        if task.key == "patient":
            lease.finish()

    for key in ("patient", "impatient"):
        begun.clear()
        with running(store, run):
            add(store, key)
            assert begun.wait(patience(20))
    with store.read() as unit:
        assert unit.tasks.get("a", "patient") is None
        given_back = unit.tasks.get("a", "impatient")
    assert given_back is not None
    assert (given_back.owner, given_back.error) == (None, "interrupted")


def _die(url: str, begun: "multiprocessing.synchronize.Event") -> None:
    def run(task: TaskRecord, lease: Lease) -> None:
        begun.set()
        time.sleep(600)

    runner = TaskRunner(Store(connect(url)), [Lane("test", {"a": run}, lease_seconds=0.5)])
    runner.start()
    time.sleep(600)


def test_a_killed_owners_task_is_taken_over(store: Store, database_url: str) -> None:
    add(store, "x")
    context = multiprocessing.get_context("spawn")
    begun = context.Event()
    process = context.Process(target=_die, args=(database_url, begun))
    process.start()
    assert begun.wait(patience(60))
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    attempts: list[int] = []

    def run(task: TaskRecord, lease: Lease) -> None:
        attempts.append(task.attempts)
        lease.finish(model("done"))

    with running(store, run):
        until(lambda: not left(store))
    assert attempts == [2]
    assert models(store) == {"done"}


def test_an_idle_runner_reads_once_a_poll_and_never_writes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def noted(name: str) -> None:
        real = getattr(store, name)

        def opened() -> object:
            seen.append(name)
            return real()

        monkeypatch.setattr(store, name, opened)

    noted("read")
    noted("write")
    with running(store, lambda task, lease: None, threads=4):
        until(lambda: len(seen) > 3)
        began, first = time.monotonic(), len(seen)
        until(lambda: len(seen) > first + 5)
        assert time.monotonic() - began > 4 * 0.75 * 0.05
    assert set(seen) == {"read"}


def test_a_database_that_goes_is_told_once_and_asked_again(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = sqlite_url.removeprefix("sqlite:///")
    os.rename(path, path + ".away")
    os.mkdir(path)
    store = Store(connect(sqlite_url))
    with running(store, lambda task, lease: lease.finish()):
        until(lambda: len(caplog.records) > 0)
        time.sleep(0.1)
        os.rmdir(path)
        os.rename(path + ".away", path)
        other = Store(connect(sqlite_url))
        add(other, "x")
        until(lambda: not left(other))
        other.close()
    store.close()
    told = [str(record.msg) for record in caplog.records]
    assert sum("unavailable" in text for text in told) == 1


def test_what_waits_is_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "SAMPLE_SECONDS", 0.0)
    told: dict[str, tuple[int, float]] = {}

    def watch(kind: str, number: int, late: float) -> None:
        told[kind] = number, late

    add(store, "x", "y", kind="a", wait=3600)
    add(store, "z", kind="b", wait=-5)
    ended = threading.Event()

    def hold(task: TaskRecord, lease: Lease) -> None:
        assert ended.wait(patience(20))
        lease.finish()

    handlers: dict[str, Handler] = {"a": hold, "b": hold, "c": hold}
    runner = TaskRunner(store, [Lane("test", handlers, threads=2)], watch)
    runner.start()
    until(lambda: len(told) == 3)
    assert told["a"] == (2, 0.0)
    assert told["c"] == (0, 0.0)
    until(lambda: told["b"] == (1, 0.0))
    ended.set()
    until(lambda: told["b"] == (0, 0.0))
    runner.close()
