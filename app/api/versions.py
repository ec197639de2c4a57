"""Versions: immutable source models."""

from fastapi import APIRouter
from starlette.responses import Response

from app.clock import now
from app.core.errors import MethodUnavailable
from app.core.json_types import JsonObject
from app.http.body import Body, only
from app.http.dependencies import (
    Cursor,
    Limit,
    ModelName,
    Selector,
    ServicesDep,
    StoreDep,
    answer,
    bad_cursor,
    decode_cursor,
    encode_cursor,
    problems,
)
from app.http.idempotency import Once, OnceDep
from app.intake import parse
from app.kinds import registry as kinds
from app.kinds.registry import KINDS
from app.openapi import takes
from app.schemas import presenters
from app.schemas.models import OtherVersionOut, ScorecardOut, VersionOut, VersionPage
from app.schemas.requests import SourceIn, VersionIn
from app.serving.classifiers import Classifiers
from models_store.records import ModelRecord
from models_store.store import UnitOfWork

AnyVersion = VersionOut | OtherVersionOut
router = APIRouter(prefix="/v1/models/{name}/versions", tags=["versions"])


@router.get(
    "",
    responses={200: {"model": VersionPage}, **problems(404, 422, 503)},
    dependencies=[only("cursor", "limit")],
)
def list_versions(
    name: ModelName, store: StoreDep, cursor: Cursor = None, limit: Limit = 50
) -> Response:
    """Versions of a model, newest first."""
    place = decode_cursor(cursor, 1)
    if place is not None and not (place[0].isascii() and place[0].isdigit() and len(place[0]) < 10):
        raise bad_cursor()
    before = int(place[0]) if place else None
    with store.read() as unit:
        if unit.models.get(name).kind in KINDS:
            other = unit.sources.list(name, before, limit)
            found = [kinds.version(record) for record in other.items]
            return answer({"items": found, "next_cursor": encode_cursor(other.next)})
        page = unit.versions.list(name, before, limit)
    items = [presenters.version(record) for record in page.items]
    return answer(VersionPage(items=items, next_cursor=encode_cursor(page.next)))


@router.post(
    "",
    status_code=201,
    responses={
        200: {"model": AnyVersion, "description": "The same content was registered before"},
        201: {"model": AnyVersion},
        **problems(400, 404, 409, 413, 415, 422, 503),
    },
    openapi_extra=takes(VersionIn, SourceIn),
)
def create_version(
    name: ModelName, payload: Body, once: OnceDep, services: ServicesDep
) -> Response:
    """Register a source as the next version; the same content again is not a new version.

    The body is ``{"source": {…}}``, or the source itself.
    """
    content = payload.json()
    once.require_new()
    classifiers = services.classifiers
    with services.store.read() as unit:
        model = unit.models.get(name)
    if model.kind in KINDS:
        return _create_other(model, content, once, classifiers)
    return _create_classifier(model, content, once, classifiers)


def _create_classifier(
    model: ModelRecord, content: dict[str, object], once: Once, classifiers: Classifiers
) -> Response:
    name = model.name
    if "source" in content:
        given, at = parse.envelope(VersionIn, content).source, "/source"
    else:
        given, at = parse.envelope(SourceIn, content), ""
    prepared = classifiers.prepare(given, model.classes, at, name)

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        record, new = unit.versions.register(name, prepared, given.metadata, now())
        location = {"Location": f"/v1/models/{name}/versions/{record.number}"}
        return record.model_id, answer(presenters.version(record), 201 if new else 200, location)

    return once.commit(work)


def _create_other(
    model: ModelRecord, content: JsonObject, once: Once, classifiers: Classifiers
) -> Response:
    """The same for a model that is no classifier."""
    source, at = (content["source"], "/source") if set(content) == {"source"} else (content, "")
    kind = KINDS[model.kind]
    prepared = kind.prepare(source, model.classes, at, classifiers.trainer)

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        record, new = unit.sources.register(model.name, *prepared, now())
        location = {"Location": f"/v1/models/{model.name}/versions/{record.number}"}
        return record.model_id, answer(kinds.version(record), 201 if new else 200, location)

    return once.commit(work)


@router.get(
    "/{version}",
    responses={200: {"model": AnyVersion}, **problems(404, 422, 503)},
    dependencies=[only()],
)
def get_version(name: ModelName, version: Selector, store: StoreDep) -> Response:
    """A version: what it knows, its calibration, its methods; of a tree, what it is."""
    with store.read() as unit:
        if unit.models.get(name).kind in KINDS:
            return answer(kinds.version(unit.sources.get(name, version)))
        return answer(presenters.version(unit.versions.get(name, version)))


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
    return presenters.scorecard(record, card)
