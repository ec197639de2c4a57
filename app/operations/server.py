"""The server process: uvicorn without patience for half a request; what ends before it drains."""

import asyncio
import os
import resource
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

DRAIN_SECONDS = 20
HEADER_SECONDS = 10.0
"""How long the headers of a request may take to arrive."""
MOST_HEADER_BYTES = 65_536
MOST_HEADERS = 200
LINGER_SECONDS = 30.0
"""How long the rest of a body may come that is not wanted any more; it is thrown away."""
READ_SECONDS = 120.0
"""How long a client may take to read an answer."""
MOST_UNREAD_BYTES = 256 * 1024 * 1024
"""Answers that wait to be read, of all clients; beyond it the slowest is cut off."""
MOST_CONNECTIONS = 4_000
MORE_FILES = 200
"""Files that are no connections: the database, the log, pipes."""
STARTUP_FAILURE = 3
"""The exit status that uvicorn's own command has for it."""


class Protocol(HttpToolsProtocol):
    """Hangs up on whoever sends or reads too slowly, or sends too many headers."""

    _timer: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _headers_due = False
    _received = 0
    _headers = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A first request is due."""
        super().connection_made(transport)
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is due any more."""
        self._complete()
        self._was_read()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some of it, perhaps with the start of the body."""
        were_due = self._headers_due
        super().data_received(data)
        if self._headers_due:
            # What they begin in may be the rest of a body that was refused.
            self._received += len(data) if were_due else 0
            if self._received > MOST_HEADER_BYTES:
                self._complete()
                self.transport.close()
        elif self._timer is None and self.cycle is not None and self.cycle.response_complete:
            # The rest of a refused body, or empty lines; they stopped the keep-alive timer.
            self._timer = self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def on_message_begin(self) -> None:
        """The first bytes of a request."""
        super().on_message_begin()
        if not self._headers_due:
            self._expect_headers()

    def on_header(self, name: bytes, value: bytes) -> None:
        """One more; raises, and so ends the reading, where there are too many."""
        self._headers += 1
        if self._headers > MOST_HEADERS:
            raise ValueError(f"more than {MOST_HEADERS} headers")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The body has limits of its own."""
        self._complete()
        if not self.url.startswith((b"/", b"*")):
            self._name_host()
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """The client reads more slowly than an answer is written."""
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(READ_SECONDS, self.transport.abort)
        self._relieve()

    def resume_writing(self) -> None:
        """It has read what was written so far."""
        super().resume_writing()
        if self._unwritten == 0:
            self._was_read()

    def on_response_complete(self) -> None:
        """All of an answer is written, and all but a little of it is read unless it waits."""
        super().on_response_complete()
        if not self.flow.write_paused:
            self._was_read()

    def _name_host(self) -> None:
        """What ``GET http://name/path`` names stands in for a Host header (RFC 9112, 3.2.2)."""
        host = self.url.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]
        self.headers[:] = [(name, value) for name, value in self.headers if name != b"host"]
        self.headers.append((b"host", host))

    @property
    def _unwritten(self) -> int:
        """Bytes of the answer under way that wait to be written."""
        under_way = self.cycle is not None and not self.cycle.response_complete
        return self.cycle.expected_content_length if under_way else 0

    def _expect_headers(self) -> None:
        self._complete()
        self._headers_due = True
        self._received = self._headers = 0
        self._timer = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _complete(self) -> None:
        self._headers_due = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _was_read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _relieve(self) -> None:
        """Cut off the slowest readers while too much waits for them."""
        since = {
            c: c._unread.when()
            for c in self.connections
            if isinstance(c, Protocol) and c._unread is not None
        }
        slowest = sorted(since, key=since.__getitem__)
        sizes = [c.transport.get_write_buffer_size() + c._unwritten for c in slowest]
        waiting = sum(sizes)
        for connection, size in zip(slowest[:-1], sizes, strict=False):
            if waiting <= MOST_UNREAD_BYTES:
                break
            waiting -= size
            connection._was_read()
            connection.transport.abort()


class Server(uvicorn.Server):
    """Ends what has no end of its own when it is told to stop.

    The caller of a running fit gets 503 now, and asks another one; who follows a job asks again.
    """

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """SIGTERM or SIGINT."""
        app = self.config.app
        assert isinstance(app, FastAPI)
        app.state.services.classifiers.close()
        app.state.services.ending.set()
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


def run(
    app: FastAPI, host: str, port: int, log_level: str, worker: tuple[int, int] | None = None
) -> None:
    """Serve until a signal; other requests have ``DRAIN_SECONDS`` to finish.

    ``worker``: the descriptor of a socket that listens already, and the parent that opened it.
    """
    _allow_files(MOST_CONNECTIONS + MORE_FILES)
    server = Server(configuration(app, host=host, port=port, log_config=None))
    sockets = None
    if worker is not None:
        sockets = [socket.socket(fileno=worker[0])]
        threading.Thread(target=_outlive_nobody, args=worker[1:], daemon=True).start()
    with suppress(KeyboardInterrupt):
        server.run(sockets)
    if not server.started:
        sys.exit(STARTUP_FAILURE)


def _outlive_nobody(parent: int) -> None:
    """End as after a signal when the process that started this one is gone."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os.kill(os.getpid(), signal.SIGTERM)


def _allow_files(wanted: int) -> None:
    """Open so many, where the system lets this process have them; 1,024 is the usual start."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
