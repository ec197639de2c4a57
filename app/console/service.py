"""Where the commands send their requests: a running service, or one within this process."""

import asyncio
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import httpx
from rich.progress import Progress

from app.console.terminal import Terminal
from app.core.json_types import JsonObject

if TYPE_CHECKING:
    from app.settings import Settings

PIECE = 1 << 18
BARRED = 1 << 20
"""Uploads from here on show a bar, on a terminal."""
SILENT_SECONDS = 40.0
"""After which a stream that says nothing is left; the service says something every 15."""
LATER = (429, 502, 503, 504)


class RequestRefused(ValueError):
    """The service says no; the message is its own."""


class NotNow(RequestRefused):
    """The service says no, and might not a little later."""


class Unreachable(RuntimeError):
    """Nobody answers."""


@dataclass(frozen=True)
class Upload:
    """A body, its media type, and what is wanted back."""

    content: bytes
    kind: str
    accept: str = "application/json"


class Service(Protocol):
    """Sends one request and gives the answer, whatever its status."""

    def send(
        self, method: str, path: str, query: Mapping[str, str], upload: Upload | None
    ) -> httpx.Response:
        """The answer; ``Unreachable`` where there is none."""

    def events(self, path: str) -> Iterator[JsonObject]:
        """The data of server-sent events, for as long as they come."""


@dataclass(frozen=True)
class Remote:
    """A running service at ``url``; ``key`` opens it, where it needs one.

    ``ValueError`` for what is no address or no key, in words without it.
    """

    url: str
    key: str | None

    def __post_init__(self) -> None:
        try:
            sound = httpx.URL(self.url).scheme in ("http", "https")
        except httpx.InvalidURL:
            sound = False
        if not sound:
            raise ValueError("PRIORSHIFT_URL, or --url, is no address: write http://HOST:PORT")

    @property
    def _where(self) -> str:
        """The address without what opens it."""
        return str(httpx.URL(self.url).copy_with(userinfo=b""))

    def send(
        self, method: str, path: str, query: Mapping[str, str], upload: Upload | None
    ) -> httpx.Response:
        """Over HTTP."""
        headers = {**_headers(upload), **_opening(self.key)}
        content = None if upload is None else _watched(upload.content)
        try:
            with httpx.Client(base_url=self.url, timeout=600, verify=_trust()) as client:
                return client.request(method, path, params=query, headers=headers, content=content)
        except httpx.TransportError as error:
            raise Unreachable(f"no answer from {self._where}: {error}") from None

    def events(self, path: str) -> Iterator[JsonObject]:
        """As they come; ends where they end, and where the connection does."""
        limits = httpx.Timeout(10, read=SILENT_SECONDS)
        with (
            suppress(httpx.TransportError),
            httpx.Client(base_url=self.url, timeout=limits, verify=_trust()) as client,
            client.stream("GET", path, headers=_opening(self.key)) as answer,
        ):
            if answer.headers.get("content-type", "").startswith("text/event-stream"):
                lines = (line for line in answer.iter_lines() if line.startswith("data: "))
                yield from (json.loads(line.removeprefix("data: ")) for line in lines)


@dataclass(frozen=True)
class Local:
    """The application itself, on the database of the settings, without a server.

    ``key`` opens it, where the database has keys.
    """

    app: Any
    key: str | None = None

    def send(
        self, method: str, path: str, query: Mapping[str, str], upload: Upload | None
    ) -> httpx.Response:
        """Within this process."""

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost"
            ) as client:
                content = None if upload is None else upload.content
                headers = {**_headers(upload), **_opening(self.key)}
                return await client.request(
                    method, path, params=query, headers=headers, content=content
                )

        return asyncio.run(ask())

    def events(self, path: str) -> Iterator[JsonObject]:
        """None: what is asked within the process is answered at once."""
        return iter(())


def local_service(settings: "Settings", key: str | None) -> Local:
    """The application within this process, its database at this release."""
    from app.main import create_app
    from models_store import schema
    from models_store.engine import connect

    engine = connect(settings.database_url)
    schema.migrate(engine)
    engine.dispose()
    return Local(create_app(settings), key)


def ask(
    service: Service,
    verb: str,
    path: str,
    upload: Upload | None = None,
    /,
    **query: str | None,
) -> httpx.Response:
    """The answer of a request that went well; else ``RequestRefused`` in the service's words."""
    sent = {name: value for name, value in query.items() if value is not None}
    answer = service.send(verb, path, sent, upload)
    if answer.is_success:
        return answer
    raise (NotNow if answer.status_code in LATER else RequestRefused)(_words(answer))


@cache
def _trust() -> ssl.SSLContext:
    """Read once: it takes longer than a request."""
    return httpx.create_ssl_context()


def _words(answer: httpx.Response) -> str:
    try:
        problem = answer.json()
        return str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        return f"the service answers {answer.status_code}"


def _opening(key: str | None) -> dict[str, str]:
    if key is None:
        return {}
    if not (key.isascii() and key.isprintable()):
        raise ValueError("PRIORSHIFT_KEY, or --key, holds characters that no key has")
    return {"Authorization": f"Bearer {key}"}


def _headers(upload: Upload | None) -> dict[str, str]:
    if upload is None:
        return {}
    # Known in advance, the length need not be sent in chunks.
    length = str(len(upload.content))
    return {"Content-Type": upload.kind, "Accept": upload.accept, "Content-Length": length}


def _watched(content: bytes) -> bytes | Iterator[bytes]:
    console = Terminal(stderr=True)
    if len(content) < BARRED or not console.is_terminal:
        return content
    return _pieces(content, console)


def _pieces(content: bytes, console: Terminal) -> Iterator[bytes]:
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("sending", total=len(content))
        for start in range(0, len(content), PIECE):
            yield content[start : start + PIECE]
            progress.advance(task, PIECE)
