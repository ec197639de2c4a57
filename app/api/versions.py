"""Versions: immutable source models."""

from fastapi import APIRouter
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
from app.api.learners import LearnersDep
from app.api.once import OnceDep
from app.api.openapi import takes
from app.api.payload import Body, only
from app.api.requests import SourceIn, VersionIn
from app.api.responses import ScorecardOut, VersionOut, VersionPage
from app.core.errors import MethodUnavailable
from models_store.store import UnitOfWork

router = APIRouter(prefix="/v1/models/{name}/versions", tags=["versions"])


@router.get(
    "",
    response_model=VersionPage,
    responses=problems(404, 422, 503),
    dependencies=[only("cursor", "limit")],
)
def list_versions(
    name: ModelName, store: StoreDep, cursor: Cursor = None, limit: Limit = 50
) -> VersionPage:
    """Versions of a model, newest first."""
    place = decode_cursor(cursor, 1)
    if place is not None and not (place[0].isascii() and place[0].isdigit() and len(place[0]) < 10):
        raise bad_cursor()
    with store.read() as unit:
        page = unit.versions.list(name, int(place[0]) if place else None, limit)
    items = [present.version(record) for record in page.items]
    return VersionPage(items=items, next_cursor=encode_cursor(page.next))


@router.post(
    "",
    status_code=201,
    responses={
        200: {"model": VersionOut, "description": "The same content was registered before"},
        201: {"model": VersionOut},
        **problems(400, 404, 409, 413, 415, 422, 503),
    },
    openapi_extra=takes(VersionIn, SourceIn),
)
def create_version(
    name: ModelName, payload: Body, once: OnceDep, store: StoreDep, learners: LearnersDep
) -> Response:
    """Register a source as the next version; the same content again is not a new version.

    The body is ``{"source": {…}}``, or the source itself.
    """
    content = payload.json()
    replayed = once.replay()
    if replayed is not None:
        return replayed
    if "source" in content:
        given, at = parse.envelope(VersionIn, content).source, "/source"
    else:
        given, at = parse.envelope(SourceIn, content), ""
    with store.read() as unit:
        model = unit.models.get(name)
    prepared = learners.prepare(given, model.classes, at, name)

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        record, new = unit.versions.register(name, prepared, given.metadata, now())
        location = {"Location": f"/v1/models/{name}/versions/{record.number}"}
        return record.model_id, answer(present.version(record), 201 if new else 200, location)

    return once.commit(work)


@router.get(
    "/{version}",
    response_model=VersionOut,
    responses=problems(404, 422, 503),
    dependencies=[only()],
)
def get_version(name: ModelName, version: Selector, store: StoreDep) -> VersionOut:
    """A version: what it knows, its calibration, its methods."""
    with store.read() as unit:
        return present.version(unit.versions.get(name, version))


@router.get(
    "/{version}/scorecard",
    response_model=ScorecardOut,
    responses=problems(404, 409, 422, 503),
    dependencies=[only()],
)
def get_scorecard(name: ModelName, version: Selector, store: StoreDep) -> ScorecardOut:
    """What each method was worth on the version's own validation rows."""
    with store.read() as unit:
        record = unit.versions.get(name, version)
    card = record.source.scorecard
    if card is None:
        reason = "it takes a validation set of some size; register one"
        raise MethodUnavailable("a scorecard", reason)
    return present.scorecard(record, card)
