"""Estimates and their history."""

from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from app.api import parse, present
from app.api.context import (
    Cursor,
    Limit,
    ModelName,
    Selector,
    StoreDep,
    answer,
    encode_cursor,
    now,
    problems,
)
from app.api.history import before, checked, identity
from app.api.learners import LearnersDep
from app.api.nulls import NullsDep
from app.api.once import OnceDep
from app.api.openapi import takes_batch
from app.api.payload import Body, only, refuse_unknown, require_json
from app.api.requests import NAME, EstimateIn, SegmentKey, SegmentValue, Timestamp
from app.api.responses import EstimateOut, EstimatePage
from app.api.trail import CallerDep, seen
from app.core.prevalence.arrays import Floats
from app.estimation import (
    Estimate,
    IntervalOptions,
    ShiftOptions,
    estimate,
)
from app.estimation import Request as Asked
from app.estimation.request import Refit
from models_store.estimates import Filter
from models_store.records import VersionRecord
from models_store.store import UnitOfWork

router = APIRouter(tags=["estimates"])
VERSION = "/v1/models/{name}/versions/{version}"


@router.post(
    f"{VERSION}/estimates",
    status_code=201,
    responses={
        200: {"model": EstimateOut, "description": "keep=false: nothing was kept"},
        201: {"model": EstimateOut},
        **problems(400, 404, 406, 409, 413, 415, 422, 503),
    },
    openapi_extra=takes_batch(EstimateIn),
)
def create_estimate(
    name: ModelName,
    version: Selector,
    payload: Body,
    request: Request,
    once: OnceDep,
    store: StoreDep,
    nulls: NullsDep,
    learners: LearnersDep,
    keep: bool = True,
) -> Response:
    """Estimate the class shares of the population that a batch comes from."""
    require_json(request)
    sent = payload.batch(query=["keep"])
    replayed = once.replay() if keep else None
    if replayed is not None:
        return replayed
    given = parse.envelope(EstimateIn, sent.content, sent.text)
    with store.read() as unit:
        record = unit.versions.get(name, version)
    batch = parse.batch(given, record.source, learners.of(record), sent.frame)
    refit = learners.of(record).refit(given.method, given.options, batch)
    asked = _asked(given, record.source.classes, refit)
    result = estimate(record.source, batch, asked, nulls.of(record))
    shown = _estimate(record, given, result, uuid4().hex if keep else None)
    full = _with_arrays(shown, result, record.source.classes, given.posteriors)
    if not keep:
        return answer(full)

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        moment = shown.observed_at or shown.created_at
        unit.estimates.add(record.id, moment, shown.created_at, shown.segment, present.body(shown))
        location = {"Location": f"/v1/estimates/{shown.id}"}
        return record.model_id, answer(full, 201, location)

    return once.commit(work)


@router.get("/v1/estimates", response_model=EstimatePage, responses=problems(404, 422, 503))
def list_estimates(
    request: Request,
    store: StoreDep,
    caller: CallerDep,
    model: Annotated[str | None, Query(pattern=NAME)] = None,
    version: Annotated[int | None, Query(ge=1, le=999_999_999)] = None,
    since: Annotated[str | None, Query(description="Earliest observed_at, inclusive")] = None,
    until: Annotated[str | None, Query(description="Latest observed_at, exclusive")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response:
    """Kept estimates, newest ``observed_at`` (else ``created_at``) first.

    Segments filter by ``segment.KEY=value``.
    """
    query = request.query_params.multi_items()
    refuse_unknown([(k, v) for k, v in query if k.startswith("segment.")], [k for k, _ in query])
    segment = {k.removeprefix("segment."): v for k, v in query if k.startswith("segment.")}
    others = [(k, v) for k, v in query if not k.startswith("segment.")]
    refuse_unknown(others, ["model", "version", "since", "until", "cursor", "limit", "segment.KEY"])
    which = Filter(
        model=model,
        version=version,
        since=checked(Timestamp, since, "/query/since"),
        until=checked(Timestamp, until, "/query/until"),
        segment=checked(dict[SegmentKey, SegmentValue], segment, "/query/segment"),
        models=caller.models,
    )
    with store.read() as unit:
        if model is not None:
            seen(caller, model)
            unit.models.get(model)
        page = unit.estimates.list(which, before(cursor), limit)
    items = [record.content for record in page.items]
    return answer({"items": items, "next_cursor": encode_cursor(page.next)})


@router.get(
    "/v1/estimates/{id}",
    responses={200: {"model": EstimateOut}, **problems(404, 422, 503)},
    dependencies=[only()],
)
def get_estimate(id: Annotated[str, Path()], store: StoreDep, caller: CallerDep) -> Response:
    """A kept estimate."""
    with store.read() as unit:
        record = unit.estimates.get(identity(id, "estimate"), caller.models)
        return answer(record.content)


def _asked(given: EstimateIn, names: tuple[str, ...], refit: Refit | None) -> Asked:
    return Asked(
        method=given.method,
        em=parse.em_options(given.options),
        bayes=parse.bayes_options(given.options, names),
        shift=ShiftOptions(**given.shift.model_dump()),
        interval=IntervalOptions(**given.interval.model_dump()),
        trace="trace" in given.include,
        posteriors="posteriors" in given.include,
        refit=refit,
    )


def _estimate(
    record: VersionRecord, given: EstimateIn, result: Estimate, id: str | None
) -> EstimateOut:
    names = record.source.classes
    return EstimateOut(
        id=id,
        model=record.model,
        version=record.number,
        method=result.method,
        reason=result.reason,
        size=result.size,
        labelled=result.labelled,
        created_at=now(),
        observed_at=given.observed_at,
        segment=given.segment,
        prevalence=present.prevalence(names, result),
        interval=present.interval(result.interval),
        adjustment=present.adjustment(names, result.adjustment),
        shift=None if result.shift is None else present.shift(result.shift, record.source),
        diagnostics=present.diagnostics(names, result.diagnostics),
        warnings=present.warnings(result.warnings),
    )


def _with_arrays(
    shown: EstimateOut, result: Estimate, names: tuple[str, ...], like: Any
) -> dict[str, Any]:
    """The answer with the arrays that were included, which are not kept."""
    content = present.body(shown)
    arrays: dict[str, Floats | None] = {
        "trace": result.trace,
        "weighted_precision": result.weighted_precision,
    }
    content.update({k: array for k, array in arrays.items() if array is not None})
    if result.posteriors is not None:
        content["posteriors"] = present.rows(names, result.posteriors, like)
    return content
