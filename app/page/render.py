"""From a template to an answer: what every page gets, and what its browser is told."""

from typing import Any
from urllib.parse import quote

from fastapi import Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from app.access.callers import ANYONE
from app.clock import duration
from app.http.security_headers import COOKIES, POLICY
from app.page import assets, numbers
from app.release import RELEASE

MAY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ]
)
"""Scripts are files of our own; styles may be inline, as the charts' library needs them."""
HEADERS = {POLICY: MAY, "Referrer-Policy": "same-origin"}

environment = Environment(
    loader=PackageLoader("app.page"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
environment.filters.update(
    percent=numbers.percent,
    number=numbers.number,
    p_value=numbers.p_value,
    moment=numbers.moment,
    span=lambda text: numbers.span(duration(text)),
)
environment.globals.update(between=numbers.between, release=RELEASE)


def page(request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A page. Whoever is signed in is named on it."""
    root = root_of(request)
    caller = request.scope.get("caller", ANYONE)
    text = environment.get_template(template).render(
        context,
        root=root,
        asset=lambda name: assets.address(root, name),
        to=lambda *parts: root + "".join(f"/{quote(str(part), safe='@')}" for part in parts),
        caller=caller,
        signed_in=caller is not ANYONE and any(name in request.cookies for name in COOKIES),
        here=request.url.path.removeprefix(root),
    )
    return HTMLResponse(text, status, HEADERS)


def root_of(request: Request) -> str:
    """What stands before every address, behind a proxy that serves us under a folder."""
    root: str = request.scope.get("root_path", "")
    return root.rstrip("/")
