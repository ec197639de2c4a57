"""Signing in with a key, and out again."""

import asyncio
from urllib.parse import parse_qs

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from app.access import sessions
from app.access.gate import Unauthenticated
from app.formats.errors import TooLarge
from app.http.dependencies import GateDep
from app.http.problems import Forbidden, TooSlow, problem
from app.http.security_headers import COOKIES, same_origin, sessions_of
from app.page.render import page, root_of
from models_store.errors import Unavailable

MOST_BYTES = 4096
SECONDS = 10.0
LONGEST_ADDRESS = 2000
NOT_WRITTEN = (
    "the database cannot be reached: this browser has forgotten the session, and the service ends "
    "it as soon as the database is back; if the service is restarted before that, a copy of the "
    "cookie stands until 12 hours after signing in, or until the key is revoked"
)
router = APIRouter(include_in_schema=False)


@router.get("/sign-in")
async def ask(request: Request) -> Response:
    """The form."""
    after = local(request.query_params.get("next", "/"))
    return page(request, "sign_in.html", after=after, problem=None)


@router.post("/sign-in")
async def sign_in(request: Request, gate: GateDep) -> Response:
    """A session for whoever knows a key."""
    _require_own_page(request)
    form = await _form(request)
    after = local(form.get("next", "/"))
    key = form.get("key", "").strip()
    try:
        if not key.isascii():
            raise Unauthenticated("this key opens nothing: keys are plain letters and digits")
        session = await run_sync(gate.session, key)
    except Unauthenticated as error:
        return page(request, "sign_in.html", 401, after=after, problem=str(error))
    answer = RedirectResponse(root_of(request) + after, 303)
    if session is not None:
        name = COOKIES[0] if request.url.scheme == "https" else COOKIES[1]
        _set(answer, name, session.text, sessions.SECONDS)
    return answer


@router.post("/sign-out")
async def sign_out(request: Request, gate: GateDep) -> Response:
    """End every session that the browser holds, here and in every other copy of its cookie."""
    _require_own_page(request)
    answer: Response = RedirectResponse(f"{root_of(request)}/sign-in", 303)
    try:
        for session in sessions_of(request):
            await run_sync(gate.sign_out, session)
    except Unavailable:
        answer = problem(request, 503, "unavailable", NOT_WRITTEN, {"Retry-After": "1"})
    for name in COOKIES:
        if name in request.cookies:
            _set(answer, name, "", 0)
    return answer


def local(address: str) -> str:
    """The address, if it is one of ours; else the first page."""
    plain = address.isascii() and address.isprintable() and len(address) <= LONGEST_ADDRESS
    if plain and address.startswith("/") and not address.startswith(("//", "/\\")):
        return address
    return "/"


def _set(answer: Response, name: str, text: str, seconds: int) -> None:
    answer.set_cookie(
        name,
        text,
        max_age=seconds,
        path="/",
        secure=name == COOKIES[0],
        httponly=True,
        samesite="strict",
    )


def _require_own_page(request: Request) -> None:
    if not same_origin(request):
        raise Forbidden("sign in and out on the pages of this service")


async def _form(request: Request) -> dict[str, str]:
    content = b""
    try:
        async with asyncio.timeout(SECONDS):
            async for part in request.stream():
                content += part
                if len(content) > MOST_BYTES:
                    raise TooLarge(f"the form is larger than {MOST_BYTES} bytes")
    except TimeoutError:
        raise TooSlow(f"the form did not arrive within {SECONDS:g} seconds") from None
    fields = parse_qs(content.decode("latin-1"), max_num_fields=8)
    return {name: values[0] for name, values in fields.items()}
