"""Work on data sets that goes on in the service: asked for, followed, waited for, cancelled."""

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Any, Literal

from priorshift_client.bodies import json_body
from priorshift_client.calls import Call, Listing, change, get, into, place, query, write
from priorshift_client.datasets import Dataset
from priorshift_client.errors import Fault, InvalidInput, Problem, TransportError
from priorshift_client.jobs import Job, JobTimeout, Moment, done
from priorshift_client.operations.history import get_estimate
from priorshift_client.operations.models import PAGE
from priorshift_client.options import IntervalOptions, ShiftOptions
from priorshift_client.plans import Listen, Pause, Plan, Step, Tell
from priorshift_client.results import Estimate
from priorshift_client.streams import EVENTS, Silence

State = Literal["queued", "running", "cancelling", "done", "failed", "cancelled"]
FIRST_LOOK_SECONDS, LOOK_SECONDS = 0.05, 1.0
"""Between looks at a job: at first, and in the end."""
SILENT_SECONDS = 40.0
"""After which a stream that says nothing is left; the service says something every 15."""
PATIENCE_SECONDS = 600.0
"""How long a service may be gone before its jobs are given up."""
PASSING = (429, 502, 503, 504)


def estimate_dataset(
    model: str,
    dataset: Dataset | str,
    version: int | str = "latest",
    method: str = "auto",
    *,
    interval: IntervalOptions | None = None,
    shift: ShiftOptions | None = None,
    segment: Mapping[str, str] | None = None,
    observed_at: datetime | str | None = None,
    idempotency_key: str | None = None,
) -> Call[Job]:
    """Have a data set estimated: one estimate, or one for each group; they are kept.

    ``dataset``: a ``Dataset``, or its path.
    """
    content = {
        "method": method,
        "interval": interval,
        "shift": shift,
        "segment": segment,
        "observed_at": observed_at,
    }
    return _create("estimate", model, dataset, {**_version(version), **content}, idempotency_key)


def register_dataset(
    model: str,
    dataset: Dataset | str,
    *,
    calibration: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    idempotency_key: str | None = None,
) -> Call[Job]:
    """Have the labelled rows of a data set registered as the next version."""
    content = {"calibration": calibration, "metadata": metadata}
    return _create("register", model, dataset, content, idempotency_key)


def adjust_dataset(
    model: str,
    dataset: Dataset | str,
    output: str,
    version: int | str = "latest",
    method: str = "auto",
    *,
    target_priors: Mapping[str, float] | None = None,
    idempotency_key: str | None = None,
) -> Call[Job]:
    """Have the rows of a data set adjusted: to stated priors or to their own estimate.

    ``output``: a folder below the service's output root.
    """
    content = {"method": method, "target_priors": target_priors, "output": output}
    return _create("adjust", model, dataset, {**_version(version), **content}, idempotency_key)


def get_job(job: Job | str) -> Call[Job]:
    """A job as it is now, by its id or by what is known of it."""
    return get(place("jobs", _id(job)), into(Job))


def list_jobs(
    model: str | None = None, state: State | None = None, *, limit: int = PAGE
) -> Listing[Job]:
    """Jobs, newest first; ``limit`` is the size of a page."""
    return Listing(place("jobs"), Job, query(model=model, state=state, limit=limit))


def cancel_job(job: Job | str) -> Call[Job]:
    """Have a job end, within seconds; files that it has written stay."""
    return change("DELETE", place("jobs", _id(job)), None, into(Job))


def follow_job(job: Job | str, *, patience: float = PATIENCE_SECONDS) -> Plan[Moment]:
    """A job whenever it changes, the last time when it is over, whatever became of it.

    Lost connections are taken up again; a service may be gone for ``patience`` seconds.
    """
    look, events = get_job(job), _events(job)
    previous, streams, gone = None, True, Gone(patience)
    while True:
        try:
            current = yield look
            while current is not None:
                gone.back()
                if current != previous:
                    previous = current
                    yield Tell(Moment.now(current))
                if current.over:
                    return
                current = (yield Listen(events)) if streams else None
        except Silence:
            streams = False
        except (TransportError, Problem) as error:
            gone.endure(error)
        yield Pause(LOOK_SECONDS)


def wait_for_job(
    job: Job | str, *, timeout: float | None = None, patience: float = PATIENCE_SECONDS
) -> Plan[Job]:
    """The job once it is done; raises ``JobFailed`` or ``JobCancelled``, which carry it.

    After ``timeout`` seconds it is ``JobTimeout``, and the job goes on. A service may be gone for
    ``patience`` seconds meanwhile.
    """
    yield Tell((yield from _ended(job, timeout, patience)))


def estimates_of_job(
    job: Job | str, *, timeout: float | None = None, patience: float = PATIENCE_SECONDS
) -> Plan[Estimate]:
    """The kept estimates of a job, one for each group, which their segments name.

    A job that is not over is waited for, as ``wait`` does.
    """
    ended = yield from _ended(job, timeout, patience)
    for item in ended.estimates:
        yield Tell((yield get_estimate(item.estimate)))


@dataclass
class Gone:
    """Endures errors that pass by themselves, for ``patience`` seconds from the first on."""

    patience: float
    _since: float | None = None

    def back(self) -> None:
        """There was an answer."""
        self._since = None

    def endure(self, error: TransportError | Problem) -> None:
        """Raise what does not pass, or what has lasted too long."""
        now = monotonic()
        self._since = now if self._since is None else self._since
        passes = isinstance(error, TransportError) or error.status in PASSING
        if not passes or now - self._since >= self.patience:
            raise error


def _ended(
    job: Job | str, timeout: float | None, patience: float
) -> Generator[Step[Any], Any, Job]:
    """The job once it is done, looked at now and then."""
    most = math.inf if timeout is None else timeout
    until, pause, gone = monotonic() + most, 0.0, Gone(min(patience, most))
    current = job if isinstance(job, Job) else None
    while current is None or not current.over:
        yield Pause(pause)
        try:
            current = yield get_job(job)
            gone.back()
        except (TransportError, Problem) as error:
            gone.endure(error)
        left = until - monotonic()
        if current is not None and not current.over and left <= 0:
            raise JobTimeout(current)
        pause = max(0.0, min(2 * pause or FIRST_LOOK_SECONDS, LOOK_SECONDS, left))
    return done(current)


def _create(
    kind: str,
    model: str,
    dataset: Dataset | str,
    options: Mapping[str, Any],
    idempotency_key: str | None,
) -> Call[Job]:
    source = Dataset(dataset) if isinstance(dataset, str) else dataset
    if not isinstance(source, Dataset):
        raise TypeError(f"a data set is a Dataset or its path, not {type(source).__name__}")
    body = json_body({"kind": kind, "model": model, **source.content(), **options})
    return write(place("jobs"), body, into(Job), idempotency_key)


def _version(version: int | str) -> dict[str, Any]:
    """As jobs take it: a number, an alias, or neither for the latest."""
    selector = str(version)
    if selector == "latest":
        return {}
    if selector.startswith("@"):
        return {"alias": selector[1:]}
    if selector.isascii() and selector.isdigit():
        return {"version": int(selector)}
    raise InvalidInput.found(
        [Fault("/version", f'{selector!r} is no number, "latest" or "@alias"')]
    )


def _id(job: Job | str) -> str:
    return job.id if isinstance(job, Job) else job


def _events(job: Job | str) -> Call[Job]:
    """The stream of a job's events, each read as the job."""
    where, headers = place("jobs", _id(job), "events"), {"Accept": EVENTS}
    return Call("GET", where, into(Job), (), headers, repeatable=True, patience=SILENT_SECONDS)
