"""What is known of jobs, and how they end."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from priorshift_client.errors import Fault, PriorshiftError
from priorshift_client.results import Warning


@dataclass(frozen=True)
class Progress:
    """How far a job is: ``partitions`` of ``of`` in round ``round``, ``rows`` in them.

    ``remaining_seconds``: of this round; how many rounds there are, the data decide.
    """

    round: int
    partitions: int
    of: int
    rows: int | None
    rows_per_second: float | None = None
    remaining_seconds: float | None = None


@dataclass(frozen=True)
class JobEstimate:
    """A group by its columns, empty where there is one group only, and the id of its estimate.

    ``holm_p_value`` of its shift test allows for there being many groups.
    """

    group: dict[str, str]
    estimate: str
    size: int
    holm_p_value: float | None


@dataclass(frozen=True)
class Job:
    """Work on a data set: what was asked, how far it is, what came of it.

    ``kind``: estimate, register or adjust. ``state``: queued, running, cancelling, done, failed or
    cancelled. ``version``: the one that is used, or that registering made. ``errors``: why it has
    failed.
    """

    id: str
    kind: str
    model: str
    version: int | None
    state: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    asked: dict[str, Any] = field(repr=False)
    progress: Progress | None
    rounds: int | None = None
    rows: int | None = None
    skipped_rows: int | None = None
    skipped_files: int | None = None
    estimates: tuple[JobEstimate, ...] = ()
    output: str | None = None
    files: int | None = None
    warnings: tuple[Warning, ...] = ()
    errors: tuple[Fault, ...] = ()

    @property
    def over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.finished_at is not None


@dataclass(frozen=True)
class Moment:
    """A job that is followed; ``round`` and ``partitions`` are 0 until it tells how far it is."""

    state: str
    round: int
    partitions: int
    of: int | None
    rows: int | None
    rows_per_second: float | None
    remaining_seconds: float | None
    job: Job = field(repr=False)

    @classmethod
    def now(cls, job: Job) -> Self:
        """The job as it is."""
        p = job.progress
        if p is None:
            return cls(job.state, 0, 0, None, None, None, None, job)
        pace = (p.rows_per_second, p.remaining_seconds)
        return cls(job.state, p.round, p.partitions, p.of, p.rows, *pace, job)


class JobError(PriorshiftError):
    """A job that is not done. ``job``: as it was last seen."""

    def __init__(self, job: Job) -> None:
        super().__init__(f"job {job.id} of {job.model} {self._why(job)}")
        self.job = job

    def __reduce__(self) -> tuple[type[Self], tuple[Job]]:
        return self.__class__, (self.job,)

    @staticmethod
    def _why(job: Job) -> str:
        return f"is {job.state}"


class JobFailed(JobError):
    """It has failed; ``job.errors`` say why."""

    @staticmethod
    def _why(job: Job) -> str:
        words = "; ".join(f"{fault.pointer} {fault.message}".strip() for fault in job.errors)
        return f"has failed: {words}" if words else "has failed"


class JobCancelled(JobError):
    """Somebody has cancelled it."""

    @staticmethod
    def _why(job: Job) -> str:
        return "was cancelled"


class JobTimeout(JobError, TimeoutError):
    """It was not over in time; it goes on."""

    @staticmethod
    def _why(job: Job) -> str:
        return f"is {job.state} still, and goes on"


ENDS = {"failed": JobFailed, "cancelled": JobCancelled}


def done(job: Job) -> Job:
    """A job that is over, if it is done; raises what else became of it."""
    if job.state == "done":
        return job
    raise ENDS.get(job.state, JobError)(job)
