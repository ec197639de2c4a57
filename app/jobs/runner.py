"""Runs jobs: each under a lease, from the last finished round or partition on."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.clock import now
from app.core.errors import Fault, InvalidInput, MethodUnavailable
from app.datasets.reading import Unreadable
from app.engines import Cancelled, DataChanged, EngineLost, EngineMissing, TooManyGroups
from app.jobs import adjustment, estimation, registration
from app.jobs.context import Context, Result
from app.jobs.lease import Keeping
from app.logs import log
from app.operations.tasks import Lane, Lease
from app.serving.null_distributions import NullDistributions
from app.settings import Settings
from app.stored.jobs import StoredFault, StoredJobResult, StoredProgress
from models_store.errors import NotFound, OtherKind
from models_store.jobs import JOB
from models_store.records import TaskRecord
from models_store.store import Store, UnitOfWork

LEASE_SECONDS = 60.0
MOST_ATTEMPTS = 3
"""Of a job that ends in an error nobody expected, or without a cluster, one after another."""
AGAIN_SECONDS = 10.0
KINDS: dict[str, Callable[[Context], Result]] = {
    "estimate": estimation.run,
    "register": registration.run,
    "adjust": adjustment.run,
}
WRONG = (
    InvalidInput,
    MethodUnavailable,
    NotFound,
    OtherKind,
    TooManyGroups,
    DataChanged,
    EngineMissing,
    Unreadable,
)
"""What a job is told of by failing; to try again would bring the same."""


@dataclass(frozen=True)
class JobRunner:
    """The handler of ``JOB``."""

    store: Store
    settings: Settings
    nulls: NullDistributions

    def lane(self) -> Lane:
        """Its threads, which nothing short waits for."""
        return Lane(JOB, {JOB: self.run}, self.settings.job_slots, LEASE_SECONDS)

    def queue(self, unit: UnitOfWork, id: str, at: datetime) -> None:
        """Have a new job run, by whoever comes first."""
        unit.tasks.add(JOB, id, {}, at)

    def run(self, task: TaskRecord, lease: Lease) -> None:
        """Run a job to its end, or to where another process goes on."""
        try:
            with self.store.read() as unit:
                job = unit.jobs.get(task.key)
        except NotFound:
            lease.finish()
            return
        if job.over or job.state == "cancelling":
            lease.finish(None if job.over else self._ending(job.id, "cancelled", StoredJobResult()))
            return
        with self.store.write() as unit:
            unit.tasks.renew(task, now(), lease.seconds)
            unit.jobs.start(job.id, now())
        keeping = Keeping(self.store, task, lease, job)
        context = Context(self.store, self.settings, self.nulls, job, keeping)
        try:
            with keeping.beating():
                result = KINDS[job.kind](context)
            lease.finish(
                lambda unit: self._end(unit, job.id, "done", result.write(unit), keeping.latest)
            )
        except Cancelled:
            self._stopped(keeping)
        except WRONG as error:
            lease.finish(self._ending(job.id, "failed", StoredJobResult(errors=faults(error))))
        except EngineLost as error:
            self._again(task, lease, error, str(error))
        except Exception as error:
            log.error("job failed", job=job.id, exc_info=error)
            self._again(task, lease, error, "an unexpected error, which was logged")

    def _stopped(self, keeping: Keeping) -> None:
        """Cancelled by somebody, or by the end of the process, or lost to another."""
        if keeping.lost:
            return
        if keeping.cancelled:
            keeping.lease.finish(self._ending(keeping.job.id, "cancelled", StoredJobResult()))
        else:
            keeping.lease.postpone(now(), "interrupted")

    def _again(self, task: TaskRecord, lease: Lease, error: Exception, message: str) -> None:
        """From the last finished round on, a few times; then it has failed."""
        if task.attempts < MOST_ATTEMPTS:
            due = now() + timedelta(seconds=AGAIN_SECONDS)
            lease.postpone(due, f"{type(error).__name__}: {error}")
            return
        told = StoredJobResult(errors=[StoredFault(pointer="", message=message)])
        lease.finish(self._ending(task.key, "failed", told))

    def _ending(self, id: str, state: str, result: StoredJobResult) -> Callable[[UnitOfWork], None]:
        return lambda unit: self._end(unit, id, state, result)

    def _end(
        self,
        unit: UnitOfWork,
        id: str,
        state: str,
        result: StoredJobResult,
        progress: StoredProgress | None = None,
    ) -> None:
        far = None if progress is None else progress.written()
        unit.jobs.end(id, state, result.written(), now(), far)
        log.info("job over", job=id, state=state)


def faults(error: Exception) -> list[StoredFault]:
    """What was wrong, and where."""
    found = [Fault("", str(error))]
    if isinstance(error, InvalidInput):
        found = list(error.faults)
    return [StoredFault(pointer=fault.pointer, message=fault.message) for fault in found[:20]]
