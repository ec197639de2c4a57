"""Batches: estimates and their history, adjusted posteriors, shift tests."""

import json as stdlib_json
import re
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Path, Query, Request
from pydantic import TypeAdapter, ValidationError
from starlette.responses import Response

from app.api import parse, present
from app.api.context import (
    Cursor,
    Limit,
    ModelName,
    Selector,
    StoreDep,
    answer,
    bad_cursor,
    decode_cursor,
    encode_cursor,
    now,
    problems,
)
from app.api.once import OnceDep
from app.api.openapi import takes_batch
from app.api.payload import Body, accepted, refuse_unknown
from app.api.problems import NotAcceptable
from app.api.schemas import (
    NAME,
    BatchIn,
    EstimateIn,
    EstimateOut,
    EstimatePage,
    PosteriorsIn,
    PosteriorsOut,
    SegmentKey,
    SegmentValue,
    ShiftTestIn,
    ShiftTestOut,
    Timestamp,
)
from app.api.wire import json, npy
from app.core.errors import InvalidInput
from app.core.prevalence.arrays import Floats
from app.core.warnings import Warning
from app.estimation import (
    EmOptions,
    Estimate,
    OutputBatch,
    ShiftOptions,
    adjust_batch,
    compare_priors,
    estimate,
)
from app.estimation import (
    Request as Asked,
)
from models_store.estimates import Filter
from models_store.records import VersionRecord
from models_store.store import UnitOfWork

router = APIRouter(tags=["estimates"])
VERSION = "/v1/models/{name}/versions/{version}"
BATCH_PROBLEMS = problems(400, 404, 409, 413, 415, 422, 503)


@router.post(
    f"{VERSION}/estimates",
    status_code=201,
    responses={
        200: {"model": EstimateOut, "description": "keep=false: nothing was kept"},
        201: {"model": EstimateOut},
        **BATCH_PROBLEMS,
    },
    openapi_extra=takes_batch(EstimateIn),
)
def create_estimate(
    name: ModelName,
    version: Selector,
    payload: Body,
    once: OnceDep,
    store: StoreDep,
    keep: bool = True,
) -> Response:
    """Estimate the class shares of the population that a batch comes from."""
    content, text = payload.batch(query=["keep"])
    given = parse.envelope(EstimateIn, content, text)
    replayed = once.replay() if keep else None
    if replayed is not None:
        return replayed
    with store.read() as unit:
        record = unit.versions.get(name, version)
    batch = parse.batch(given, record.source)
    result = estimate(record.source, batch, _asked(given))
    shown = _estimate(record, given, result, uuid4().hex if keep else None)
    if not keep:
        return answer(_with_arrays(shown, result))

    def work(unit: UnitOfWork) -> Response:
        moment = shown.observed_at or shown.created_at
        unit.estimates.add(record.id, moment, shown.created_at, shown.segment, present.body(shown))
        location = {"Location": f"/v1/estimates/{shown.id}"}
        return answer(_with_arrays(shown, result), 201, location)

    return once.commit(work)


@router.post(
    f"{VERSION}/posteriors",
    responses={
        200: {"model": PosteriorsOut, "content": {npy.MEDIA_TYPE: {}}},
        **problems(400, 404, 406, 409, 413, 415, 422, 503),
    },
    openapi_extra=takes_batch(PosteriorsIn),
)
def create_posteriors(
    name: ModelName, version: Selector, payload: Body, request: Request, store: StoreDep
) -> Response:
    """Adjust rows to stated target priors or, without them, to the estimate of these rows."""
    offered = (json.MEDIA_TYPE, npy.MEDIA_TYPE)
    media_type = accepted(request, offered)
    if not media_type:
        raise NotAcceptable(f"answers come as {' or '.join(offered)}")
    content, text = payload.batch()
    given = parse.envelope(PosteriorsIn, content, text)
    with store.read() as unit:
        record = unit.versions.get(name, version)
    source = record.source
    batch = parse.batch(given, source)
    target, said = parse.target_priors(given.target_priors, source.classes, text)
    rows = adjust_batch(source, batch, target, _asked(given))
    warnings = (*said, *rows.warnings)
    if media_type == npy.MEDIA_TYPE:
        target_priors = present.by_class(source.classes, rows.target_priors)
        return Response(
            npy.encode(rows.posteriors), 200, _headers(warnings, target_priors), npy.MEDIA_TYPE
        )
    bare_counts = isinstance(batch, OutputBatch) and batch.codes is None
    source_priors = source.output_priors if isinstance(batch, OutputBatch) else source.priors
    shown = PosteriorsOut(
        model=record.model,
        version=record.number,
        size=batch.size,
        columns=list(source.classes),
        outputs=list(source.outputs) if bare_counts else None,
        source_priors=present.by_class(source.classes, source_priors),
        target_priors=present.by_class(source.classes, rows.target_priors),
        warnings=present.warnings(warnings),
        posteriors=None,
    )
    return answer({**present.body(shown), "posteriors": rows.posteriors.tolist()})


@router.post(
    f"{VERSION}/shift-tests",
    responses={200: {"model": ShiftTestOut}, **BATCH_PROBLEMS},
    openapi_extra=takes_batch(ShiftTestIn),
)
def create_shift_test(
    name: ModelName, version: Selector, payload: Body, store: StoreDep
) -> Response:
    """Test whether the priors have shifted; nothing is kept."""
    content, text = payload.batch()
    given = parse.envelope(ShiftTestIn, content, text)
    with store.read() as unit:
        record = unit.versions.get(name, version)
    batch = parse.batch(given, record.source)
    asked = Asked(em=_em(given), shift=ShiftOptions(**given.shift.model_dump()))
    result = compare_priors(record.source, batch, asked)
    return answer(
        ShiftTestOut(
            model=record.model,
            version=record.number,
            size=result.size,
            shift=present.shift(result.shift),
            diagnostics=present.diagnostics(record.source.classes, result.diagnostics),
            warnings=present.warnings(result.warnings),
        )
    )


@router.get("/v1/estimates", response_model=EstimatePage, responses=problems(404, 422, 503))
def list_estimates(
    request: Request,
    store: StoreDep,
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
    segment = {k.removeprefix("segment."): v for k, v in query if k.startswith("segment.")}
    others = [(k, v) for k, v in query if not k.startswith("segment.")]
    refuse_unknown(others, ["model", "version", "since", "until", "cursor", "limit", "segment.KEY"])
    which = Filter(
        model=model,
        version=version,
        since=_checked(Timestamp, since, "/query/since"),
        until=_checked(Timestamp, until, "/query/until"),
        segment=_checked(dict[SegmentKey, SegmentValue], segment, "/query/segment"),
    )
    place = decode_cursor(cursor, 2)
    before = None
    if place is not None:
        if re.fullmatch("[0-9a-f]{32}", place[1]) is None:
            raise bad_cursor()
        before = (_checked(Timestamp, place[0], "/query/cursor"), place[1])
    with store.read() as unit:
        if model is not None:
            unit.models.get(model)
        page = unit.estimates.list(which, before, limit)
    items = [record.content for record in page.items]
    return answer({"items": items, "next_cursor": encode_cursor(page.next)})


@router.get(
    "/v1/estimates/{id}",
    responses={200: {"model": EstimateOut}, **problems(404, 503)},
)
def get_estimate(id: Annotated[str, Path()], store: StoreDep) -> Response:
    """A kept estimate."""
    with store.read() as unit:
        return answer(unit.estimates.get(id).content)


def _checked(shape: Any, value: Any, pointer: str) -> Any:
    if value is None:
        return None
    try:
        return TypeAdapter(shape).validate_python(value)
    except ValidationError as error:
        message = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise InvalidInput.at(pointer, message) from None


def _em(given: BatchIn) -> EmOptions:
    return EmOptions(given.options.tolerance, given.options.max_iterations)


def _asked(given: EstimateIn | PosteriorsIn) -> Asked:
    if isinstance(given, PosteriorsIn):
        return Asked(method=given.method, em=_em(given))
    return Asked(
        method=given.method,
        em=_em(given),
        shift=ShiftOptions(**given.shift.model_dump()),
        trace="trace" in given.include,
        posteriors="posteriors" in given.include,
    )


def _estimate(
    record: VersionRecord, given: EstimateIn, result: Estimate, id: str | None
) -> EstimateOut:
    names = record.source.classes
    said = list(result.warnings)
    if "interval" in given.model_fields_set:
        said.append(Warning("no-interval", "intervals are not computed by this release"))
    return EstimateOut(
        id=id,
        model=record.model,
        version=record.number,
        method=result.method,
        reason=result.reason,
        size=result.size,
        created_at=now(),
        observed_at=given.observed_at,
        segment=given.segment,
        prevalence=present.prevalence(names, result),
        adjustment=present.adjustment(names, result.adjustment),
        shift=None if result.shift is None else present.shift(result.shift),
        diagnostics=present.diagnostics(names, result.diagnostics),
        warnings=present.warnings(said),
    )


def _with_arrays(shown: EstimateOut, result: Estimate) -> dict[str, Any]:
    """The answer with the arrays that were included, which are not kept."""
    content = present.body(shown)
    arrays: dict[str, Floats | None] = {"posteriors": result.posteriors, "trace": result.trace}
    content.update({k: array.tolist() for k, array in arrays.items() if array is not None})
    return content


def _headers(warnings: tuple[Warning, ...], target_priors: dict[str, float]) -> dict[str, str]:
    """What a binary answer cannot hold: warning codes, the priors (ASCII JSON)."""
    return {
        "Priorshift-Warnings": ", ".join(warning.code for warning in warnings),
        "Priorshift-Target-Priors": stdlib_json.dumps(target_priors),
    }
