"""What browsers are told: what pages may do, who may read answers, and the two pages there are."""

import re
from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from hashlib import sha256

from fastapi import APIRouter, Request
from fastapi.openapi.docs import get_redoc_html, get_swagger_ui_html
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import HTMLResponse

CDN = "https://cdn.jsdelivr.net/npm/"
SWAGGER = f"{CDN}swagger-ui-dist@5/"
REDOC = f"{CDN}redoc@2/bundles/"
NO_ICON = "data:,"
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

router = APIRouter(include_in_schema=False)


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


@router.get("/docs")
def docs(request: Request) -> HTMLResponse:
    """Swagger UI."""
    page = get_swagger_ui_html(
        openapi_url=_description(request),
        title=request.app.title,
        swagger_js_url=f"{SWAGGER}swagger-ui-bundle.js",
        swagger_css_url=f"{SWAGGER}swagger-ui.css",
        swagger_favicon_url=NO_ICON,
    )
    return _allowed(page, SWAGGER)


@router.get("/redoc")
def redoc(request: Request) -> HTMLResponse:
    """ReDoc."""
    page = get_redoc_html(
        openapi_url=_description(request),
        title=request.app.title,
        redoc_js_url=f"{REDOC}redoc.standalone.js",
        redoc_favicon_url=NO_ICON,
        with_google_fonts=False,
    )
    return _allowed(page, REDOC)


def _description(request: Request) -> str:
    root: str = request.scope.get("root_path", "")
    return f"{root.rstrip('/')}{request.app.openapi_url}"


def _allowed(page: HTMLResponse, source: str) -> HTMLResponse:
    """Let the page run what comes from ``source``, its own script as it is, and nothing else."""
    own = re.findall(rb"<script>(.*?)</script>", bytes(page.body), re.DOTALL)
    digests = [f"'sha256-{b64encode(sha256(script).digest()).decode()}'" for script in own]
    page.headers[POLICY] = "; ".join(
        [
            "default-src 'none'",
            " ".join(["script-src", source, *digests]),
            f"style-src {source} 'unsafe-inline'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "worker-src blob:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )
    return page
