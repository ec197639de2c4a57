"""The API's description as pages: Swagger UI and ReDoc, whose scripts come from a package."""

import re
from base64 import b64encode
from hashlib import sha256

from fastapi import APIRouter, Request
from fastapi.openapi.docs import get_redoc_html, get_swagger_ui_html
from starlette.responses import HTMLResponse

from app.http.security_headers import POLICY
from app.page.assets import address
from app.page.render import root_of

router = APIRouter(include_in_schema=False)


@router.get("/docs")
def docs(request: Request) -> HTMLResponse:
    """Swagger UI."""
    root = root_of(request)
    return _allowed(
        get_swagger_ui_html(
            openapi_url=f"{root}{request.app.openapi_url}",
            title=request.app.title,
            swagger_js_url=address(root, "swagger-ui-bundle.js"),
            swagger_css_url=address(root, "swagger-ui.css"),
            swagger_favicon_url=address(root, "icon.svg"),
        )
    )


@router.get("/redoc")
def redoc(request: Request) -> HTMLResponse:
    """ReDoc."""
    root = root_of(request)
    return _allowed(
        get_redoc_html(
            openapi_url=f"{root}{request.app.openapi_url}",
            title=request.app.title,
            redoc_js_url=address(root, "redoc.standalone.js"),
            redoc_favicon_url=address(root, "icon.svg"),
            with_google_fonts=False,
        )
    )


def _allowed(page: HTMLResponse) -> HTMLResponse:
    """Let the page run what this service has, its own script as it is, and nothing else."""
    own = re.findall(rb"<script>(.*?)</script>", bytes(page.body), re.DOTALL)
    digests = [f"'sha256-{b64encode(sha256(script).digest()).decode()}'" for script in own]
    page.headers[POLICY] = "; ".join(
        [
            "default-src 'none'",
            " ".join(["script-src 'self'", *digests]),
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "worker-src blob:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )
    return page
