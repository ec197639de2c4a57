"""API keys, for those who administer them, and the trail of writes."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from app.access.callers import Caller
from app.access.gate import Contradiction, Gate, Misconfigured, new_key
from app.clock import now
from app.core.errors import InvalidInput, MethodUnavailable
from app.core.warnings import Warning, WarningCode
from app.http.audit_trail import TrailDep
from app.http.body import Body, only
from app.http.dependencies import Cursor, GateDep, Limit, StoreDep, answer, encode_cursor, problems
from app.http.idempotency import OnceDep, ShownOnce
from app.http.paging import IDENTITY, before, before_number, identity
from app.intake import parse
from app.openapi import takes
from app.schemas import presenters
from app.schemas.access import AuditOut, AuditPage, KeyOut, KeyPage
from app.schemas.requests import KeyIn, Timestamp
from app.schemas.validation import checked
from models_store.audit import AuditFilter
from models_store.records import AuditRecord, KeyRecord
from models_store.store import UnitOfWork

NO_ROOTS = Warning(
    WarningCode.NO_DATA_ROOTS,
    "a key restricted to models opens no data root unless it says so: name them in roots, null for "
    "all, if it is for jobs",
)
SHOWN = Warning(
    WarningCode.SHOWN_ONCE,
    "the key was in the first answer to this Idempotency-Key and is not kept; if it is lost, "
    "revoke this one and make another",
)
router = APIRouter(prefix="/v1", tags=["access"])
KeyId = Annotated[str, Path(description="The id of the key, not the key")]


@router.post(
    "/api-keys",
    status_code=201,
    responses={201: {"model": KeyOut}, **problems(400, 401, 403, 409, 413, 415, 422, 503)},
    openapi_extra=takes(KeyIn),
)
def create_key(payload: Body, gate: GateDep, once: OnceDep) -> Response:
    """Make a key, no wider than the one that makes it.

    The answer shows it, and nothing ever shows it again: asked again with its Idempotency-Key it
    says the same without the key.
    """
    given = parse.envelope(KeyIn, payload.json())
    once.require_new()
    _require_end(given.expires_at, once.trail.caller)
    token, record = _made(gate, given)

    def work(unit: UnitOfWork) -> tuple[None, Response]:
        unit.keys.add(record)
        return None, _with_key(record, token, [NO_ROOTS] if given.closed else [])

    answered = once.commit(work)
    gate.close()
    return answered


@router.get(
    "/api-keys",
    response_model=KeyPage,
    responses=problems(401, 403, 422, 503),
    dependencies=[only("cursor", "limit")],
)
def list_keys(store: StoreDep, cursor: Cursor = None, limit: Limit = 50) -> KeyPage:
    """Keys, newest first."""
    with store.read() as unit:
        page = unit.keys.list(before(cursor), limit)
    items = [_key(record) for record in page.items]
    return KeyPage(items=items, next_cursor=encode_cursor(page.next))


@router.get(
    "/api-keys/{id}",
    response_model=KeyOut,
    responses=problems(401, 403, 404, 422, 503),
    dependencies=[only()],
)
def get_key(id: KeyId, store: StoreDep) -> KeyOut:
    """What is kept of a key."""
    with store.read() as unit:
        return _key(unit.keys.get(identity(id, "API key")))


@router.delete(
    "/api-keys/{id}",
    status_code=204,
    responses=problems(401, 403, 404, 422, 503),
    dependencies=[only()],
)
def revoke_key(id: KeyId, store: StoreDep, trail: TrailDep) -> None:
    """Revoke a key; it stays in the list."""
    with store.write() as unit:
        unit.keys.revoke(identity(id, "API key"), now())
        trail.note(unit)


@router.get(
    "/audit",
    response_model=AuditPage,
    responses=problems(401, 403, 422, 503),
    dependencies=[only("key", "since", "until", "cursor", "limit")],
)
def list_audit(
    store: StoreDep,
    key: Annotated[str | None, Query(pattern=f"^{IDENTITY}$")] = None,
    since: Annotated[str | None, Query(description="Earliest time, inclusive")] = None,
    until: Annotated[str | None, Query(description="Latest time, exclusive")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> AuditPage:
    """Writes, newest first: who, what, when, from where."""
    which = AuditFilter(
        key,
        checked(Timestamp, since, "/query/since"),
        checked(Timestamp, until, "/query/until"),
    )
    with store.read() as unit:
        page = unit.audit.list(which, before_number(cursor), limit)
    items = [_entry(record) for record in page.items]
    return AuditPage(items=items, next_cursor=encode_cursor(page.next))


def _require_end(expires_at: datetime | None, maker: Caller) -> None:
    """It lies ahead, and no key outlives the one that makes it."""
    if expires_at is not None and expires_at <= now():
        raise InvalidInput.at("/expires_at", "lies in the past")
    last = maker.expires_at
    if last is not None and (expires_at is None or expires_at > last):
        message = f"must be no later than {last.isoformat()}, when the key ends that makes this one"
        raise InvalidInput.at("/expires_at", message)


def _made(gate: Gate, given: KeyIn) -> tuple[str, KeyRecord]:
    roots = () if given.closed else given.roots
    what = (given.name, given.scopes, given.models, given.expires_at, roots)
    try:
        return new_key(gate.secret(), *what)
    except Misconfigured as error:
        raise MethodUnavailable("making keys", str(error)) from None
    except Contradiction as error:
        raise InvalidInput.at(f"/{error.restriction}", str(error)) from None


def _with_key(record: KeyRecord, token: str, notes: list[Warning]) -> Response:
    headers = {"Location": f"/v1/api-keys/{record.id}", "Cache-Control": "no-store"}
    again, shown = _key(record), _key(record)
    again.warnings = presenters.warnings([*notes, SHOWN])
    shown.key, shown.warnings = token, presenters.warnings(notes)
    return ShownOnce(answer(shown, 201, headers), answer(again, 201, headers))


def _key(record: KeyRecord) -> KeyOut:
    return KeyOut(
        id=record.id,
        prefix=record.prefix,
        name=record.name,
        scopes=list(record.scopes),
        models=None if record.models is None else list(record.models),
        roots=None if record.roots is None else list(record.roots),
        created_at=record.created_at,
        expires_at=record.expires_at,
        revoked_at=record.revoked_at,
        last_used_at=record.last_used_at,
    )


def _entry(record: AuditRecord) -> AuditOut:
    return AuditOut(
        at=record.at,
        key_id=record.key_id,
        key_name=record.key_name,
        action=record.action,
        target=record.target,
        address=record.address,
    )
