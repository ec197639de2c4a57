"""Late truth: labels of a batch, or of the rows of a kept estimate."""

from typing import Annotated, Any
from uuid import uuid4

import numpy as np
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from app.clock import now
from app.core.arrays import Codes
from app.core.errors import InvalidInput
from app.estimation import PosteriorBatch, estimate
from app.estimation.evaluation import Evaluation, compare, evaluate
from app.formats import json
from app.http.audit_trail import CallerDep, seen
from app.http.body import Body, only
from app.http.dependencies import (
    Cursor,
    Limit,
    ModelName,
    Selector,
    StoreDep,
    answer,
    encode_cursor,
    problems,
)
from app.http.idempotency import OnceDep
from app.http.negotiation import require_json
from app.http.paging import before, identity
from app.intake import options, parse
from app.openapi import takes
from app.schemas import presenters
from app.schemas.base import WarningOut
from app.schemas.estimates import IntervalOut
from app.schemas.evaluations import EvaluationOut, EvaluationPage
from app.schemas.requests import NAME, EvaluationIn
from app.serving.classifiers import LearnersDep, Scoring
from app.serving.null_distributions import Nulls, NullsDep
from models_store.errors import NotFound
from models_store.evaluations import EvaluationFilter
from models_store.records import EstimateRecord, VersionRecord
from models_store.store import UnitOfWork

router = APIRouter(tags=["evaluations"])
Finding = tuple[Evaluation, str, IntervalOut | None, list[WarningOut]]
"""The evaluation; of the estimate the method, the interval and its warnings."""


@router.post(
    "/v1/models/{name}/versions/{version}/evaluations",
    status_code=201,
    responses={
        201: {"model": EvaluationOut},
        **problems(400, 404, 406, 409, 413, 415, 422, 503),
    },
    openapi_extra=takes(EvaluationIn),
)
def create_evaluation(
    name: ModelName,
    version: Selector,
    payload: Body,
    request: Request,
    once: OnceDep,
    store: StoreDep,
    nulls: NullsDep,
    learners: LearnersDep,
) -> Response:
    """Compare an estimate, and the posteriors before and after adjusting, with the truth."""
    require_json(request)
    content = payload.json()
    replayed = once.replay()
    if replayed is not None:
        return replayed
    given = parse.envelope(EvaluationIn, content)
    kept = None
    record = store.version(name, version)
    with store.read() as unit:
        if given.estimate is not None:
            kept = unit.estimates.get(given.estimate, once.trail.caller.models)
    labels = json.codes(given.labels, record.source.classes, "/labels")
    if kept is not None:
        found = _of_kept(record, kept, given, labels)
    else:
        found = _of_batch(record, given, labels, nulls, learners.of(record))
    shown = _shown(record, given.estimate, found)

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        content = shown.model_dump(mode="json")
        unit.evaluations.add(record.id, given.estimate, shown.created_at, content)
        location = {"Location": f"/v1/evaluations/{shown.id}"}
        return record.model_id, answer(content, 201, location)

    return once.commit(work)


@router.get(
    "/v1/evaluations",
    response_model=EvaluationPage,
    responses=problems(404, 422, 503),
    dependencies=[only("model", "version", "estimate", "cursor", "limit")],
)
def list_evaluations(
    store: StoreDep,
    caller: CallerDep,
    model: Annotated[str | None, Query(pattern=NAME)] = None,
    version: Annotated[int | None, Query(ge=1, le=999_999_999)] = None,
    estimate: Annotated[str | None, Query(pattern="^[0-9a-f]{32}$")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response:
    """Kept evaluations, newest first."""
    which = EvaluationFilter(model, version, estimate, caller.models)
    with store.read() as unit:
        if model is not None:
            seen(caller, model)
            unit.models.get(model)
        page = unit.evaluations.list(which, before(cursor), limit)
    items = [record.content for record in page.items]
    return answer({"items": items, "next_cursor": encode_cursor(page.next)})


@router.get(
    "/v1/evaluations/{id}",
    responses={200: {"model": EvaluationOut}, **problems(404, 422, 503)},
    dependencies=[only()],
)
def get_evaluation(id: Annotated[str, Path()], store: StoreDep, caller: CallerDep) -> Response:
    """A kept evaluation."""
    with store.read() as unit:
        record = unit.evaluations.get(identity(id, "evaluation"), caller.models)
        return answer(record.content)


def _of_kept(
    record: VersionRecord, kept: EstimateRecord, given: EvaluationIn, labels: Codes
) -> Finding:
    """From what was kept of an estimate: shares and intervals, no posteriors."""
    if (kept.model, kept.version) != (record.model, record.number):
        raise NotFound(f"estimate {kept.id} is of {kept.model} version {kept.version}")
    if any(getattr(given, name) is not None for name in parse.COUNTS):
        raise InvalidInput.at("/estimate", "names a kept batch; send labels alone, without rows")
    settled = ("columns", "method", "options", "interval")
    parse.leave_out(given, settled, "is of a batch; estimate names one that was estimated")
    content = kept.content
    if len(labels) != content["size"]:
        message = f"has {len(labels)} labels for the {content['size']} rows of the estimate"
        raise InvalidInput.at("/labels", message)

    def column(name: str) -> Any:
        values = [row[name] for row in content["prevalence"]]
        return None if None in values else np.array(values)

    lower, upper = column("lower"), column("upper")
    interval = None if lower is None or upper is None else (lower, upper)
    found = compare(column("estimate"), column("counted"), interval, labels)
    told = content.get("interval")
    shown = None if told is None else IntervalOut(**told)
    return found, content["method"], shown, [WarningOut(**w) for w in content["warnings"]]


def _of_batch(
    record: VersionRecord, given: EvaluationIn, labels: Codes, nulls: Nulls, scoring: Scoring
) -> Finding:
    """From the rows themselves, estimated now."""
    batch = parse.batch(given, record.source, scoring)
    if batch.size != len(labels):
        raise InvalidInput.at("/labels", f"has {len(labels)} labels for {batch.size} rows")
    rows = isinstance(batch, PosteriorBatch)
    asked = options.asked(given, record.source, scoring, batch, posteriors=rows)
    result = estimate(record.source, batch, asked, nulls.of(record))
    shown = presenters.interval(result.interval)
    said = presenters.warnings(result.warnings)
    return evaluate(batch, result, labels), result.method, shown, said


def _shown(record: VersionRecord, estimate_id: str | None, finding: Finding) -> EvaluationOut:
    names = record.source.classes
    found, method, interval, warnings = finding
    estimated = presenters.shares_error(found.estimate)
    assert estimated is not None
    return EvaluationOut(
        id=uuid4().hex,
        model=record.model,
        version=record.number,
        estimate_id=estimate_id,
        method=method,
        size=found.size,
        created_at=now(),
        truth=presenters.by_class(names, found.truth),
        counted=presenters.shares_error(found.counted),
        estimate=estimated,
        covered=None if found.covered is None else dict(zip(names, found.covered, strict=True)),
        interval=interval,
        before=presenters.quality(names, found.before),
        after=presenters.quality(names, found.after),
        warnings=warnings,
    )
