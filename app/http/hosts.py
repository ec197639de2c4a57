"""The door of a service without keys: it answers to its own names, and to no page of elsewhere.

A page of evil.example may make its own name mean 127.0.0.1 (DNS rebinding). Its requests are then
of one origin for the browser, and only their Host tells where they come from. Where a key is needed
that page has none, and the session of the service's own page is of another name.
"""

from collections.abc import Sequence

from anyio.to_thread import run_sync
from fastapi import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.access.gate import Gate
from app.hostnames import Own, called
from app.http.problems import problem
from app.http.security_headers import foreign_origin
from models_store.errors import Unavailable

OTHER_NAME = (
    "this service needs no key yet, and so answers to names that are surely its own: localhost and "
    "loopback addresses, --host, and PRIORSHIFT_ALLOWED_HOSTS; put this name there, or make a key"
)
OTHER_ORIGIN = (
    "a page of another origin may not call a service that needs no key; name the origin in "
    "PRIORSHIFT_CORS_ORIGINS; if it is this service's own, its proxy must pass Host on"
)


class Hosts:
    """Refuses what a page of elsewhere may have made a browser send, while no key is needed."""

    def __init__(self, app: ASGIApp, own: Own, origins: Sequence[str], gate: Gate) -> None:
        self.app = app
        self._own = own
        self._origins = origins
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        refused = None
        if scope["type"] == "http" and not self._gate.needs_key:
            refused = await self._refused(Request(scope))
        await (refused or self.app)(scope, receive, send)

    async def _refused(self, request: Request) -> Response | None:
        """Why the request may not go on; None if it may, or a key is needed after all."""
        if not self._ours(request):
            status, code, detail = 421, "other-host", OTHER_NAME
        elif foreign_origin(request, self._origins):
            status, code, detail = 403, "other-origin", OTHER_ORIGIN
        else:
            return None
        try:
            needs_key = await run_sync(self._gate.closed)
        except Unavailable as error:
            return problem(request, 503, "unavailable", str(error), {"Retry-After": "1"})
        return None if needs_key else problem(request, status, code, detail)

    def _ours(self, request: Request) -> bool:
        """Whether every Host is a name of ours; no browser leaves it out."""
        names = [called(given) for given in request.headers.getlist("host")]
        return all(name is not None and self._own.has(name) for name in names)
