"""The server process: uvicorn without patience for half a request; what ends before it drains."""

import asyncio
import sys
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app import logs

DRAIN_SECONDS = 20
HEADER_SECONDS = 10.0
"""How long the headers of a request may take to arrive."""
MOST_HEADER_BYTES = 65_536
MOST_CONNECTIONS = 4_000
STARTUP_FAILURE = 3
"""The exit status that uvicorn's own command has for it."""


class Protocol(HttpToolsProtocol):
    """Hangs up on whoever sends headers too slowly, or too many of them."""

    _timer: asyncio.TimerHandle | None = None
    _received = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A first request is due."""
        super().connection_made(transport)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is due any more."""
        self._complete()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some of it, perhaps with the start of the body."""
        super().data_received(data)
        if self._timer is not None:
            self._received += len(data)
            if self._received > MOST_HEADER_BYTES:
                self._complete()
                self.transport.close()

    def on_message_begin(self) -> None:
        """The first bytes of a request."""
        super().on_message_begin()
        self._expect()

    def on_headers_complete(self) -> None:
        """The body has limits of its own."""
        self._complete()
        super().on_headers_complete()

    def _expect(self) -> None:
        if self._timer is None:
            self._received = 0
            self._timer = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _complete(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Server(uvicorn.Server):
    """Ends a running fit when it is told to stop: its caller gets 503 now, and asks another one."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """SIGTERM or SIGINT."""
        app = self.config.app
        assert isinstance(app, FastAPI)
        app.state.learners.close()
        super().handle_exit(sig, frame)


def configuration(app: FastAPI, **settings: Any) -> uvicorn.Config:
    """How uvicorn serves ``app``; ``settings`` of uvicorn besides.

    Without WebSockets: nothing here serves them, and their library logs headers.
    """
    return uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        **settings,
    )


def run(app: FastAPI, host: str, port: int, log_level: str) -> None:
    """Serve until a signal; other requests have ``DRAIN_SECONDS`` to finish."""
    logs.configure(app.state.settings.log_format, log_level)
    server = Server(configuration(app, host=host, port=port, log_config=None))
    with suppress(KeyboardInterrupt):
        server.run()
    if not server.started:
        sys.exit(STARTUP_FAILURE)
