"""What browsers are told: what pages may do, and who may read answers."""

from collections.abc import Collection, Mapping
from functools import partial

from fastapi import Request
from starlette.middleware.cors import CORSMiddleware

from app.access.sessions import Session

POLICY = "Content-Security-Policy"
HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    POLICY: "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
"""On every answer, where its handler did not say otherwise."""

COOKIES = ("__Host-priorshift", "priorshift")
"""Where a session is kept: over HTTPS, else over plain HTTP."""


def sessions_of(request: Request) -> list[Session]:
    """What its cookies hold; the first is the one that counts."""
    found = (request.cookies.get(name) for name in COOKIES)
    return [Session(text) for text in found if text]


def same_origin(request: Request) -> bool:
    """Whether a page of this very service made the browser send this; a browser says so itself."""
    fetched = request.headers.get("sec-fetch-site")
    if fetched is not None and fetched != "same-origin":
        return False
    origin = request.headers.get("origin")
    if origin is None:
        return fetched is not None
    return _own(origin, request)


def foreign_origin(request: Request, known: Collection[str]) -> bool:
    """Whether a page of another origin than this service and ``known`` made a browser send this.

    Where a browser names no origin, it says at least of what it changes where that comes from.
    """
    origins = request.headers.getlist("origin")
    if origins:
        return not all(_own(origin, request) or origin in known for origin in origins)
    fetched = request.headers.get("sec-fetch-site")
    return fetched in ("cross-site", "same-site") and request.method not in ("GET", "HEAD")


def _own(origin: str, request: Request) -> bool:
    """Whether the origin is where the request went; who ends TLS in front is not told apart."""
    return origin.partition("://")[2] == request.headers.get("host")


def cors(origins: list[str], request_id: str) -> "partial[CORSMiddleware]":
    """Let pages of ``origins`` call, with a key in a header; no cookies, no credentials."""
    return partial(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=("GET", "POST", "PUT", "PATCH", "DELETE"),
        allow_headers=("Authorization", "Content-Encoding", "Idempotency-Key", request_id),
        expose_headers=(
            "Idempotency-Replayed",
            "Location",
            "Priorshift-Method",
            "Priorshift-Target-Priors",
            "Priorshift-Warnings",
            "Retry-After",
            request_id,
        ),
    )
