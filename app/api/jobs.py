"""Jobs as resources: asked for, looked at, followed, cancelled."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from threading import Event
from typing import Annotated, Literal
from uuid import uuid4

import numpy as np
from anyio.to_thread import run_sync
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response, StreamingResponse

from app.access.callers import Caller
from app.clock import now
from app.core.errors import InvalidInput
from app.datasets.adjusted import Output
from app.datasets.dataset import resolve
from app.datasets.roots import Roots
from app.estimation import SummedBatch
from app.estimation.methods import choose
from app.http.audit_trail import CallerDep, TrailDep, seen
from app.http.body import Body, only
from app.http.dependencies import (
    Cursor,
    GateDep,
    Limit,
    SettingsDep,
    StoreDep,
    answer,
    encode_cursor,
    problems,
)
from app.http.idempotency import OnceDep
from app.http.paging import before, identity
from app.http.problems import Forbidden
from app.intake import parse
from app.jobs.outputs import claim
from app.openapi import takes
from app.operations.admission import Busy
from app.schemas.jobs import JobIn, JobOut, JobPage, ProgressOut
from app.schemas.requests import NAME
from app.services import services_of
from app.settings import Settings
from app.stored.jobs import StoredJobRequest, StoredJobResult
from models_store.errors import OtherKind, StillInUse
from models_store.jobs import JOB, JobFilter, JobRecord
from models_store.store import Store, UnitOfWork

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
JobId = Annotated[str, Path(description="The id of the job")]
State = Literal["queued", "running", "cancelling", "done", "failed", "cancelled"]
LOOK_SECONDS = 0.5
"""Between looks at a job that is followed."""
QUIET_SECONDS = 15.0
"""After which a follower is told that there is no news, so that nothing between hangs up."""
FOLLOWED_SECONDS = 3600.0
MOST_FOLLOWERS = 100


@router.post(
    "",
    status_code=202,
    responses={202: {"model": JobOut}, **problems(400, 403, 404, 409, 413, 415, 422, 503)},
    openapi_extra=takes(JobIn),
)
def create_job(
    request: Request,
    payload: Body,
    store: StoreDep,
    settings: SettingsDep,
    once: OnceDep,
    caller: CallerDep,
) -> Response:
    """Ask for work on a data set; it goes on behind, whatever becomes of this process."""
    given = parse.envelope(JobIn, payload.json())
    _require_allowed(given, caller)
    once.require_new()
    asked, output = _checked(given, store, settings, caller)

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        if output is not None:
            claim(unit, output, caller)
        model, id, at = unit.models.get(given.model), uuid4().hex, now()
        unit.jobs.add(id, model.id, given.kind, asked.written(), at)
        services_of(request).jobs.queue(unit, id, at)
        shown = _shown(unit.jobs.get(id))
        return model.id, answer(shown, 202, {"Location": f"/v1/jobs/{id}"})

    try:
        return once.commit(work)
    except InvalidInput:
        # The job in the way may be this very one, asked for at the same moment.
        once.require_new()
        raise


@router.get(
    "",
    response_model=JobPage,
    responses=problems(404, 422, 503),
    dependencies=[only("model", "state", "cursor", "limit")],
)
def list_jobs(
    store: StoreDep,
    caller: CallerDep,
    model: Annotated[str | None, Query(pattern=NAME)] = None,
    state: State | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response:
    """Jobs, newest first."""
    with store.read() as unit:
        if model is not None:
            seen(caller, model)
            unit.models.get(model)
        page = unit.jobs.list(JobFilter(model, state, caller.models), before(cursor), limit)
    items = [_shown(record) for record in page.items]
    return answer(JobPage(items=items, next_cursor=encode_cursor(page.next)))


@router.get(
    "/{id}",
    responses={200: {"model": JobOut}, **problems(404, 422, 503)},
    dependencies=[only()],
)
def get_job(id: JobId, store: StoreDep, caller: CallerDep) -> Response:
    """A job, and how far it is."""
    with store.read() as unit:
        return answer(_shown(unit.jobs.get(identity(id, "job"), caller.models)))


@router.delete(
    "/{id}",
    status_code=202,
    responses={202: {"model": JobOut}, **problems(404, 409, 422, 503)},
    dependencies=[only()],
)
def cancel_job(id: JobId, store: StoreDep, caller: CallerDep, trail: TrailDep) -> Response:
    """Have a job end, within seconds; what it has written as files stays."""
    with store.write() as unit:
        job = unit.jobs.get(identity(id, "job"), caller.models)
        if job.over:
            raise StillInUse(f"the job is {job.state}; there is nothing to cancel")
        if unit.jobs.cancel(id, now()):
            unit.tasks.cancel(JOB, [id])
        trail.note(unit)
        return answer(_shown(unit.jobs.get(id)), 202)


@router.get(
    "/{id}/events",
    responses={200: {"content": {"text/event-stream": {}}}, **problems(404, 422, 429, 503)},
    dependencies=[only()],
)
def follow_job(
    id: JobId, request: Request, store: StoreDep, gate: GateDep, caller: CallerDep
) -> Response:
    """The job whenever it changes, as server-sent events, until it is over; ask again if not."""
    with store.read() as unit:
        unit.jobs.get(identity(id, "job"), caller.models)
    followers = services_of(request).followers
    if len(followers) >= MOST_FOLLOWERS:
        raise Busy(f"{MOST_FOLLOWERS} jobs are followed already; ask for the job now and then")
    headers = {"Cache-Control": "no-store"}
    credential, ending = request.scope["credential"], services_of(request).ending
    events = _events(store, id, followers, ending, lambda: gate.lets_in(credential))
    return StreamingResponse(events, 200, headers, "text/event-stream")


async def _events(
    store: Store, id: str, followers: set[object], ending: Event, lets_in: Callable[[], bool]
) -> AsyncIterator[str]:
    def look() -> JobRecord | None:
        if not lets_in():
            return None
        with store.read() as unit:
            return unit.jobs.get(id)

    mine, told, quiet, spent = object(), "", 0.0, 0.0
    followers.add(mine)
    try:
        while spent < FOLLOWED_SECONDS and not ending.is_set():
            job = await run_sync(look)
            if job is None:
                return
            content = json.dumps(_shown(job).model_dump(mode="json", by_alias=True))
            if content != told:
                told, quiet = content, 0.0
                yield f"event: {job.state}\ndata: {content}\n\n"
            elif quiet >= QUIET_SECONDS:
                quiet = 0.0
                yield ": no news\n\n"
            if job.over:
                return
            await asyncio.sleep(LOOK_SECONDS)
            quiet, spent = quiet + LOOK_SECONDS, spent + LOOK_SECONDS
    finally:
        followers.discard(mine)


def _require_allowed(given: JobIn, caller: Caller) -> None:
    seen(caller, given.model)
    if given.kind == "register" and not caller.may("register"):
        raise Forbidden("this key lacks the scope register, which registering needs")


def _checked(
    given: JobIn, store: Store, settings: Settings, caller: Caller
) -> tuple[StoredJobRequest, Output | None]:
    """What is kept of a request that could be carried out as things stand, and where it writes."""
    with store.read() as unit:
        model = unit.models.get(given.model)
    if model.kind != "classifier":
        raise OtherKind(f"{model.name} is no classifier; jobs are for classifiers")
    if given.kind == "register" and given.dataset.label is None:
        raise InvalidInput.at("/dataset/label", "is missing; name the column of true classes")
    dataset = given.dataset.asked(given.group_by)
    roots = _roots(given, settings, caller)
    resolved = resolve(roots, dataset, model.classes)
    number = None
    if given.kind != "register":
        number = _version(given, store)
    output = None
    if given.output is not None:
        output = Output.of(settings.output_root, given.output, "", "", resolved)
        output.require_apart(*roots.find(given.dataset.path, "/dataset/path"))
    request = given.model_dump(mode="json", exclude_unset=True)
    restricted = None if caller.roots is None else sorted(caller.roots)
    return StoredJobRequest(request=request, version=number, roots=restricted), output


def _roots(given: JobIn, settings: Settings, caller: Caller) -> Roots:
    """The data roots that are open to the caller; who has but some writes into a folder of his."""
    roots = Roots.of(settings.data_roots).only(caller.roots)
    if caller.roots is None:
        return roots
    if not roots.roots:
        message = "no data root is open to this key; an administrator makes one that names roots"
        raise Forbidden(message)
    if given.output is not None and not given.output.startswith(f"{given.model}/"):
        message = f"must begin with {given.model}/, below which this key writes for that model"
        raise InvalidInput.at("/output", message)
    return roots


def _version(given: JobIn, store: Store) -> int:
    selector = "latest" if given.version is None else str(given.version)
    record = store.version(given.model, selector if given.alias is None else f"@{given.alias}")
    if given.target_priors is not None:
        parse.stated_priors(given.target_priors, record.source.classes, "/target_priors")
    rows = SummedBatch(np.empty((0, len(record.source.classes))))
    choose(record.source, rows, given.method)
    return record.number


def _shown(job: JobRecord) -> JobOut:
    asked = StoredJobRequest.read(job.asked)
    result = StoredJobResult.read(job.result or {})
    version = asked.version if result.version is None else result.version
    return JobOut(
        id=job.id,
        kind=job.kind,
        model=job.model,
        state=job.state,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        asked=asked.request,
        progress=None if job.progress is None else ProgressOut.read(job.progress),
        **{**dict(result), "version": version},
    )
