"""One POST: to the very address that was checked, and over within its time.

The host is resolved here and nowhere else, all its addresses are checked, and the connection goes
to one of those, while TLS and the Host header keep the name. No redirects, no proxies, nothing from
the environment but the certificates that are trusted.
"""

import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from time import monotonic

import httpcore

from app.webhooks.addresses import AddressRefused, Allowed, checked
from app.webhooks.urls import Target

SECONDS = 15.0
"""For all of it, from the first connection to the last byte that is read."""
CONNECT_SECONDS = 5.0
MOST_BYTES = 16 * 1024
"""Of an answer; more is not read. Nothing of it is kept."""


@dataclass(frozen=True)
class Outcome:
    """What came of an attempt: a status, or why there is none. ``retry_after`` as it was sent."""

    status: int | None
    error: str | None
    seconds: float
    retry_after: str | None = None


class _Timed(httpcore.NetworkStream):
    """A connection whose every step ends with the time for the whole."""

    def __init__(self, stream: httpcore.NetworkStream, end: float) -> None:
        self._stream = stream
        self._end = end

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(self._end))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(self._end))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        inner = self._stream.start_tls(ssl_context, server_hostname, _left(self._end))
        return _Timed(inner, self._end)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


def _left(end: float) -> float:
    left = end - monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("the time for the attempt is over")
    return left


class _Checked(httpcore.NetworkBackend):
    """Connects to addresses that are admitted, in their order, until one answers."""

    def __init__(self, allowed: Allowed, end: float) -> None:
        self._allowed = allowed
        self._end = end
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[object] | None = None,
    ) -> httpcore.NetworkStream:
        failed: Exception | None = None
        for address in checked(host, port, self._allowed):
            seconds = min(CONNECT_SECONDS, _left(self._end))
            try:
                stream = self._backend.connect_tcp(str(address), port, seconds)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
            else:
                return _Timed(stream, self._end)
        raise failed or httpcore.ConnectError("the host has no address")


class Sender:
    """Posts events."""

    def __init__(self, allowed: Allowed, certificates: ssl.SSLContext) -> None:
        self.allowed = allowed
        self._certificates = certificates

    def post(self, target: Target, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Send ``body`` once; whatever happens is an outcome."""
        began = monotonic()
        try:
            status, retry_after = self._post(target, headers, body, began + SECONDS)
        except AddressRefused as error:
            return Outcome(None, f"refused: {error}", monotonic() - began)
        except httpcore.TimeoutException:
            return Outcome(None, "timeout", monotonic() - began)
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
            return Outcome(None, _told(error), monotonic() - began)
        return Outcome(status, None, monotonic() - began, retry_after)

    def _post(
        self, target: Target, headers: Mapping[str, str], body: bytes, end: float
    ) -> tuple[int, str | None]:
        if target.scheme != "https" and not self.allowed.plainly(target.host):
            raise AddressRefused("http is for hosts that the operator allows")
        url = httpcore.URL(
            scheme=target.scheme.encode(),
            host=target.host.encode(),
            port=target.port,
            target=target.path.encode(),
        )
        named = {"Host": target.authority, **headers, "Content-Length": str(len(body))}
        sent = [(name.encode(), value.encode()) for name, value in named.items()]
        pool = httpcore.ConnectionPool(
            ssl_context=self._certificates,
            max_keepalive_connections=0,
            network_backend=_Checked(self.allowed, end),
        )
        with pool, pool.stream("POST", url, headers=sent, content=body) as response:
            found = {name.lower(): value for name, value in response.headers}
            _read(response)
            retry_after = found.get(b"retry-after", b"").decode("latin-1")[:100]
            return response.status, retry_after or None


def _read(response: httpcore.Response) -> None:
    """Read the answer as far as is bearable; the status stands however it ends."""
    size = 0
    try:
        for part in response.iter_stream():
            size += len(part)
            if size > MOST_BYTES:
                return
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
        return


def _told(error: Exception) -> str:
    """The kind of failure, without what the other side wrote."""
    inner = error.args[0] if error.args else None
    if isinstance(inner, ssl.SSLError):
        return f"TLS: {inner.reason}"
    kinds = {
        httpcore.ConnectError: "cannot connect",
        httpcore.NetworkError: "connection lost",
        httpcore.ProtocolError: "not HTTP",
        OSError: "host unknown",
    }
    return next(text for kind, text in kinds.items() if isinstance(error, kind))
