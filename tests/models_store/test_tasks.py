"""The outbox: what is committed is there once, is one's own for a while, and is settled once."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest

from models_store.errors import LostLease
from models_store.records import TaskRecord
from models_store.store import Store

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE = timedelta(seconds=60)
LATER = NOW + timedelta(seconds=61)
T = TypeVar("T")


def add(store: Store, key: str, kind: str = "a", due: datetime = NOW) -> bool:
    with store.write() as unit:
        return unit.tasks.add(kind, key, {"key": key}, due)


def claim(store: Store, owner: str, now: datetime = NOW, most: int = 1) -> list[TaskRecord]:
    with store.write() as unit:
        return unit.tasks.claim(["a"], owner, now, 60, most)


def due(store: Store, *kinds: str) -> datetime | None:
    with store.read() as unit:
        return unit.tasks.next_due(kinds)


class TestAdding:
    def test_the_same_key_twice_is_one_task(self, store: Store) -> None:
        assert add(store, "x")
        assert not add(store, "x", due=LATER)
        assert add(store, "x", kind="b")
        assert [task.due_at for task in claim(store, "me", LATER, 5)] == [LATER + MINUTE]
        assert claim(store, "you", LATER) == []

    def test_a_transaction_that_fails_adds_nothing(self, store: Store) -> None:
        with pytest.raises(RuntimeError), store.write() as unit:
            unit.tasks.add("a", "x", {}, NOW)
            raise RuntimeError
        assert due(store, "a") is None

    def test_at_once_from_many_threads(self, store: Store) -> None:
        added = together(8, lambda n: add(store, "x"))
        assert sorted(added) == [False] * 7 + [True]

    def test_listeners_hear_of_commits_that_added(self, store: Store) -> None:
        heard: list[int] = []
        store.listen(lambda: heard.append(1))
        add(store, "x")
        add(store, "x")
        claim(store, "me")
        with pytest.raises(RuntimeError), store.write() as unit:
            unit.tasks.add("a", "y", {}, NOW)
            raise RuntimeError
        assert heard == [1]


def together(number: int, work: Callable[[int], T]) -> list[T]:
    """What ``work`` gave in threads that started at once."""
    gate = threading.Barrier(number)
    found: list[T] = []

    def run(n: int) -> None:
        gate.wait()
        found.append(work(n))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == number
    return found


class TestTaking:
    def test_the_longest_due_first_and_none_before_its_time(self, store: Store) -> None:
        for n in (2, 0, 1, 3):
            add(store, f"k{n}", due=NOW + timedelta(seconds=n))
        assert due(store, "a", "b") == NOW
        taken = claim(store, "me", NOW + timedelta(seconds=2), 9)
        assert [task.key for task in taken] == ["k0", "k1", "k2"]
        assert taken[0].payload == {"key": "k0"}
        assert due(store, "a") == NOW + timedelta(seconds=3)
        assert due(store, "b") is None
        assert due(store) is None

    def test_each_is_taken_once_at_a_time(self, store: Store) -> None:
        for n in range(40):
            add(store, f"k{n}")
        taken = together(8, lambda n: [claim(store, f"o{n}") for _ in range(10)])
        keys = [task.key for some in taken for one in some for task in one]
        assert sorted(keys) == sorted(f"k{n}" for n in range(40))

    def test_a_lease_that_ran_out_is_taken_over(self, store: Store) -> None:
        add(store, "x")
        (first,) = claim(store, "me")
        assert claim(store, "you", NOW + timedelta(seconds=59)) == []
        assert due(store, "a") == NOW + MINUTE
        (second,) = claim(store, "you", LATER)
        assert (first.attempts, second.attempts, second.owner) == (1, 2, "you")

    def test_one_that_is_named_is_taken_like_any(self, store: Store) -> None:
        add(store, "x")
        add(store, "y", due=LATER)

        def take(key: str, owner: str, now: datetime) -> TaskRecord | None:
            with store.write() as unit:
                return unit.tasks.take("a", key, owner, now, 60)

        first = take("x", "me", NOW)
        assert first is not None
        assert (first.key, first.owner, first.attempts) == ("x", "me", 1)
        assert take("x", "you", NOW + timedelta(seconds=59)) is None
        assert take("y", "you", NOW) is None
        assert take("z", "you", NOW) is None
        second = take("x", "you", LATER)
        assert second is not None
        assert (second.owner, second.attempts) == ("you", 2)

    def test_one_that_is_added_and_taken_at_once_is_nobody_elses(self, store: Store) -> None:
        with store.write() as unit:
            unit.tasks.add("a", "x", {}, NOW)
            assert unit.tasks.take("a", "x", "me", NOW, 60) is not None
        assert claim(store, "you") == []


class TestSettling:
    def test_what_is_done_is_gone(self, store: Store) -> None:
        add(store, "x")
        (task,) = claim(store, "me")
        with store.write() as unit:
            unit.tasks.done(task)
            assert unit.tasks.add("a", "x", {}, LATER)
        assert due(store, "a") == LATER

    def test_what_is_given_back_keeps_its_error(self, store: Store) -> None:
        add(store, "x")
        (task,) = claim(store, "me")
        with store.write() as unit:
            unit.tasks.retry(task, LATER, "it\0failed" + "x" * 2000)
        (again,) = claim(store, "you", LATER)
        assert again.error is not None
        assert again.error.startswith("itfailedxxx")
        assert len(again.error) == 1000

    def test_renewing_holds_it(self, store: Store) -> None:
        add(store, "x")
        (task,) = claim(store, "me")
        with store.write() as unit:
            unit.tasks.renew(task, NOW + timedelta(seconds=30), 60)
        assert claim(store, "you", LATER) == []

    @pytest.mark.parametrize("how", ["done", "retry", "renew"])
    @pytest.mark.parametrize("owner", ["me", "you"])
    def test_a_late_owner_changes_nothing(self, store: Store, how: str, owner: str) -> None:
        """Not even if the other one is the same process."""
        add(store, "x")
        (late,) = claim(store, "me")
        (present,) = claim(store, owner, LATER)
        with pytest.raises(LostLease), store.write() as unit:
            unit.models.create("effect", "classifier", ("a", "b"), "", NOW)
            settle(unit.tasks, how, late)
        with store.write() as unit:
            assert unit.models.list(None, 5).items == ()
            unit.tasks.done(present)
        with pytest.raises(LostLease), store.write() as unit:
            settle(unit.tasks, how, late)

    def test_cancelled_ones_finish_in_vain(self, store: Store) -> None:
        add(store, "x")
        add(store, "y", due=LATER)
        (task,) = claim(store, "me")
        with store.write() as unit:
            assert unit.tasks.cancel("a", ["x", "z"]) == 1
            assert unit.tasks.get("a", "x") is None
            assert unit.tasks.get("a", "y") is not None
        with pytest.raises(LostLease), store.write() as unit:
            unit.tasks.done(task)


def settle(tasks: object, how: str, task: TaskRecord) -> None:
    more = {"done": (), "retry": (LATER, "late"), "renew": (LATER, 60)}[how]
    getattr(tasks, how)(task, *more)
