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
from app.api.once import OnceDep
from app.api.openapi import takes
from app.api.payload import Body
from app.api.schemas import VersionIn, VersionOut, VersionPage
from app.core.prevalence.source import derive
from models_store.store import UnitOfWork

router = APIRouter(prefix="/v1/models/{name}/versions", tags=["versions"])


@router.get("", response_model=VersionPage, responses=problems(404, 422, 503))
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
    openapi_extra=takes(VersionIn),
)
def create_version(name: ModelName, payload: Body, once: OnceDep, store: StoreDep) -> Response:
    """Register a source as the next version; the same content again is not a new version."""
    content = payload.json()
    given = parse.envelope(VersionIn, content if "source" in content else {"source": content})
    with store.read() as unit:
        names = unit.models.get(name).classes
    source = parse.source(given.source, names)
    derived = derive(source)
    replayed = once.replay()
    if replayed is not None:
        return replayed

    def work(unit: UnitOfWork) -> Response:
        record, new = unit.versions.register(name, source, derived, given.source.metadata, now())
        location = {"Location": f"/v1/models/{name}/versions/{record.number}"}
        return answer(present.version(record), 201 if new else 200, location)

    return once.commit(work)


@router.get("/{version}", response_model=VersionOut, responses=problems(404, 503))
def get_version(name: ModelName, version: Selector, store: StoreDep) -> VersionOut:
    """A version: what it knows, its calibration, its methods."""
    with store.read() as unit:
        return present.version(unit.versions.get(name, version))
