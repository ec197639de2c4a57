"""Around every request: an id, headers, a line in the log; and a 500 for what nobody expected."""

import re
from collections.abc import Callable
from http import HTTPMethod
from time import perf_counter
from uuid import uuid4

from fastapi import FastAPI, Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http import problems, security_headers
from app.http.compression import Compression
from app.logs import log
from app.metrics import Metrics

REQUEST_ID = "X-Request-Id"
SAFE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
PROBES = ("/livez", "/readyz")
"""Asked every few seconds; they are told at debug level, unless they fail."""


def install(
    app: FastAPI, origins: list[str], metrics: Metrics, pages: Callable[[ASGIApp], ASGIApp]
) -> None:
    """Wrap what was added so far; pages of ``origins`` may read the answers.

    ``pages`` says in its own way what went wrong.
    """
    app.add_middleware(Compression)
    app.add_middleware(LastResort)
    app.add_middleware(pages)
    if origins:
        app.add_middleware(security_headers.cors(origins, REQUEST_ID))
    app.add_middleware(Envelope, metrics=metrics)


class Envelope:
    """Names a request, completes the headers of its answer, and tells the log."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope["request_id"] = _request_id(scope)
        exchange = Exchange(scope, receive, send, self._metrics)
        try:
            await self.app(scope, exchange.receive, exchange.send)
        finally:
            exchange.tell()


class Exchange:
    """A request and its answer, counted as they pass."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, metrics: Metrics) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._metrics = metrics
        self._began = perf_counter()
        self._status: int | None = None
        self._bytes_in = self._bytes_out = 0

    async def receive(self) -> Message:
        """Pass a message of the request."""
        message = await self._receive()
        self._bytes_in += len(message.get("body", b""))
        return message

    async def send(self, message: Message) -> None:
        """Pass a message of the answer."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = MutableHeaders(raw=list(message["headers"]))
            headers[REQUEST_ID] = self._scope["request_id"]
            for name, value in security_headers.HEADERS.items():
                headers.setdefault(name, value)
            message = {**message, "headers": headers.raw}
        self._bytes_out += len(message.get("body", b""))
        await self._send(message)

    def tell(self) -> None:
        """One line; ``status`` is null where the connection ended before an answer began."""
        scope, seconds = self._scope, perf_counter() - self._began
        # Any word can stand for a method.
        method = scope["method"] if scope["method"] in HTTPMethod.__members__ else "other"
        self._metrics.answered(method, scope.get("template"), self._status, seconds)
        route, caller = scope.get("template"), scope.get("caller")
        failed = self._status is not None and self._status >= 500
        quiet = log.debug if route in PROBES else log.info
        (log.warning if failed else quiet)(
            "request",
            method=method,
            route=route,
            status=self._status,
            problem=scope.get("problem"),
            milliseconds=round(1000 * seconds, 1),
            request_id=scope["request_id"],
            key=None if caller is None else caller.owner,
            bytes_in=self._bytes_in,
            bytes_out=self._bytes_out,
        )


class LastResort:
    """Answers what nobody expected with a 500 that says nothing, and tells the log."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; where the answer had begun, the server breaks it off."""
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except Exception as error:
            if scope["type"] != "http":
                raise
            route, name = scope.get("template"), scope["request_id"]
            log.error("unexpected error", route=route, request_id=name, exc_info=error)
            if not begun:
                await problems.unexpected(Request(scope))(scope, receive, send)


def _request_id(scope: Scope) -> str:
    """The caller's, if it can be shown and logged as it is; else a fresh one."""
    given = Headers(scope=scope).get(REQUEST_ID, "")
    return given if SAFE_ID.fullmatch(given) else uuid4().hex
