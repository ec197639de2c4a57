"""Runs the tasks that transactions leave behind, in every process, in threads.

A task is taken under a lease, run by the handler of its kind, and settled in one write transaction
together with its effect. A process that dies settles nothing: its leases run out and others take
over. A handler that fails is tried again, later each time, for ever; to give up is a handler's own
decision, and an effect like any other.

Kinds are grouped in lanes, each with its own threads, so that what takes long does not hold up what
is short. One idle thread of a lane looks for tasks while the others wait for it to find one, so
that an idle process costs a lane one indexed read per ``POLL_SECONDS`` and no write.
"""

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic
from uuid import uuid4

from app.logs import log
from models_store.errors import LostLease, Unavailable
from models_store.records import TaskRecord
from models_store.store import Store, UnitOfWork

POLL_SECONDS = 1.0
"""Between looks for what other processes added; own tasks are known at once."""
TAKEN_SECONDS = 0.05
"""Before the next look when another process was faster."""
FIRST_SECONDS, LONGEST_SECONDS = 0.5, 30.0
"""Before the database is asked again when it did not answer; twice as long each time."""
RETRY_SECONDS, LONGEST_RETRY_SECONDS = 1.0, 600.0
"""Before a task that failed is tried again; twice as long each time."""
SAMPLE_SECONDS = 10.0
"""Between counts of what waits."""

Work = Callable[[UnitOfWork], None]


class Lease:
    """A task that is one's own for a while, and the only ways to settle it."""

    def __init__(
        self, store: Store, task: TaskRecord, seconds: float, stopped: threading.Event
    ) -> None:
        self.settled = False
        self._store = store
        self._task = task
        self.seconds = seconds
        self._stopped = stopped

    @property
    def stopping(self) -> bool:
        """Whether the process ends: what takes long may return without settling."""
        return self._stopped.is_set()

    def renew(self) -> None:
        """Hold the task for another full lease; ``LostLease`` if it is another's already."""
        with self._store.write() as unit:
            unit.tasks.renew(self._task, datetime.now(UTC), self.seconds)

    def finish(self, work: Work | None = None) -> None:
        """Do ``work`` and drop the task, both or neither; ``LostLease`` if it is another's.

        The task goes first: within ``work`` its key is free, and nobody else is at it.
        """
        with self._store.write() as unit:
            unit.tasks.done(self._task)
            if work is not None:
                work(unit)
        self.settled = True

    def postpone(self, due: datetime, error: str, work: Work | None = None) -> None:
        """Do ``work`` and give the task back until ``due``, both or neither."""
        with self._store.write() as unit:
            unit.tasks.retry(self._task, due, error)
            if work is not None:
                work(unit)
        self.settled = True


Watch = Callable[[str, int, float], None]
"""Is told of a kind how many tasks wait, and for how many seconds the first has been due."""

Handler = Callable[[TaskRecord, Lease], None]
"""Runs a task and settles it, through the lease; an exception or no settling is a failure."""


@dataclass(frozen=True)
class Lane:
    """Kinds that share threads; a task must end or renew its lease within ``lease_seconds``."""

    name: str
    handlers: Mapping[str, Handler]
    threads: int = 1
    lease_seconds: float = 60.0


class TaskRunner:
    """All lanes of a process."""

    def __init__(self, store: Store, lanes: Sequence[Lane], watch: Watch | None = None) -> None:
        self._stopped = threading.Event()
        self._lanes = [_Running(store, lane, self._stopped, watch) for lane in lanes]
        store.listen(self.nudge)

    def start(self) -> None:
        """Begin, without waiting for it."""
        for lane in self._lanes:
            lane.start()

    def nudge(self) -> None:
        """Look for tasks now."""
        for lane in self._lanes:
            lane.wake.set()

    def close(self) -> None:
        """End after the tasks under way."""
        self._stopped.set()
        self.nudge()
        for lane in self._lanes:
            lane.join()


class _Running:
    """The threads of a lane."""

    def __init__(
        self, store: Store, lane: Lane, stopped: threading.Event, watch: Watch | None
    ) -> None:
        self.wake = threading.Event()
        self._store = store
        self._lane = lane
        self._stopped = stopped
        self._watch = watch
        self._watched = -SAMPLE_SECONDS
        self._owner = uuid4().hex
        self._looking = threading.Lock()
        self._pause = 0.0
        self._reachable = True
        self._threads = [
            threading.Thread(target=self._run, name=f"{lane.name}-{n}", daemon=True)
            for n in range(lane.threads)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            attempt(self._store, self._lane, task, self._stopped)

    def _next(self) -> TaskRecord | None:
        """The next task, waited for; None at the end. One thread looks, the others wait."""
        with self._looking:
            while not self._stopped.is_set():
                task = self._look()
                if task is not None:
                    return task
                (self.wake if self._reachable else self._stopped).wait(self._pause)
                self.wake.clear()
        return None

    def _look(self) -> TaskRecord | None:
        """A task that is due; if there is none, how long to wait is noted."""
        try:
            task, pause = self._due(datetime.now(UTC))
        except Unavailable as error:
            self._unavailable(error)
            return None
        except Exception as error:
            log.error("looking for tasks failed", lane=self._lane.name, exc_info=error)
            self._pause = POLL_SECONDS
            return None
        if not self._reachable:
            log.info("database available again", lane=self._lane.name)
        self._reachable, self._pause = True, pause
        return task

    def _due(self, now: datetime) -> tuple[TaskRecord | None, float]:
        kinds = self._lane.handlers
        with self._store.read() as unit:
            due = unit.tasks.next_due(kinds)
            self._count(unit, now)
        poll = POLL_SECONDS * random.uniform(0.75, 1.25)  # noqa: S311
        if due is None or due > now:
            return None, poll if due is None else min(poll, (due - now).total_seconds())
        with self._store.write() as unit:
            taken = unit.tasks.claim(kinds, self._owner, now, self._lane.lease_seconds)
        return (taken[0], 0.0) if taken else (None, TAKEN_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311

    def _count(self, unit: UnitOfWork, now: datetime) -> None:
        if self._watch is None or monotonic() < self._watched + SAMPLE_SECONDS:
            return
        self._watched = monotonic()
        for kind, (number, due) in unit.tasks.waiting(self._lane.handlers).items():
            late = 0.0 if due is None else max((now - due).total_seconds(), 0.0)
            self._watch(kind, number, late)

    def _unavailable(self, error: Unavailable) -> None:
        longer = min(2 * self._pause, LONGEST_SECONDS)
        self._pause = FIRST_SECONDS if self._reachable else longer
        if self._reachable:
            log.warning("database unavailable", lane=self._lane.name, reason=str(error))
        self._reachable = False


def attempt(store: Store, lane: Lane, task: TaskRecord, stopped: threading.Event) -> None:
    """Run a task that was taken; one that its handler does not settle is given back for later."""
    lease = Lease(store, task, lane.lease_seconds, stopped)
    told = {"kind": task.kind, "task": task.id, "attempt": task.attempts}
    try:
        lane.handlers[task.kind](task, lease)
        if lease.settled:
            return
        if lease.stopping:
            _again(lease, datetime.now(UTC), "interrupted")
            return
        raise RuntimeError("the handler did not settle its task")
    except LostLease:
        log.warning("task lost to another", **told)
    except Unavailable as error:
        log.warning("task interrupted", reason=str(error), **told)
        _fail(lease, task, error)
    except Exception as error:
        log.error("task failed", exc_info=error, **told)
        _fail(lease, task, error)


def _fail(lease: Lease, task: TaskRecord, error: Exception) -> None:
    due = datetime.now(UTC) + timedelta(seconds=_pause(task.attempts))
    _again(lease, due, f"{type(error).__name__}: {error}")


def _again(lease: Lease, due: datetime, error: str) -> None:
    if lease.settled:
        return
    try:
        lease.postpone(due, error)
    except (LostLease, Unavailable):
        return  # another has it, or will have it when the lease runs out


def _pause(attempts: int) -> float:
    longest = min(RETRY_SECONDS * 2.0 ** min(attempts - 1, 20), LONGEST_RETRY_SECONDS)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311
