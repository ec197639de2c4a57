"""Calls and answers in the terms of httpx, for both clients."""

import gzip
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx

from priorshift_client.calls import Answer, Call
from priorshift_client.errors import TransportError

Compression = Literal["gzip"]


@dataclass(frozen=True)
class Connection:
    """Where the service is, and how bodies travel. The key is in no representation."""

    base_url: httpx.URL
    headers: dict[str, str] = field(repr=False)
    timeout: float
    compress: Compression | None = None

    def __str__(self) -> str:
        return str(self.base_url.copy_with(userinfo=b""))

    def request(self, call: Call[Any], client: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        """The call for httpx."""
        headers, body = {**self.headers, **call.headers}, call.body
        if body is not None and self.compress == "gzip":
            headers["Content-Encoding"], body = "gzip", gzip.compress(body, 6)
        timeout = httpx.Timeout(self.timeout, read=max(self.timeout, call.patience))
        return client.build_request(
            call.method,
            call.path,
            params=call.query,
            content=body,
            headers=headers,
            timeout=timeout,
        )


def connect(
    base_url: str, key: str | None, timeout: float, compress: Compression | None
) -> Connection:
    """Checked; ``ValueError`` does not show the key."""
    url = httpx.URL(base_url)
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("base_url is the address of the service, like https://priors.example")
    if compress not in (None, "gzip"):
        raise ValueError(f"bodies are compressed with gzip or not at all, not {compress!r}")
    if key is not None and not (key and key.isascii() and key.isprintable() and " " not in key):
        raise ValueError("the key holds characters that no key has; is there a line end in it?")
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return Connection(url, headers, timeout, compress)


def read_response(response: httpx.Response) -> Answer:
    """The answer of httpx, whole."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status_code, headers, response.content)


def transport_error(
    error: httpx.TransportError | httpx.DecodingError, call: Call[Any]
) -> TransportError:
    """What happened to the call on its way."""
    reason = str(error) or type(error).__name__
    return TransportError(f"{call.method} {call.path}: {reason}")
