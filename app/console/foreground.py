"""A job run here, under a lease as any server's: it is in the list, and others can go on with it.

The transaction that adds the job takes it too, so that no server on the same database comes first.
"""

import signal
import threading
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import FrameType
from uuid import uuid4

from threadpoolctl import threadpool_limits

from app import logs
from app.clock import now
from app.console.following import Left, News, address, over
from app.console.service import Local, ask
from app.jobs.runner import JobRunner
from app.logs import log
from app.operations.tasks import attempt
from app.services import Services
from app.settings import Settings
from models_store.errors import Unavailable
from models_store.jobs import JOB
from models_store.records import TaskRecord
from models_store.store import UnitOfWork

LOOK_SECONDS = 0.5
LEAVING = "a server on this database goes on with the job, or priorshift job resume"


@dataclass
class Foreground:
    """Stands in for the queue of the application within ``service``: runs what is asked there.

    From its making on, a polite end of the process gives the job back.
    """

    service: Local
    _task: TaskRecord | None = None
    _owner: str = field(default_factory=lambda: uuid4().hex)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        services: Services = self.service.app.state.services
        self._jobs = JobRunner(services.store, services.settings, services.null_distributions)
        self._lane = self._jobs.lane()
        self.service.app.state.services = replace(services, jobs=self)
        signal.signal(signal.SIGTERM, self._end)

    def queue(self, unit: UnitOfWork, id: str, at: datetime) -> None:
        """Add the task of a new job, and take it."""
        self._jobs.queue(unit, id, at)
        self._task = unit.tasks.take(JOB, id, self._owner, at, self._lane.lease_seconds)

    def start(self, id: str) -> None:
        """Run the job in a thread."""
        settings: Settings = self._jobs.settings
        logs.configure(settings.log_format, "error")
        threadpool_limits(1)
        threading.Thread(target=self._run, args=[id], name="job", daemon=True).start()

    def news(self, id: str) -> News:
        """The job as it goes on."""
        while True:
            ended = self._ended.is_set()
            job = ask(self.service, "GET", address(id)).json()
            yield job
            if over(job):
                return
            if ended:
                raise Left(f"{LEAVING} {id}")
            # Not a join: one that Ctrl-C interrupts takes the thread for dead from then on.
            self._ended.wait(LOOK_SECONDS)

    def leave(self) -> None:
        """Give the job back, for others to go on with."""
        self._stopped.set()
        self._ended.wait()

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._stopped.set()

    def _run(self, id: str) -> None:
        try:
            # What is held is begun even then: its handler gives it back.
            while (self._task or not self._stopped.is_set()) and not self._settled(id):
                task, self._task = self._task or self._again(id), None
                if task is None:
                    self._stopped.wait(LOOK_SECONDS)
                else:
                    attempt(self._jobs.store, self._lane, task, self._stopped)
        except Unavailable as error:
            log.error("database unavailable", reason=str(error))
        finally:
            self._ended.set()

    def _again(self, id: str) -> TaskRecord | None:
        """The task after an attempt that failed; None while it is not due, or another's."""
        with self._jobs.store.write() as unit:
            return unit.tasks.take(JOB, id, self._owner, now(), self._lane.lease_seconds)

    def _settled(self, id: str) -> bool:
        with self._jobs.store.read() as unit:
            return unit.tasks.get(JOB, id) is None


def settings() -> Settings:
    """The configuration; without data roots it is the caller's own folder, to read and to write."""
    configured = Settings()
    if configured.data_roots:
        return configured
    here: dict[str, object] = {"data_roots": [str(Path.cwd())]}
    if configured.output_root is None:
        here["output_root"] = str(Path.cwd())
    return configured.model_copy(update=here)
