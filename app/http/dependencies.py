"""What every handler may ask for: the store, the settings, checked path parts, cursors.

What only looks something up is async, as FastAPI would send it to a thread otherwise, which takes
longer than all of it.
"""

import base64
import binascii
import json
import re
from typing import Annotated

from fastapi import Depends, Path, Query, Request
from starlette.responses import Response

from app.access.gate import Gate
from app.core.errors import InvalidInput
from app.core.json_types import JsonObject
from app.formats.json import MEDIA_TYPE, encode
from app.schemas.base import Out, ProblemOut
from app.schemas.requests import NAME
from app.services import Services, services_of
from app.settings import Settings
from models_store.errors import NotFound
from models_store.store import Store


async def _services(request: Request) -> Services:
    return services_of(request)


async def _store(request: Request) -> Store:
    return services_of(request).store


async def _settings(request: Request) -> Settings:
    return services_of(request).settings


async def _model_name(name: Annotated[str, Path(description="The model's name")]) -> str:
    if re.fullmatch(NAME, name) is None:
        raise NotFound(f"{name[:80]!r} cannot be a model's name; names match {NAME}")
    return name


async def _gate(request: Request) -> Gate:
    return services_of(request).gate


ServicesDep = Annotated[Services, Depends(_services)]
StoreDep = Annotated[Store, Depends(_store)]
GateDep = Annotated[Gate, Depends(_gate)]
SettingsDep = Annotated[Settings, Depends(_settings)]
ModelName = Annotated[str, Depends(_model_name)]
Selector = Annotated[str, Path(alias="version", description="A number, latest or @alias")]
Limit = Annotated[int, Query(ge=1, le=200, description="Items per page")]
Cursor = Annotated[str | None, Query(max_length=500, description="next_cursor of the page before")]


def problems(*codes: int) -> dict[int | str, dict[str, object]]:
    """The documented error answers of a route."""
    return {
        code: {"model": ProblemOut, "content": {"application/problem+json": {}}} for code in codes
    }


def answer(
    content: Out | JsonObject, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """A JSON answer; values may be arrays."""
    if isinstance(content, Out):
        content = content.model_dump(mode="json", by_alias=True)
    return Response(encode(content), status, headers, MEDIA_TYPE)


def encode_cursor(place: tuple[str, ...] | None) -> str | None:
    """An opaque cursor."""
    if place is None:
        return None
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None, parts: int) -> list[str] | None:
    """The place that a cursor stands for."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        place = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        place = None
    valid = isinstance(place, list) and len(place) == parts
    if not valid or not all(isinstance(part, str) for part in place):
        raise bad_cursor()
    result: list[str] = place
    return result


def bad_cursor() -> InvalidInput:
    """What a cursor that is none of ours gets."""
    return InvalidInput.at("/query/cursor", "is not a cursor; use next_cursor of a page as it is")
