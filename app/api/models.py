"""Models and their aliases."""

import re
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from app.clock import now
from app.core.errors import InvalidInput
from app.http.audit_trail import CallerDep, TrailDep
from app.http.body import Body, only
from app.http.dependencies import (
    Cursor,
    Limit,
    ModelName,
    ServicesDep,
    StoreDep,
    answer,
    bad_cursor,
    decode_cursor,
    encode_cursor,
    problems,
)
from app.http.idempotency import Once, OnceDep
from app.http.problems import Forbidden
from app.intake import parse
from app.kinds import registry as kinds
from app.kinds.registry import KINDS
from app.openapi import takes
from app.schemas import presenters
from app.schemas.models import AliasOut, ModelOut, ModelPage
from app.schemas.requests import NAME, AliasIn, ModelIn, ModelPatch, OtherModelIn
from app.services import Services
from models_store.errors import AlreadyExists, NotFound
from models_store.store import Store, UnitOfWork

router = APIRouter(prefix="/v1/models", tags=["models"])


@router.get(
    "",
    response_model=ModelPage,
    responses=problems(422, 503),
    dependencies=[only("cursor", "limit")],
)
def list_models(
    store: StoreDep, caller: CallerDep, cursor: Cursor = None, limit: Limit = 50
) -> ModelPage:
    """Models by name."""
    place = decode_cursor(cursor, 1)
    if place is not None and re.fullmatch(NAME, place[0]) is None:
        raise bad_cursor()
    with store.read() as unit:
        page = unit.models.list(place[0] if place else None, limit, caller.models)
        items = [presenters.model(record, unit.aliases.of(record.name)) for record in page.items]
    return ModelPage(items=items, next_cursor=encode_cursor(page.next))


@router.post(
    "",
    status_code=201,
    responses={201: {"model": ModelOut}, **problems(400, 409, 413, 415, 422, 503)},
    openapi_extra=takes(ModelIn, OtherModelIn),
)
def create_model(payload: Body, once: OnceDep, services: ServicesDep) -> Response:
    """Register a model; with ``source``, its version 1 in the same step."""
    content = payload.json()
    once.require_new()
    if str(content.get("kind")) in KINDS:
        return _create_other(content, once, services)
    return _create_classifier(content, once, services)


def _create_classifier(content: dict[str, object], once: Once, services: Services) -> Response:
    given = parse.envelope(ModelIn, content)
    _require_seen(once, given.name)
    names = parse.classes(given.classes, services.settings.max_classes)
    prepared = None
    if given.source is not None:
        if given.source.training is not None:
            _require_free(services.store, given.name)
        prepared = services.classifiers.prepare(given.source, names, "/source")

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        model = unit.models.create(given.name, given.kind, names, given.description, now())
        version = None
        if prepared is not None and given.source is not None:
            record, _ = unit.versions.register(given.name, prepared, given.source.metadata, now())
            version = presenters.version(record)
        shown = presenters.model(unit.models.get(given.name), [])
        shown.version = version
        return model.id, answer(shown, 201, {"Location": f"/v1/models/{given.name}"})

    return once.commit(work)


def _create_other(content: dict[str, object], once: Once, services: Services) -> Response:
    """The same for a model that is no classifier."""
    given = parse.envelope(OtherModelIn, content)
    _require_seen(once, given.name)
    kind = KINDS[given.kind]
    if kind.classes != (given.classes is not None):
        message = "is missing" if kind.classes else f"do not belong to a {given.kind}"
        raise InvalidInput.at("/classes", message)
    names = parse.classes(given.classes or [], services.settings.max_classes)
    prepared = None
    if given.source is not None:
        _require_free(services.store, given.name)
        prepared = kind.prepare(given.source, names, "/source", services.classifiers.trainer)

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        model = unit.models.create(given.name, given.kind, names, given.description, now())
        version = None
        if prepared is not None:
            record, _ = unit.sources.register(given.name, *prepared, now())
            version = kinds.version(record)
        shown = presenters.body(presenters.model(unit.models.get(given.name), []))
        location = {"Location": f"/v1/models/{given.name}"}
        return model.id, answer({**shown, "version": version}, 201, location)

    return once.commit(work)


def _require_seen(once: Once, name: str) -> None:
    if not once.trail.caller.sees(name):
        raise Forbidden(f"this key is restricted to other models than {name}")


@router.get(
    "/{name}",
    response_model=ModelOut,
    responses=problems(404, 422, 503),
    dependencies=[only()],
)
def get_model(name: ModelName, store: StoreDep) -> ModelOut:
    """A model with its aliases."""
    with store.read() as unit:
        return presenters.model(unit.models.get(name), unit.aliases.of(name))


@router.patch(
    "/{name}",
    responses={200: {"model": ModelOut}, **problems(400, 404, 409, 413, 415, 422, 503)},
    openapi_extra=takes(ModelPatch),
)
def change_model(name: ModelName, payload: Body, once: OnceDep) -> Response:
    """Change the description."""
    given = parse.envelope(ModelPatch, payload.json())

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        unit.models.lock(name)
        record = unit.models.describe(name, given.description, now())
        return record.id, answer(presenters.model(record, unit.aliases.of(name)))

    return once.write(work)


@router.delete(
    "/{name}",
    status_code=204,
    responses=problems(404, 409, 422, 503),
    dependencies=[only("force")],
)
def delete_model(name: ModelName, store: StoreDep, trail: TrailDep, force: bool = False) -> None:
    """Delete a model and its versions; with ``force``, its estimates too."""
    with store.write() as unit:
        unit.models.delete(name, force)
        trail.note(unit)


AliasName = Annotated[str, Path(description="The alias, without @")]


@router.get(
    "/{name}/aliases/{alias}",
    response_model=AliasOut,
    responses=problems(404, 422, 503),
    dependencies=[only()],
)
def get_alias(name: ModelName, alias: AliasName, store: StoreDep) -> AliasOut:
    """The version that an alias points to."""
    _check(alias)
    with store.read() as unit:
        return presenters.alias(unit.aliases.get(name, alias))


@router.put(
    "/{name}/aliases/{alias}",
    responses={200: {"model": AliasOut}, **problems(400, 404, 409, 413, 415, 422, 503)},
    openapi_extra=takes(AliasIn),
)
def put_alias(name: ModelName, alias: AliasName, payload: Body, once: OnceDep) -> Response:
    """Point an alias to a version."""
    _check(alias)
    given = parse.envelope(AliasIn, payload.json())

    def work(unit: UnitOfWork) -> tuple[int, Response]:
        record = unit.aliases.put(name, alias, given.version, now())
        return unit.models.get(name).id, answer(presenters.alias(record))

    return once.write(work)


@router.delete(
    "/{name}/aliases/{alias}",
    status_code=204,
    responses=problems(404, 422, 503),
    dependencies=[only()],
)
def delete_alias(name: ModelName, alias: AliasName, store: StoreDep, trail: TrailDep) -> None:
    """Remove an alias."""
    _check(alias)
    with store.write() as unit:
        unit.aliases.delete(name, alias)
        trail.note(unit)


def _check(alias: str) -> None:
    if re.fullmatch(NAME, alias) is None:
        raise NotFound(f"{alias[:80]!r} cannot be an alias; aliases match {NAME}")


def _require_free(store: Store, name: str) -> None:
    """``AlreadyExists`` before anything is fitted for a model that cannot be created."""
    with store.read() as unit:
        try:
            unit.models.get(name)
        except NotFound:
            return
    raise AlreadyExists(f"a model named {name} exists; choose another name")
