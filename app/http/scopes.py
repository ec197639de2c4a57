"""Which scope every route needs, in one table, and the door that applies it."""

from collections.abc import Iterable, Mapping, Sequence

from anyio.to_thread import run_sync
from fastapi import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.access.callers import Caller
from app.access.gate import Credential, Gate, Unauthenticated
from app.access.sessions import Session
from app.http.problems import problem
from app.http.security_headers import same_origin, sessions_of
from models_store.errors import Unavailable

MONITOR = "/v1/monitors/{monitor}"
VERSION = "/v1/models/{name}/versions/{version}"
OPEN = None
RULES: Mapping[tuple[str, str], str | None] = {
    ("GET", "/livez"): OPEN,
    ("GET", "/readyz"): OPEN,
    ("GET", "/version"): OPEN,
    ("GET", "/static/{release}/{file}"): OPEN,
    ("GET", "/sign-in"): OPEN,
    ("POST", "/sign-in"): OPEN,
    ("POST", "/sign-out"): OPEN,
    ("GET", "/"): "read",
    ("GET", "/monitors/{monitor}"): "read",
    ("GET", "/models/{name}"): "read",
    ("GET", "/models/{name}/versions/{version}"): "read",
    ("GET", "/estimates/{id}"): "read",
    ("GET", "/try"): "read",
    ("GET", "/metrics"): "read",
    ("GET", "/openapi.json"): "read",
    ("GET", "/docs"): "read",
    ("GET", "/redoc"): "read",
    ("GET", "/v1/models"): "read",
    ("POST", "/v1/models"): "register",
    ("GET", "/v1/models/{name}"): "read",
    ("PATCH", "/v1/models/{name}"): "register",
    ("DELETE", "/v1/models/{name}"): "register",
    ("GET", "/v1/models/{name}/aliases/{alias}"): "read",
    ("PUT", "/v1/models/{name}/aliases/{alias}"): "register",
    ("DELETE", "/v1/models/{name}/aliases/{alias}"): "register",
    ("GET", "/v1/models/{name}/versions"): "read",
    ("POST", "/v1/models/{name}/versions"): "register",
    ("GET", VERSION): "read",
    ("GET", f"{VERSION}/scorecard"): "read",
    ("GET", f"{VERSION}/parameters"): "read",
    ("POST", f"{VERSION}/estimates"): "estimate",
    ("POST", f"{VERSION}/posteriors"): "estimate",
    ("POST", f"{VERSION}/shift-tests"): "estimate",
    ("POST", f"{VERSION}/region-tests"): "estimate",
    ("POST", f"{VERSION}/bias-adjustments"): "estimate",
    ("POST", f"{VERSION}/adjusted-models"): "estimate",
    ("POST", f"{VERSION}/evaluations"): "estimate",
    ("POST", f"{VERSION}/adaptations"): "estimate",
    ("GET", "/v1/adaptations/{id}"): "read",
    ("POST", "/v1/adaptations/{id}/predictions"): "estimate",
    ("GET", "/v1/estimates"): "read",
    ("GET", "/v1/estimates/{id}"): "read",
    ("GET", "/v1/evaluations"): "read",
    ("GET", "/v1/evaluations/{id}"): "read",
    ("GET", "/v1/monitors"): "read",
    ("POST", "/v1/monitors"): "register",
    ("GET", MONITOR): "read",
    ("PATCH", MONITOR): "register",
    ("DELETE", MONITOR): "register",
    ("POST", f"{MONITOR}/observations"): "estimate",
    ("GET", f"{MONITOR}/series"): "read",
    ("GET", f"{MONITOR}/windows"): "read",
    ("GET", f"{MONITOR}/windows/{{id}}/rows"): "read",
    ("GET", "/v1/alerts"): "read",
    ("GET", "/v1/alerts/{id}"): "read",
    ("PATCH", "/v1/alerts/{id}"): "estimate",
    ("GET", "/v1/jobs"): "read",
    ("POST", "/v1/jobs"): "estimate",
    ("GET", "/v1/jobs/{id}"): "read",
    ("DELETE", "/v1/jobs/{id}"): "estimate",
    ("GET", "/v1/jobs/{id}/events"): "read",
    ("GET", "/v1/api-keys"): "admin",
    ("POST", "/v1/api-keys"): "admin",
    ("GET", "/v1/api-keys/{id}"): "admin",
    ("DELETE", "/v1/api-keys/{id}"): "admin",
    ("GET", "/v1/audit"): "admin",
    ("GET", "/v1/webhooks"): "admin",
    ("POST", "/v1/webhooks"): "admin",
    ("GET", "/v1/webhooks/{id}"): "admin",
    ("PATCH", "/v1/webhooks/{id}"): "admin",
    ("DELETE", "/v1/webhooks/{id}"): "admin",
    ("POST", "/v1/webhooks/{id}/secret"): "admin",
    ("POST", "/v1/webhooks/{id}/test"): "admin",
    ("GET", "/v1/webhooks/{id}/deliveries"): "admin",
}


class RouteWithoutRule(RuntimeError):
    """A route that nobody decided upon, or a rule without a route."""


def check(routes: Sequence[BaseRoute]) -> list[Route]:
    """The routes themselves, if each has a rule, and every rule a route."""
    plain = [route for route in routes if isinstance(route, Route)]
    served = {(method, r.path) for r in plain for method in r.methods or () if method != "HEAD"}
    wrong = served ^ set(RULES)
    if wrong or len(plain) < len(routes):
        raise RouteWithoutRule(f"routes and rules differ: {sorted(wrong)}")
    return plain


class Door:
    """Lets a request in, before its body is read, if its key may do what the route does."""

    def __init__(self, app: ASGIApp, routes: list[Route], gate: Gate) -> None:
        self.app = app
        self._routes = routes
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refused = await self._refused(scope)
        if refused is None:
            # The server leaves out the body of what it sends in answer to HEAD.
            head = scope["method"] == "HEAD"
            await self.app({**scope, "method": "GET"} if head else scope, receive, send)
        else:
            await refused(scope, receive, send)

    async def _refused(self, scope: Scope) -> Response | None:
        """Why the request may not go on; None if it may, who calls being noted in its scope."""
        request = Request(scope)
        there = self._there(scope["path"])
        if not there:
            return None
        # For the log: the address without what the caller put into it.
        scope["template"] = next(iter(there.values()))[0].path
        if _method(scope) not in there:
            return _other_method(request, there)
        route, name = there[_method(scope)]
        rule = RULES[_method(scope), route.path]
        if rule is OPEN:
            return None
        credential = _credential(request)
        if isinstance(credential, Session) and not _safe(scope) and not same_origin(request):
            detail = "a page of another origin may not write for who is signed in here"
            return problem(request, 403, "forbidden", detail)
        try:
            caller = await self._caller(credential)
        except Unauthenticated as error:
            headers = {"WWW-Authenticate": "Bearer"}
            return problem(request, 401, "unauthenticated", str(error), headers)
        except Unavailable as error:
            return problem(request, 503, "unavailable", str(error), {"Retry-After": "1"})
        scope["caller"], scope["credential"] = caller, credential
        if not caller.may(rule):
            return problem(request, 403, "forbidden", f"this key lacks the scope {rule}")
        if name is not None and not caller.sees(name):
            return problem(request, 404, "not-found", f"there is no model named {name[:80]}")
        return None

    async def _caller(self, token: Credential | None) -> Caller:
        known = self._gate.remembered(token)
        return known if known is not None else await run_sync(self._gate.caller, token)

    def _there(self, path: str) -> dict[str, tuple[Route, str | None]]:
        """What this address serves, by method, each with the model that the address names."""
        found: dict[str, tuple[Route, str | None]] = {}
        for route in self._routes:
            match = route.path_regex.match(path)
            for method in route.methods or () if match is not None else ():
                found.setdefault(method, (route, match and match.groupdict().get("name")))
        return found


def _method(scope: Scope) -> str:
    """What is asked for; HEAD is GET."""
    method: str = scope["method"]
    return "GET" if method == "HEAD" else method


def _other_method(request: Request, there: Iterable[str]) -> Response:
    allowed = {*there, "HEAD"} if "GET" in there else set(there)
    detail = "this address does not take this method"
    headers = {"Allow": ", ".join(sorted(allowed))}
    return problem(request, 405, "method-not-allowed", detail, headers)


def _safe(scope: Scope) -> bool:
    """Whether it only reads."""
    return scope["method"] in ("GET", "HEAD")


def _credential(request: Request) -> Credential | None:
    """The key of an Authorization header, "" for any other scheme; else a browser's session."""
    header = request.headers.get("authorization")
    if header is None:
        return next(iter(sessions_of(request)), None)
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.isascii() else ""
