"""Writes that happen once: the answer is recorded in the transaction that writes."""

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, FastAPI, Header, Request
from starlette.responses import Response

from app.clock import now
from app.core import deadline
from app.core.errors import InvalidInput
from app.core.lazy import cached_property
from app.http.audit_trail import Trail, TrailDep
from app.http.body import Body, Payload
from app.services import services_of
from models_store.errors import AlreadyAnswered, AlreadyExists
from models_store.records import RecordedAnswer
from models_store.store import Store, UnitOfWork


class ShownOnce(Response):
    """An answer that holds a secret; ``kept``: what whoever asks again gets in its place."""

    def __init__(self, response: Response, kept: Response) -> None:
        super().__init__(response.body, response.status_code, response.headers)
        self.kept = kept


class Replayed(Exception):
    """The answer was given before, under the same Idempotency-Key: here it is."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


def install(app: FastAPI) -> None:
    """Register the handler of ``Replayed``."""
    app.add_exception_handler(Replayed, _replayed)


async def _replayed(request: Request, error: Exception) -> Response:
    assert isinstance(error, Replayed)
    return error.response


Work = Callable[[UnitOfWork], tuple[int | None, Response]]


@dataclass(frozen=True)
class Once:
    """One writing request; ``key`` is None where the caller sent no Idempotency-Key."""

    store: Store
    route: str
    key: str | None
    payload: Payload
    trail: Trail

    def require_new(self) -> None:
        """``Replayed`` where this key got an answer before."""
        if self.key is None:
            return
        with self.store.read() as unit:
            found = unit.idempotency.find(self._owner, self.route, self.key, self._hash, now())
        if found is not None:
            headers = {**found.headers, "Idempotency-Replayed": "true"}
            raise Replayed(Response(found.body, found.status, headers))

    def write(self, work: Work) -> Response:
        """``commit``, unless this key got an answer before."""
        self.require_new()
        return self.commit(work)

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
            self.require_new()
            raise

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
        answer = RecordedAnswer(response.status_code, kept, bytes(response.body))
        unit.idempotency.add(self._owner, self.route, key, self._hash, model_id, answer, now())


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
    services = services_of(request)
    once = Once(services.store, route, idempotency_key, payload, trail)
    if idempotency_key is None:
        yield once
        return
    async with services.twins.turn((trail.caller.owner, route, idempotency_key)):
        deadline.renew()
        yield once


OnceDep = Annotated[Once, Depends(_once, scope="function")]
BodilessOnceDep = Annotated[Once, Depends(_bodiless, scope="function")]
"""Of requests that bring no body."""
