"""What takes calls, lists and plans to the service: one that waits, one that is awaited."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import aclosing
from functools import partial
from itertools import count
from typing import TypeVar

import httpx

from priorshift_client.calls import Answer, Call, Listing
from priorshift_client.errors import PriorshiftError, TransportError
from priorshift_client.plans import Listen, Pause, Plan, Tell, next_step
from priorshift_client.retries import Retries
from priorshift_client.streams import iterate_events, iterate_events_async
from priorshift_client.wire import Connection, read_response, transport_error

T = TypeVar("T")


class Runner:
    """Waits for the answers."""

    def __init__(self, http: httpx.Client, connection: Connection, retries: Retries) -> None:
        self._http, self._connection, self._retries = http, connection, retries

    def run(self, call: Call[T]) -> T:
        """Send a call until it is answered, or not worth sending again."""
        for attempt in count():
            outcome = self._send(call)
            pause = self._retries.pause(call, outcome, attempt)
            if pause is None:
                return call.result(outcome)
            time.sleep(pause)
        raise AssertionError("unreachable")

    def listen(self, call: Call[T]) -> Iterator[T]:
        """The events of a stream, until it ends; it is opened once."""
        return iterate_events(self._http, self._connection.request(call, self._http), call)

    def paginate(self, listing: Listing[T]) -> Iterator[T]:
        """The items of a list; pages are fetched as they are needed."""
        cursor, more = None, True
        while more:
            page = self.run(listing.page(cursor))
            yield from page.items
            cursor = page.next_cursor
            more = cursor is not None

    def iterate(self, plan: Plan[T]) -> Generator[T, None, None]:
        """All that a plan tells."""
        go_on, stream = partial(next, plan), None
        while (step := next_step(go_on)) is not None:
            result = None
            try:
                match step:
                    case Tell(item):
                        yield item
                    case Pause(seconds):
                        time.sleep(seconds)
                    case Listen(call):
                        stream = stream or self.listen(call)
                        result = next(stream, None)
                        stream = None if result is None else stream
                    case call:
                        result = self.run(call)
            except PriorshiftError as error:
                go_on, stream = partial(plan.throw, error), None
            else:
                go_on = partial(plan.send, result)

    def finish(self, plan: Plan[T]) -> T:
        """The first thing that a plan tells."""
        return next(self.iterate(plan))

    def _send(self, call: Call[T]) -> Answer | TransportError:
        try:
            return read_response(self._http.send(self._connection.request(call, self._http)))
        except (httpx.TransportError, httpx.DecodingError) as error:
            return transport_error(error, call)


class AsyncRunner:
    """The same on asyncio, awaited."""

    def __init__(self, http: httpx.AsyncClient, connection: Connection, retries: Retries) -> None:
        self._http, self._connection, self._retries = http, connection, retries

    async def run(self, call: Call[T]) -> T:
        """Send a call until it is answered, or not worth sending again."""
        for attempt in count():
            outcome = await self._send(call)
            pause = self._retries.pause(call, outcome, attempt)
            if pause is None:
                return call.result(outcome)
            await asyncio.sleep(pause)
        raise AssertionError("unreachable")

    def listen(self, call: Call[T]) -> AsyncGenerator[T, None]:
        """The events of a stream, until it ends; it is opened once."""
        return iterate_events_async(self._http, self._connection.request(call, self._http), call)

    async def paginate(self, listing: Listing[T]) -> AsyncIterator[T]:
        """The items of a list; pages are fetched as they are needed."""
        cursor, more = None, True
        while more:
            page = await self.run(listing.page(cursor))
            for item in page.items:
                yield item
            cursor = page.next_cursor
            more = cursor is not None

    async def iterate(self, plan: Plan[T]) -> AsyncGenerator[T, None]:
        """All that a plan tells."""
        go_on, stream = partial(next, plan), None
        try:
            while (step := next_step(go_on)) is not None:
                result = None
                try:
                    match step:
                        case Tell(item):
                            yield item
                        case Pause(seconds):
                            await asyncio.sleep(seconds)
                        case Listen(call):
                            stream = stream or self.listen(call)
                            result = await anext(stream, None)
                            stream = None if result is None else stream
                        case call:
                            result = await self.run(call)
                except PriorshiftError as error:
                    go_on, stream = partial(plan.throw, error), None
                else:
                    go_on = partial(plan.send, result)
        finally:
            if stream is not None:
                await stream.aclose()

    async def finish(self, plan: Plan[T]) -> T:
        """The first thing that a plan tells."""
        async with aclosing(self.iterate(plan)) as items:
            return await anext(items)

    async def _send(self, call: Call[T]) -> Answer | TransportError:
        try:
            return read_response(await self._http.send(self._connection.request(call, self._http)))
        except (httpx.TransportError, httpx.DecodingError) as error:
            return transport_error(error, call)
