"""The client that waits for its answers."""

from collections.abc import Iterator
from typing import Self, TypeVar

import httpx

from priorshift_client.calls import Call
from priorshift_client.resources import BaseClient
from priorshift_client.retries import Retries
from priorshift_client.runners import Runner
from priorshift_client.wire import Connection

T = TypeVar("T")


class Client(BaseClient[Runner, httpx.BaseTransport]):
    """A client of the service at ``base_url``; a context manager.

    ``timeout`` in seconds, of each wait for the network; trainings may take longer. ``retries``:
    how many more attempts a call gets that may be repeated, or a ``Retries``. ``compress="gzip"``
    for thin lines. ``transport`` is httpx's, for proxies and certificates of your own.
    """

    _http: httpx.Client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def run(self, call: Call[T]) -> T:
        """Send a call until it is answered, or not worth sending again."""
        return self._runner.run(call)

    def listen(self, call: Call[T]) -> Iterator[T]:
        """What the events of a stream say, until it ends; it is opened once."""
        return self._runner.listen(call)

    def _open(
        self, connection: Connection, retries: Retries, transport: httpx.BaseTransport | None
    ) -> Runner:
        self._http = httpx.Client(base_url=connection.base_url, transport=transport)
        return Runner(self._http, connection, retries)
