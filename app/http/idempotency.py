"""Writes that happen once: the answer is recorded in the transaction that writes."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header, Request
from starlette.responses import Response

from app.clock import now
from app.core import deadline
from app.core.errors import InvalidInput
from app.core.lazy import cached_property
from app.http.audit_trail import Trail, TrailDep
from app.http.body import Body, Payload
from models_store.errors import AlreadyAnswered, AlreadyExists
from models_store.records import Answer
from models_store.store import Store, UnitOfWork


class ShownOnce(Response):
    """An answer that holds a secret; ``kept``: what whoever asks again gets in its place."""

    def __init__(self, response: Response, kept: Response) -> None:
        super().__init__(response.body, response.status_code, response.headers)
        self.kept = kept


Work = Callable[[UnitOfWork], tuple[int | None, Response]]


@dataclass(frozen=True)
class Once:
    """One writing request; ``key`` is None where the caller sent no Idempotency-Key."""

    store: Store
    route: str
    key: str | None
    payload: Payload
    trail: Trail

    def replay(self) -> Response | None:
        """The answer that this key got before."""
        if self.key is None:
            return None
        with self.store.read() as unit:
            found = unit.idempotency.find(self._owner, self.route, self.key, self._hash, now())
        if found is None:
            return None
        headers = {**found.headers, "Idempotency-Replayed": "true"}
        return Response(found.body, found.status, headers)

    def write(self, work: Work) -> Response:
        """The answer that this key got before, or else ``commit``."""
        replayed = self.replay()
        return self.commit(work) if replayed is None else replayed

    def commit(self, work: Work) -> Response:
        """Run ``work`` in a transaction that also records its answer, and leaves a trail.

        ``work`` gives the id of the model that it wrote for, None for none, and the answer. A
        concurrent request with the same key may win the race anywhere in it: then its answer is
        given.
        """
        try:
            with self.store.write() as unit:
                model_id, response = work(unit)
                self.trail.note(unit)
                if self.key is not None:
                    self._record(unit, self.key, model_id, response)
                return response
        except (AlreadyAnswered, AlreadyExists):
            replayed = self.replay()
            if replayed is None:
                raise
            return replayed

    @property
    def _owner(self) -> str:
        return self.trail.caller.owner

    @cached_property
    def _hash(self) -> str:
        """Of what was asked; only a request with a key pays for it."""
        state = hashlib.sha256(self.payload.media_type.encode() + b"\n")
        for name, value in self.payload.query:
            state.update(f"{name}={value}&".encode())
        state.update(self.payload.body)
        return state.hexdigest()

    def _record(self, unit: UnitOfWork, key: str, model_id: int | None, said: Response) -> None:
        response = said.kept if isinstance(said, ShownOnce) else said
        kept = {k: v for k, v in response.headers.items() if k != "content-length"}
        answer = Answer(response.status_code, kept, bytes(response.body))
        unit.idempotency.add(self._owner, self.route, key, self._hash, model_id, answer, now())


class Twins:
    """Lets requests of one key wait for each other; all of it runs on the event loop."""

    def __init__(self) -> None:
        self._turns: dict[tuple[str, str, str], tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def turn(self, twin: tuple[str, str, str]) -> AsyncIterator[None]:
        """Wait until no other request has this owner, route and key."""
        lock, others = self._turns.get(twin, (asyncio.Lock(), 0))
        self._turns[twin] = lock, others + 1
        try:
            async with lock:
                yield
        finally:
            lock, others = self._turns.pop(twin)
            if others > 1:
                self._turns[twin] = lock, others - 1


Key = Annotated[
    str | None, Header(max_length=255, description="The same key, the same answer, for 24 hours")
]


async def _once(
    request: Request, payload: Body, trail: TrailDep, idempotency_key: Key = None
) -> AsyncIterator[Once]:
    async with _turn(request, payload, trail, idempotency_key) as once:
        yield once


async def _bodiless(
    request: Request, trail: TrailDep, idempotency_key: Key = None
) -> AsyncIterator[Once]:
    payload = Payload(b"", "", tuple(request.query_params.multi_items()))
    async with _turn(request, payload, trail, idempotency_key) as once:
        yield once


@asynccontextmanager
async def _turn(
    request: Request, payload: Payload, trail: Trail, idempotency_key: str | None
) -> AsyncIterator[Once]:
    if idempotency_key is not None and not (idempotency_key and idempotency_key.isprintable()):
        message = "must be 1 to 255 printable characters"
        raise InvalidInput.at("/header/Idempotency-Key", message)
    # The path as it came, percent-encoded: plain ASCII whatever it stands for.
    route = f"{request.method} {request.scope['raw_path'].decode('latin-1')}"
    once = Once(request.app.state.store, route, idempotency_key, payload, trail)
    if idempotency_key is None:
        yield once
        return
    twins: Twins = request.app.state.twins
    async with twins.turn((trail.caller.owner, route, idempotency_key)):
        deadline.renew()
        yield once


OnceDep = Annotated[Once, Depends(_once, scope="function")]
BodilessOnceDep = Annotated[Once, Depends(_bodiless, scope="function")]
"""Of requests that bring no body."""
