"""The client that is awaited, on asyncio."""

from collections.abc import AsyncGenerator
from typing import Self, TypeVar

import httpx

from priorshift_client.calls import Call
from priorshift_client.resources import BaseClient
from priorshift_client.retries import Retries
from priorshift_client.runners import AsyncRunner
from priorshift_client.wire import Connection

T = TypeVar("T")


class AsyncClient(BaseClient[AsyncRunner, httpx.AsyncBaseTransport]):
    """``Client`` with methods to be awaited, and lists for ``async for``."""

    _http: httpx.AsyncClient

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def run(self, call: Call[T]) -> T:
        """Send a call until it is answered, or not worth sending again."""
        return await self._runner.run(call)

    def listen(self, call: Call[T]) -> AsyncGenerator[T, None]:
        """What the events of a stream say, until it ends; it is opened once."""
        return self._runner.listen(call)

    def _open(
        self, connection: Connection, retries: Retries, transport: httpx.AsyncBaseTransport | None
    ) -> AsyncRunner:
        self._http = httpx.AsyncClient(base_url=connection.base_url, transport=transport)
        return AsyncRunner(self._http, connection, retries)
