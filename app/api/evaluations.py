"""Late truth: labels of a batch, or of the rows of a kept estimate."""

from collections.abc import Iterable, Sequence
from typing import Annotated
from uuid import uuid4

import numpy as np
from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from app.access.callers import Caller
from app.clock import now
from app.core.arrays import Codes, Floats
from app.core.errors import InvalidInput
from app.estimation import PosteriorBatch, estimate
from app.estimation.evaluation import Evaluation, compare, evaluate
from app.formats import json
from app.http.audit_trail import CallerDep, seen
from app.http.body import only
from app.http.dependencies import (
    Cursor,
    Limit,
    StoreDep,
    answer,
    encode_cursor,
    problems,
)
from app.http.paging import before, identity
from app.http.submission import Submission, SubmitOnce
from app.intake import parse
from app.openapi import takes
from app.schemas import presenters
from app.schemas.base import WarningOut
from app.schemas.estimates import IntervalOut
from app.schemas.evaluations import EvaluationOut, EvaluationPage
from app.schemas.requests import NAME, EvaluationIn
from app.stored.document import StoredWarning
from app.stored.estimates import StoredEstimate, StoredInterval
from app.stored.evaluations import StoredEvaluation
from models_store.errors import NotFound
from models_store.evaluations import EvaluationFilter
from models_store.records import EstimateRecord, VersionRecord
from models_store.store import UnitOfWork

router = APIRouter(tags=["evaluations"])
Finding = tuple[Evaluation, str, StoredInterval | None, Sequence[StoredWarning]]
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
def create_evaluation(submit: SubmitOnce) -> Response:
    """Compare an estimate, and the posteriors before and after adjusting, with the truth."""
    submission = submit.json(EvaluationIn)
    assert submit.once is not None
    record, estimate_id = submission.record, submission.body.estimate
    kept = _kept_estimate(submission, submit.once.trail.caller)
    labels = json.codes(submission.body.labels, submission.classes, "/labels")
    finding = _of_batch(submission, labels) if kept is None else _of_kept(submission, kept, labels)
    shown = _shown(record, estimate_id, finding)

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        content = presenters.stored_evaluation(shown).written()
        unit.evaluations.add(record.id, estimate_id, shown.created_at, content)
        location = {"Location": f"/v1/evaluations/{shown.id}"}
        return record.model_id, answer(shown, 201, location)

    return submit.once.commit(work)


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
    kept = [StoredEvaluation.read(record.content) for record in page.items]
    items = [presenters.kept_evaluation(evaluation) for evaluation in kept]
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
    return answer(presenters.kept_evaluation(StoredEvaluation.read(record.content)))


def _kept_estimate(submission: Submission[EvaluationIn], caller: Caller) -> EstimateRecord | None:
    """The estimate that the labels are of, where they are of one that was kept."""
    if submission.body.estimate is None:
        return None
    with submission.services.store.read() as unit:
        return unit.estimates.get(submission.body.estimate, caller.models)


def _of_kept(submission: Submission[EvaluationIn], kept: EstimateRecord, labels: Codes) -> Finding:
    """From what was kept of an estimate: shares and intervals, no posteriors."""
    record, given = submission.record, submission.body
    if (kept.model, kept.version) != (record.model, record.number):
        raise NotFound(f"estimate {kept.id} is of {kept.model} version {kept.version}")
    if any(getattr(given, name) is not None for name in parse.COUNTS):
        raise InvalidInput.at("/estimate", "names a kept batch; send labels alone, without rows")
    settled = ("columns", "method", "options", "interval")
    parse.leave_out(given, settled, "is of a batch; estimate names one that was estimated")
    stored = StoredEstimate.read(kept.content)
    if len(labels) != stored.size:
        message = f"has {len(labels)} labels for the {stored.size} rows of the estimate"
        raise InvalidInput.at("/labels", message)
    rows = stored.prevalence
    lower, upper = _vector(row.lower for row in rows), _vector(row.upper for row in rows)
    interval = None if lower is None or upper is None else (lower, upper)
    shares = np.array([row.estimate for row in rows])
    found = compare(shares, _vector(row.counted for row in rows), interval, labels)
    return found, stored.method, stored.interval, stored.warnings


def _vector(values: Iterable[float | None]) -> Floats | None:
    """None where a class has no value."""
    known = list(values)
    return None if None in known else np.array(known)


def _of_batch(submission: Submission[EvaluationIn], labels: Codes) -> Finding:
    """From the rows themselves, estimated now."""
    batch = submission.batch
    if batch.size != len(labels):
        raise InvalidInput.at("/labels", f"has {len(labels)} labels for {batch.size} rows")
    request = submission.request(batch, posteriors=isinstance(batch, PosteriorBatch))
    result = estimate(submission.source, batch, request, submission.rows)
    interval = presenters.interval(result.interval)
    warnings = presenters.stored_warnings(result.warnings)
    return evaluate(batch, result, labels), result.method, interval, warnings


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
        interval=None if interval is None else IntervalOut(**vars(interval)),
        before=presenters.quality(names, found.before),
        after=presenters.quality(names, found.after),
        warnings=[WarningOut(code=w.code, message=w.message) for w in warnings],
    )
