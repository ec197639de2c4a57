"""Every error as RFC 9457 problem+json, from one table.

ApiError             what only HTTP knows
├── Forbidden        403, the key may not do this
├── NotAcceptable    406, no such answer format
└── TooSlow          408, the body did not arrive in time
"""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from app.core.deadline import OutOfTime
from app.core.errors import (
    LONGEST_MESSAGE,
    LONGEST_POINTER,
    Fault,
    InvalidInput,
    MethodUnavailable,
    clipped,
)
from app.core.json_types import JsonObject
from app.datasets.arrow import ExtraMissing
from app.formats.errors import TooLarge, Unparseable, Unsupported
from app.operations.admission import Busy
from app.schemas.validation import MOST_FAULTS, schema_faults
from app.services import services_of
from app.training.process import TrainingBusy, TrainingStopped
from models_store.errors import (
    AlreadyExists,
    IdempotencyConflict,
    NotFound,
    OtherInput,
    OtherKind,
    StillInUse,
    TooMany,
    Unavailable,
)

MOST_BYTES = 64_000
"""Of a problem document, whatever it quotes."""
MEDIA_TYPE = "application/problem+json"


class ApiError(Exception):
    """Root of what only HTTP knows."""


class Forbidden(ApiError):
    """The key may not do this."""


class NotAcceptable(ApiError):
    """The answer is not available in the format asked for."""


class TooSlow(ApiError):
    """The body did not arrive in time."""


STATUS: Mapping[type[Exception], int] = {
    Unparseable: 400,
    ClientDisconnect: 400,
    Forbidden: 403,
    NotFound: 404,
    NotAcceptable: 406,
    AlreadyExists: 409,
    IdempotencyConflict: 409,
    MethodUnavailable: 409,
    OtherInput: 409,
    OtherKind: 409,
    StillInUse: 409,
    TooMany: 409,
    TooSlow: 408,
    TooLarge: 413,
    Unsupported: 415,
    Busy: 429,
    ExtraMissing: 501,
    OutOfTime: 503,
    TrainingBusy: 503,
    TrainingStopped: 503,
    Unavailable: 503,
}
CODE: Mapping[type[Exception], str] = {
    Unparseable: "unparseable",
    ClientDisconnect: "client-disconnect",
    Forbidden: "forbidden",
    NotFound: "not-found",
    NotAcceptable: "not-acceptable",
    AlreadyExists: "already-exists",
    IdempotencyConflict: "idempotency-conflict",
    MethodUnavailable: "method-unavailable",
    OtherInput: "other-input",
    OtherKind: "other-kind",
    StillInUse: "still-in-use",
    TooMany: "too-many",
    TooSlow: "too-slow",
    TooLarge: "too-large",
    Unsupported: "unsupported-media-type",
    Busy: "busy",
    ExtraMissing: "extra-missing",
    OutOfTime: "out-of-time",
    TrainingBusy: "training-busy",
    TrainingStopped: "training-stopped",
    Unavailable: "unavailable",
}


def problem(
    request: Request,
    status: int,
    code: str,
    detail: str,
    headers: Mapping[str, str] | None = None,
    **extra: Any,
) -> Response:
    """A problem document; the log gets its code, a page its detail."""
    detail = clipped(detail, LONGEST_POINTER + LONGEST_MESSAGE)
    request.scope["problem"], request.scope["detail"] = code, detail
    content = {
        "type": f"urn:priorshift:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": f"urn:priorshift:request:{request.scope['request_id']}",
        **extra,
    }
    return Response(_rendered(content), status, dict(headers or {}), MEDIA_TYPE)


def _rendered(content: JsonObject) -> bytes:
    """As JSON; with fewer ``errors`` where all of them would be too long."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    if len(body) <= MOST_BYTES:
        return body
    errors = content["errors"]
    return _rendered({**content, "errors": errors[: len(errors) // 2]})


def install(app: FastAPI) -> None:
    """Register the handlers."""
    for kind in STATUS:
        app.add_exception_handler(kind, _known)
    app.add_exception_handler(InvalidInput, _invalid)
    app.add_exception_handler(ValidationError, _schema)
    app.add_exception_handler(RequestValidationError, _schema)
    app.add_exception_handler(HTTPException, _framework)


async def _known(request: Request, error: Exception) -> Response:
    kind = next(kind for kind in type(error).__mro__ if kind in STATUS)
    headers = {"Retry-After": "1"} if STATUS[kind] in (429, 503) else None
    if kind is Unavailable:
        services_of(request).metrics.unavailable()
    detail = str(error) or "the request ended early"
    return problem(request, STATUS[kind], CODE[kind], detail, headers)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, InvalidInput)
    return unprocessable(request, error.faults, error.count)


async def _schema(request: Request, error: Exception) -> Response:
    assert isinstance(error, ValidationError | RequestValidationError)
    return unprocessable(request, schema_faults(error), len(error.errors()))


def unprocessable(request: Request, faults: Sequence[Fault], count: int) -> Response:
    """What is wrong with the input: the first faults, and how many there are in all."""
    shown = []
    for fault in faults[:MOST_FAULTS]:
        entry: dict[str, object] = {"pointer": fault.pointer, "message": fault.message}
        if fault.row is not None:
            entry["row"] = fault.row
        shown.append(entry)
    first = faults[0]
    detail = f"{first.pointer} {first.message}" if first.pointer else first.message
    if count > 1:
        detail += f" (and {count - 1} more)"
    return problem(request, 422, "invalid-input", detail, errors=shown, error_count=count)


async def _framework(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    detail = {
        404: "there is nothing at this address; /docs lists what there is",
        405: "this address does not take this method",
    }.get(error.status_code, str(error.detail))
    return problem(request, error.status_code, code, detail, error.headers)


def unexpected(request: Request) -> Response:
    """What to say of an error that nobody expected."""
    detail = "an unexpected error; it was logged, and nothing was stored"
    return problem(request, 500, "internal-error", detail)
