"""Server-sent events in the terms of httpx, for both clients.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from typing import TypeVar

import httpx

from priorshift_client.calls import Answer, Call
from priorshift_client.errors import TransportError
from priorshift_client.wire import read_response, transport_error

T = TypeVar("T")
EVENTS = "text/event-stream"


class Silence(TransportError):
    """A stream was opened and said nothing for too long: something between holds it back."""


@dataclass
class Lines:
    """Puts the data of an event together; one that is cut short is none."""

    _data: list[str] = field(default_factory=list)

    def hear(self, line: str) -> bytes | None:
        """The data of the event that ends with this line."""
        name, _, value = line.partition(":")
        if line == "":
            data, self._data = "\n".join(self._data), []
            return data.encode() or None
        if name == "data":
            self._data.append(value.removeprefix(" "))
        return None


def iterate_events(http: httpx.Client, request: httpx.Request, call: Call[T]) -> Iterator[T]:
    """What the events say, read as an answer of the call each, until the stream ends."""
    lines = Lines()
    try:
        with closing(http.send(request, stream=True)) as response:
            if not _streams(response):
                response.read()
                yield call.result(read_response(response))
                return
            for line in response.iter_lines():
                data = lines.hear(line)
                if data is not None:
                    yield call.result(Answer(response.status_code, {}, data))
    except (httpx.TransportError, httpx.DecodingError) as error:
        raise _lost(error, call) from error


async def iterate_events_async(
    http: httpx.AsyncClient, request: httpx.Request, call: Call[T]
) -> AsyncGenerator[T, None]:
    """The same, for ``async for``."""
    lines = Lines()
    try:
        async with aclosing(await http.send(request, stream=True)) as response:
            if not _streams(response):
                await response.aread()
                yield call.result(read_response(response))
                return
            async for line in response.aiter_lines():
                data = lines.hear(line)
                if data is not None:
                    yield call.result(Answer(response.status_code, {}, data))
    except (httpx.TransportError, httpx.DecodingError) as error:
        raise _lost(error, call) from error


def _streams(response: httpx.Response) -> bool:
    kind = response.headers.get("content-type", "")
    return response.status_code == 200 and kind.startswith(EVENTS)


def _lost(error: httpx.TransportError | httpx.DecodingError, call: Call[T]) -> TransportError:
    lost = transport_error(error, call)
    return Silence(str(lost)) if isinstance(error, httpx.ReadTimeout) else lost
