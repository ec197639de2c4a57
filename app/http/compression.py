"""Answers compressed with gzip or zstd, for callers that ask for it."""

import zlib
from typing import Protocol

import zstandard
from anyio.to_thread import run_sync
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.http.negotiation import qualities

SMALLEST = 1024
"""Bytes of an answer that are worth it."""
AT_ONCE = 1 << 16
"""Bytes that are compressed without a thread."""
GZIP = 31
"""zlib's window bits for a gzip stream."""
FAST = 1
"""Level of both: more would take longer than most networks save."""
TEXT = ("text/", "application/json", "application/problem+json", "application/x-ndjson")
"""Binary formats are left as they are: numbers hardly shrink, and Parquet is compressed."""


class Compressor(Protocol):
    """What zlib and zstandard have in common."""

    def compress(self, data: bytes, /) -> bytes:
        """Take in some of it; what is ready."""

    def flush(self) -> bytes:
        """The rest."""


def _compressor(encoding: str) -> Compressor:
    if encoding == "zstd":
        return zstandard.ZstdCompressor(level=FAST).compressobj()
    return zlib.compressobj(FAST, zlib.DEFLATED, GZIP)


def chosen(header: str) -> str | None:
    """What an Accept-Encoding header prefers, zstd where it does not care; None for neither."""
    wanted = qualities(header)
    fallback = wanted.get("*", 0.0)
    quality = {name: wanted.get(name, fallback) for name in ("zstd", "gzip")}
    best = max(quality, key=quality.__getitem__)
    plain = wanted.get("identity", 0.0)
    return best if quality[best] > 0 and quality[best] >= plain else None


class Compression:
    """Compresses texts of some length; their answers have a length still."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        encoding = chosen(Headers(scope=scope).get("accept-encoding", ""))
        await self.app(scope, receive, Answer(encoding, send).send)


class Answer:
    """An answer on its way; held back until its compressed length is known."""

    def __init__(self, encoding: str | None, send: Send) -> None:
        self._encoding = encoding
        self._send = send
        self._start: Message = {}
        self._compressor: Compressor | None = None
        self._content = bytearray()

    async def send(self, message: Message) -> None:
        """Pass a message, or hold it."""
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif self._compressor is None:
            await self._send(message)
        else:
            await self._add(self._compressor, message)

    async def _begin(self, message: Message) -> None:
        headers = MutableHeaders(raw=list(message["headers"]))
        if not _worth_it(headers):
            await self._send(message)
            return
        headers.add_vary_header("Accept-Encoding")
        message = {**message, "headers": headers.raw}
        if self._encoding is None:
            await self._send(message)
            return
        self._start, self._compressor = message, _compressor(self._encoding)

    async def _add(self, compressor: Compressor, message: Message) -> None:
        piece = message.get("body", b"")
        if len(piece) > AT_ONCE:
            self._content += await run_sync(compressor.compress, piece)
        else:
            self._content += compressor.compress(piece)
        if message.get("more_body", False):
            return
        self._content += compressor.flush()
        headers = MutableHeaders(raw=list(self._start["headers"]))
        headers["content-encoding"] = str(self._encoding)
        headers["content-length"] = str(len(self._content))
        await self._send({**self._start, "headers": headers.raw})
        await self._send({"type": "http.response.body", "body": bytes(self._content)})


def _worth_it(headers: MutableHeaders) -> bool:
    length = headers.get("content-length", "")
    long_enough = length.isdecimal() and int(length) >= SMALLEST
    text = headers.get("content-type", "").startswith(TEXT)
    return long_enough and text and "content-encoding" not in headers
