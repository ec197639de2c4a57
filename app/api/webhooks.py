"""Webhooks, for those who administer them: where events go, and what came of it."""

from dataclasses import replace
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import Response

from app.access.gate import Gate, Misconfigured
from app.clock import now
from app.core.errors import InvalidInput, MethodUnavailable
from app.core.json_types import JsonObject
from app.core.warnings import Warning, WarningCode
from app.http.audit_trail import TrailDep
from app.http.body import Body, only
from app.http.dependencies import Cursor, GateDep, Limit, StoreDep, answer, encode_cursor, problems
from app.http.idempotency import BodilessOnceDep, OnceDep, ShownOnce
from app.http.paging import before, identity
from app.intake import parse
from app.openapi import takes
from app.schemas import presenters
from app.schemas.requests import WebhookIn, WebhookPatch
from app.schemas.webhooks import AttemptOut, DeliveryOut, DeliveryPage, WebhookOut, WebhookPage
from app.services import services_of
from app.webhooks import signing
from app.webhooks.addresses import AddressRefused
from app.webhooks.sending import Sender
from app.webhooks.urls import admitted
from models_store.records import DeliveryRecord, WebhookRecord
from models_store.store import UnitOfWork

SHOWN = Warning(
    WarningCode.SHOWN_ONCE,
    "the secret was in the first answer to this Idempotency-Key and is not shown again; if it is "
    "lost, make another: POST /v1/webhooks/{id}/secret",
)
router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])
WebhookId = Annotated[str, Path(description="The id of the webhook")]


async def _sender(request: Request) -> Sender:
    return services_of(request).sender


SenderDep = Annotated[Sender, Depends(_sender)]


@router.post(
    "",
    status_code=201,
    responses={201: {"model": WebhookOut}, **problems(400, 401, 403, 409, 413, 415, 422, 503)},
    openapi_extra=takes(WebhookIn),
)
def create_webhook(payload: Body, gate: GateDep, once: OnceDep, sender: SenderDep) -> Response:
    """Have events sent to an address. The answer shows the secret that signs them, once.

    Asked again with its Idempotency-Key it says the same without the secret.
    """
    given = parse.envelope(WebhookIn, payload.json())
    once.require_new()
    id, url = uuid4().hex, _admitted(given.url, sender)
    secret = signing.derive(_server(gate), id, 1)
    record = _new(given, id, url, secret)

    def work(unit: UnitOfWork) -> tuple[None, Response]:
        unit.webhooks.add(record)
        return None, _with_secret(record, secret, 201, {"Location": f"/v1/webhooks/{id}"})

    return once.commit(work)


def _new(given: WebhookIn, id: str, url: str, secret: bytes) -> WebhookRecord:
    created_at = now()
    return WebhookRecord(
        id=id,
        url=url,
        events=tuple(given.events),
        models=None if given.models is None else tuple(given.models),
        monitors=None if given.monitors is None else tuple(given.monitors),
        description=given.description,
        disabled=False,
        reason=None,
        generation=1,
        check=signing.check(secret),
        rotated_at=None,
        created_at=created_at,
        updated_at=created_at,
    )


@router.get(
    "",
    response_model=WebhookPage,
    responses=problems(401, 403, 422, 503),
    dependencies=[only("cursor", "limit")],
)
def list_webhooks(store: StoreDep, cursor: Cursor = None, limit: Limit = 50) -> WebhookPage:
    """Webhooks, newest first."""
    with store.read() as unit:
        page = unit.webhooks.list(before(cursor), limit)
    items = [_webhook(record) for record in page.items]
    return WebhookPage(items=items, next_cursor=encode_cursor(page.next))


@router.get(
    "/{id}",
    response_model=WebhookOut,
    responses=problems(401, 403, 404, 422, 503),
    dependencies=[only()],
)
def get_webhook(id: WebhookId, store: StoreDep) -> WebhookOut:
    """A webhook, without its secret."""
    with store.read() as unit:
        return _webhook(unit.webhooks.get(_identity(id)))


@router.patch(
    "/{id}",
    responses={200: {"model": WebhookOut}, **problems(400, 401, 403, 404, 409, 413, 415, 422, 503)},
    openapi_extra=takes(WebhookPatch),
)
def change_webhook(id: WebhookId, payload: Body, once: OnceDep, sender: SenderDep) -> Response:
    """Change a webhook. What waits to be sent goes to the new address."""
    given = parse.envelope(WebhookPatch, payload.json())
    once.require_new()
    change = _change(given, sender)

    def work(unit: UnitOfWork) -> tuple[None, Response]:
        record = replace(unit.webhooks.lock(_identity(id)), **change, updated_at=now())
        unit.webhooks.put(record)
        return None, answer(_webhook(record))

    return once.commit(work)


def _change(given: WebhookPatch, sender: Sender) -> JsonObject:
    """What of a record is to be another."""
    change: JsonObject = {name: getattr(given, name) for name in given.model_fields_set}
    for name in ("events", "models", "monitors"):
        if change.get(name) is not None:
            change[name] = tuple(change[name])
    if "url" in change:
        change["url"] = _admitted(given.url, sender)
    if "disabled" in change:
        change["reason"] = None
    return change


@router.delete(
    "/{id}",
    status_code=204,
    responses=problems(401, 403, 404, 422, 503),
    dependencies=[only()],
)
def delete_webhook(id: WebhookId, store: StoreDep, trail: TrailDep) -> None:
    """Delete a webhook, its history and what waits to be sent."""
    with store.write() as unit:
        unit.webhooks.delete(_identity(id))
        trail.note(unit)


@router.post(
    "/{id}/secret",
    responses={200: {"model": WebhookOut}, **problems(401, 403, 404, 409, 422, 503)},
    dependencies=[only()],
)
def rotate_secret(id: WebhookId, gate: GateDep, once: BodilessOnceDep) -> Response:
    """Make a new secret, shown once. For a day events are signed with the one before as well."""
    server = _server(gate)

    def work(unit: UnitOfWork) -> tuple[None, Response]:
        record, secret = _rotated(unit.webhooks.lock(_identity(id)), server)
        unit.webhooks.put(record)
        return None, _with_secret(record, secret, 200, {})

    return once.write(work)


def _rotated(record: WebhookRecord, server: bytes) -> tuple[WebhookRecord, bytes]:
    """With the next secret, and that secret."""
    generation, moment = record.generation + 1, now()
    secret = signing.derive(server, record.id, generation)
    check = signing.check(secret)
    rotated = replace(
        record, generation=generation, check=check, rotated_at=moment, updated_at=moment
    )
    return rotated, secret


@router.post(
    "/{id}/test",
    status_code=202,
    responses={202: {"model": DeliveryOut}, **problems(401, 403, 404, 409, 422, 503)},
    dependencies=[only()],
)
def test_webhook(id: WebhookId, once: BodilessOnceDep) -> Response:
    """Send the event webhook.test; what comes of it is among the deliveries."""

    def work(unit: UnitOfWork) -> tuple[None, Response]:
        if unit.webhooks.lock(_identity(id)).disabled:
            raise MethodUnavailable("a test", "the webhook is disabled; enable it first")
        return None, answer(_delivery(unit.webhooks.test(id, now())), 202)

    return once.write(work)


@router.get(
    "/{id}/deliveries",
    response_model=DeliveryPage,
    responses=problems(401, 403, 404, 422, 503),
    dependencies=[only("cursor", "limit")],
)
def list_deliveries(
    id: WebhookId, store: StoreDep, cursor: Cursor = None, limit: Limit = 50
) -> DeliveryPage:
    """What was sent to a webhook, or is to be, with every attempt, newest first; of 30 days."""
    with store.read() as unit:
        record = unit.webhooks.get(_identity(id))
        page = unit.webhooks.deliveries(record.id, before(cursor), limit)
    items = [_delivery(found) for found in page.items]
    return DeliveryPage(items=items, next_cursor=encode_cursor(page.next))


def _identity(id: str) -> str:
    return identity(id, "webhook")


def _admitted(url: str, sender: Sender) -> str:
    try:
        return str(admitted(url, sender.allowed))
    except AddressRefused as error:
        raise InvalidInput.at("/url", str(error)) from None


def _server(gate: Gate) -> bytes:
    try:
        return gate.secret()
    except Misconfigured as error:
        raise MethodUnavailable("signing events", str(error)) from None


def _with_secret(
    record: WebhookRecord, secret: bytes, status: int, headers: dict[str, str]
) -> Response:
    headers = {**headers, "Cache-Control": "no-store"}
    again, shown = _webhook(record), _webhook(record)
    again.warnings = presenters.warnings([SHOWN])
    shown.secret = signing.shown(secret)
    return ShownOnce(answer(shown, status, headers), answer(again, status, headers))


def _webhook(record: WebhookRecord) -> WebhookOut:
    return WebhookOut(
        id=record.id,
        url=record.url,
        events=list(record.events),
        models=None if record.models is None else list(record.models),
        monitors=None if record.monitors is None else list(record.monitors),
        description=record.description,
        disabled=record.disabled,
        reason=record.reason,
        created_at=record.created_at,
        updated_at=record.updated_at,
        secret_rotated_at=record.rotated_at,
    )


def _delivery(record: DeliveryRecord) -> DeliveryOut:
    return DeliveryOut(
        id=record.id,
        message=signing.message(record.event_id),
        type=record.type,
        status=record.status,
        created_at=record.created_at,
        next_attempt_at=record.next_at,
        attempts=[AttemptOut(**attempt) for attempt in record.attempts],
    )
