"""What browsers are told: what pages may do, and who may read answers."""

from collections.abc import Mapping
from functools import partial

from fastapi import Request
from starlette.middleware.cors import CORSMiddleware

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


def same_origin(request: Request) -> bool:
    """Whether a page of this very service made the browser send this; a browser says so itself."""
    fetched = request.headers.get("sec-fetch-site")
    if fetched is not None and fetched != "same-origin":
        return False
    origin = request.headers.get("origin")
    if origin is None:
        return fetched is not None
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
