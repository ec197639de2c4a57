"""Estimates and their history."""

from dataclasses import dataclass
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from app.clock import now
from app.core.arrays import Floats
from app.core.json_types import JsonObject
from app.engines.engine import MOST_GROUPS
from app.estimation import Batch, Estimate, estimate
from app.http.audit_trail import CallerDep, seen
from app.http.body import only, refuse_unknown
from app.http.dependencies import (
    Cursor,
    Limit,
    StoreDep,
    answer,
    encode_cursor,
    problems,
)
from app.http.idempotency import Once
from app.http.paging import before, identity
from app.http.submission import Submission, SubmitOnce
from app.intake import groups
from app.openapi import takes_batch
from app.schemas import presenters
from app.schemas.estimates import EstimateOut, EstimatePage, GroupOut, GroupsOut
from app.schemas.requests import NAME, EstimateIn, KeptSegment, SegmentKey, Timestamp
from app.schemas.validation import checked
from app.stored.estimates import StoredEstimate
from models_store.estimates import Filter
from models_store.store import UnitOfWork

router = APIRouter(tags=["estimates"])
VERSION = "/v1/models/{name}/versions/{version}"
GROUPED = f"Column of groups, in a table of rows; {MOST_GROUPS:,} groups at most"


@router.post(
    f"{VERSION}/estimates",
    status_code=201,
    responses={
        200: {"model": EstimateOut | GroupsOut, "description": "keep=false: nothing was kept"},
        201: {"model": EstimateOut | GroupsOut},
        **problems(400, 404, 406, 409, 413, 415, 422, 503),
    },
    openapi_extra=takes_batch(EstimateIn),
)
def create_estimate(
    submit: SubmitOnce,
    keep: bool = True,
    group_by: Annotated[str | None, Query(max_length=63, description=GROUPED)] = None,
) -> Response:
    """Estimate the class shares of the population that a batch comes from.

    With ``group_by``, of each group of its rows, with Holm's p-values over the groups.
    """
    submission = submit.batch(EstimateIn, ["keep", "group_by"], replay=keep)
    maker = _Maker(submission, submit.once if keep else None)
    return maker.one() if group_by is None else maker.groups(group_by)


@dataclass(frozen=True)
class _Maker:
    """Makes the estimates of one request, and keeps them all or none; ``once`` None: none."""

    submission: Submission[EstimateIn]
    once: Once | None

    def one(self) -> Response:
        """Of the whole batch."""
        result, shown = self._make(self.submission.batch, {})
        like = self.submission.body.posteriors
        content = _with_arrays(shown, result, self.submission.classes, like)
        return self._kept([shown], content, {"Location": f"/v1/estimates/{shown.id}"})

    def groups(self, column: str) -> Response:
        """Of each group of rows."""
        estimates = []
        for group in groups.parts(self.submission.body, self.submission.frame, column):
            with group.placed():
                batch = self.submission.batch_of(group.frame)
                estimates.append((group.name, *self._make(batch, {column: group.name})))
        adjusted = groups.adjusted([result for _, result, _ in estimates])
        items = [
            GroupOut(group=name, holm_p_value=p, estimate=shown)
            for (name, _, shown), p in zip(estimates, adjusted, strict=True)
        ]
        content = {
            "group_by": column,
            "items": [{**vars(item), "estimate": presenters.body(item.estimate)} for item in items],
        }
        return self._kept([item.estimate for item in items], content, {})

    def _make(self, batch: Batch, segment: dict[str, str]) -> tuple[Estimate, EstimateOut]:
        submission, record = self.submission, self.submission.record
        request = submission.request(batch)
        with submission.services.metrics.estimating(record.model, record.number) as method:
            result = estimate(record.source, batch, request, submission.rows)
            method.append(result.method)
        id = None if self.once is None else uuid4().hex
        labels = {**submission.body.segment, **segment}
        observed_at = submission.body.observed_at
        return result, presenters.estimate(record, result, id, observed_at, labels, now())

    def _kept(
        self, estimates: list[EstimateOut], content: JsonObject, headers: dict[str, str]
    ) -> Response:
        """The answer, given when its estimates are written."""
        if self.once is None:
            return answer(content)
        record = self.submission.record

        def work(unit: UnitOfWork) -> tuple[int, Response]:
            for shown in estimates:
                kept = presenters.stored_estimate(shown)
                body = kept.written()
                unit.estimates.add(record.id, kept.moment, kept.created_at, kept.segment, body)
            return record.model_id, answer(content, 201, headers)

        return self.once.commit(work)


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
        segment=checked(dict[SegmentKey, KeptSegment], segment, "/query/segment"),
        models=caller.models,
    )
    with store.read() as unit:
        if model is not None:
            seen(caller, model)
            unit.models.get(model)
        page = unit.estimates.list(which, before(cursor), limit)
    kept = [StoredEstimate.read(record.content) for record in page.items]
    items = [presenters.kept_estimate(estimate) for estimate in kept]
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
    return answer(presenters.kept_estimate(StoredEstimate.read(record.content)))


def _with_arrays(
    shown: EstimateOut, result: Estimate, names: tuple[str, ...], like: object
) -> dict[str, object]:
    """The answer with the arrays that were included, whether or not they are kept."""
    content = presenters.body(shown)
    arrays: dict[str, Floats | None] = {
        "trace": result.trace,
        "weighted_precision": result.weighted_precision,
    }
    content.update({k: array for k, array in arrays.items() if array is not None})
    if result.posteriors is not None:
        content["posteriors"] = presenters.rows(names, result.posteriors, like)
    return content
