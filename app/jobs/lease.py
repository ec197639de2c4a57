"""What a running job holds on to: its lease, its progress, and what it needs to go on."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from app.clock import now
from app.engines import Cancelled, Observer, Progress
from app.engines.tallies import Json
from app.logs import log
from app.operations.tasks import Lease
from app.stored.jobs import StoredProgress
from models_store.errors import LostLease, Unavailable
from models_store.jobs import JobRecord
from models_store.records import TaskRecord
from models_store.store import Store

BEAT_SECONDS = 1.0
"""Between looks whether it is still wanted, and how far it is."""
RENEW_SECONDS = 10.0
"""Between writes that keep the lease of a job without news."""


@dataclass
class Keeping:
    """Keeps the lease in a thread, while the job works in another."""

    store: Store
    task: TaskRecord
    lease: Lease
    job: JobRecord
    cancelled: bool = False
    lost: bool = False
    latest: StoredProgress | None = None
    _began: float = field(default_factory=monotonic)
    _round: tuple[int, float] = (0, 0.0)
    _ended: threading.Event = field(default_factory=threading.Event)

    @property
    def observer(self) -> Observer:
        """What the engines ask whether to go on, and tell how far they are."""
        return Observer(self.progress, self.unwanted)

    def unwanted(self) -> bool:
        """Whether to end: it was cancelled, the process stops, or somebody else has it."""
        return self.cancelled or self.lost or self.lease.stopping

    def check(self) -> None:
        """``Cancelled`` if so."""
        if self.unwanted():
            raise Cancelled

    def progress(self, said: Progress) -> None:
        """How far it is; written with the next beat."""
        if said.round != self._round[0]:
            self._round = said.round, monotonic()
        seconds = monotonic() - self._round[1]
        left = None
        if said.partitions and seconds > 0:
            left = seconds / said.partitions * (said.of - said.partitions)
        rate = said.rows / seconds if said.rows and seconds > 0 else None
        self.latest = StoredProgress(
            round=said.round,
            partitions=said.partitions,
            of=said.of,
            rows=said.rows,
            rows_per_second=rate,
            remaining_seconds=left,
        )

    def checkpoint(self, state: Json) -> None:
        """Write what is needed to go on; ``Cancelled`` if somebody else has the job."""
        try:
            with self.store.write() as unit:
                unit.tasks.renew(self.task, now(), self.lease.seconds)
                unit.jobs.checkpoint(self.job.id, state)
        except LostLease:
            self.lost = True
            raise Cancelled from None

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Keep the lease meanwhile."""
        thread = threading.Thread(target=self._beat, name=f"job-{self.job.id[:8]}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _beat(self) -> None:
        renewed, told = monotonic(), None
        while not self._ended.wait(BEAT_SECONDS):
            latest = self.latest
            due = monotonic() - renewed >= RENEW_SECONDS
            try:
                if latest != told or due:
                    self._write(latest)
                    renewed, told = monotonic(), latest
                else:
                    self._look()
            except LostLease:
                self.lost = True
                log.warning("job lost to another", job=self.job.id)
                return
            except Unavailable:
                continue  # the lease may run out; whoever takes the job then is told

    def _write(self, latest: StoredProgress | None) -> None:
        with self.store.write() as unit:
            unit.tasks.renew(self.task, now(), self.lease.seconds)
            state = unit.jobs.note(self.job.id, None if latest is None else latest.written())
        self._told(state)

    def _look(self) -> None:
        with self.store.read() as unit:
            state = unit.jobs.state(self.job.id)
        self._told(state)

    def _told(self, state: str | None) -> None:
        if state is None or state == "cancelling":
            self.cancelled = True
