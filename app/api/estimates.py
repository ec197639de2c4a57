"""Estimates and their history."""

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from app.clock import now
from app.core.arrays import Floats
from app.engines.engine import MOST_GROUPS
from app.estimation import Estimate, SourceRows, estimate
from app.formats.frame import Frame
from app.http.audit_trail import CallerDep, seen
from app.http.body import Body, Sent, only, refuse_unknown
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
from app.http.idempotency import Once, OnceDep
from app.http.negotiation import require_json
from app.http.paging import before, identity
from app.intake import groups, options, parse
from app.metrics import Metrics
from app.openapi import takes_batch
from app.schemas import presenters
from app.schemas.estimates import EstimateOut, EstimatePage, GroupOut, GroupsOut
from app.schemas.requests import NAME, EstimateIn, KeptSegment, SegmentKey, Timestamp
from app.schemas.validation import checked
from app.serving.classifiers import LearnersDep, Scoring
from app.serving.null_distributions import NullsDep
from models_store.estimates import Filter
from models_store.records import VersionRecord
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
    name: ModelName,
    version: Selector,
    payload: Body,
    request: Request,
    once: OnceDep,
    store: StoreDep,
    nulls: NullsDep,
    learners: LearnersDep,
    keep: bool = True,
    group_by: Annotated[str | None, Query(max_length=63, description=GROUPED)] = None,
) -> Response:
    """Estimate the class shares of the population that a batch comes from.

    With ``group_by``, of each group of its rows, with Holm's p-values over the groups.
    """
    require_json(request)
    sent = payload.batch(query=["keep", "group_by"])
    replayed = once.replay() if keep else None
    if replayed is not None:
        return replayed
    given = parse.envelope(EstimateIn, sent.content, sent.text)
    record = store.version(name, version)
    metrics: Metrics = request.app.state.metrics
    maker = _Maker(given, record, nulls.of(record), learners.of(record), keep, metrics)
    if group_by is not None:
        return _grouped(maker, sent, group_by, once)
    result, shown = maker.make(sent.frame)
    full = _with_arrays(shown, result, record.source.classes, given.posteriors)
    if not keep:
        return answer(full)

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        maker.write(unit, shown)
        location = {"Location": f"/v1/estimates/{shown.id}"}
        return record.model_id, answer(full, 201, location)

    return once.commit(work)


@dataclass(frozen=True)
class _Maker:
    """Makes and writes estimates of one request under one version."""

    given: EstimateIn
    record: VersionRecord
    rows: SourceRows
    scoring: Scoring
    keep: bool
    metrics: Metrics

    def make(
        self, frame: Frame | None, segment: dict[str, str] | None = None
    ) -> tuple[Estimate, EstimateOut]:
        """Of the request's batch, or of these rows of it under this segment."""
        given, source = self.given, self.record.source
        batch = parse.batch(given, source, self.scoring, frame)
        asked = options.asked(given, source, self.scoring, batch)
        with self.metrics.estimating(self.record.model, self.record.number) as method:
            result = estimate(source, batch, asked, self.rows)
            method.append(result.method)
        id = uuid4().hex if self.keep else None
        labels = {**given.segment, **(segment or {})}
        shown = presenters.estimate(self.record, result, id, given.observed_at, labels, now())
        return result, shown

    def write(self, unit: UnitOfWork, shown: EstimateOut) -> None:
        """Keep one."""
        moment = shown.observed_at or shown.created_at
        content = presenters.body(shown)
        unit.estimates.add(self.record.id, moment, shown.created_at, shown.segment, content)


def _grouped(maker: _Maker, sent: Sent, column: str, once: Once) -> Response:
    """One estimate for each group, all of them kept or none."""
    found = []
    for group in groups.parts(maker.given, sent.frame, column):
        with group.placed():
            found.append((group.name, *maker.make(group.frame, {column: group.name})))
    adjusted = groups.adjusted([result for _, result, _ in found])
    items = [
        GroupOut(group=name, holm_p_value=p, estimate=shown)
        for (name, _, shown), p in zip(found, adjusted, strict=True)
    ]
    content = {
        "group_by": column,
        "items": [{**vars(item), "estimate": presenters.body(item.estimate)} for item in items],
    }
    if not maker.keep:
        return answer(content)

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        for item in items:
            maker.write(unit, item.estimate)
        return maker.record.model_id, answer(content, 201)

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
        segment=checked(dict[SegmentKey, KeptSegment], segment, "/query/segment"),
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


def _with_arrays(
    shown: EstimateOut, result: Estimate, names: tuple[str, ...], like: Any
) -> dict[str, Any]:
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
