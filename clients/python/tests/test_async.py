"""The asynchronous client: the same operations, awaited."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeVar

import numpy as np
import pytest

from priorshift_client import AsyncClient, Client, InvalidInput, NotFound, Source
from priorshift_client.methods import ClientMethod, Resource
from tests.api.sources import CLASSES, scores, validation

T = TypeVar("T")
LABELS, ROWS = scores(np.random.default_rng(6), 200, 0.5)


def run(base: str, work: Callable[[AsyncClient], Awaitable[T]]) -> T:
    async def main() -> T:
        async with AsyncClient(base) as client:
            return await work(client)

    return asyncio.run(main())


def test_from_registering_to_history(base: str) -> None:
    async def work(client: AsyncClient) -> None:
        given = validation(200)
        await client.models.create("awaited", CLASSES, description="d")
        await client.versions.register("awaited", Source(given["labels"], given["posteriors"]))
        await client.aliases.put("awaited", "champion", 1)
        found = await client.estimate("awaited", ROWS, "@champion")
        kept = [estimate async for estimate in client.history("awaited", limit=1)]
        assert [estimate.id for estimate in kept] == [found.id]
        assert found.id is not None
        assert (await client.estimates.get(found.id)).prevalence == found.prevalence
        adjusted = await client.posteriors("awaited", ROWS)
        assert adjusted.array.shape == (200, 2)
        assert (await client.shift_test("awaited", ROWS)).detected
        inside = await client.region_test("awaited", ROWS, {"legit": 0.5, "fraud": 0.5})
        assert inside.size == 200
        await client.bias_adjustment("awaited", {"legit": 0, "fraud": 1}, ROWS)
        labels = [CLASSES[k] for k in LABELS]
        told = await client.evaluate("awaited", labels, estimate=found)
        assert [e.id async for e in client.evaluations.list("awaited")] == [told.id]
        assert "awaited" in [model.name async for model in client.models.list(limit=1)]
        assert [v.version async for v in client.versions.list("awaited")] == [1]
        assert (await client.versions.scorecard("awaited")).version == 1
        assert (await client.health(), (await client.release()).name) == ("ready", "priorshift")
        await client.models.delete("awaited", force=True)

    run(base, work)


def test_many_at_a_time(base: str, client: Client, cards: str) -> None:
    async def work(waiter: AsyncClient) -> list[dict[str, float]]:
        calls = [waiter.estimate(cards, ROWS[k : k + 100], keep=False) for k in range(20)]
        return [found.prevalence.shares for found in await asyncio.gather(*calls)]

    assert run(base, work)[7] == client.estimate(cards, ROWS[7:107], keep=False).prevalence.shares


def test_problems_are_raised_where_they_are_awaited(base: str, cards: str) -> None:
    async def work(client: AsyncClient) -> None:
        with pytest.raises(NotFound):
            await client.models.get("nobody")
        with pytest.raises(InvalidInput) as raised:
            await client.estimate(cards, [[0.5, 0.5], [0.5]])
        assert raised.value.rows == (1,)

    run(base, work)


def methods(owner: object) -> dict[str, str]:
    """The signatures of a resource's methods by name, and those of the resources below it."""
    found: dict[str, str] = {}
    for name in [name for name in dir(owner) if not name.startswith("_")]:
        member = getattr(owner, name)
        if isinstance(member, Resource):
            below = methods(member)
            found |= {f"{name}.{method}": signature for method, signature in below.items()}
        elif isinstance(getattr(type(owner), name), ClientMethod):
            found[name] = f"{inspect.signature(member)} {member.__doc__}"
    return found


def test_both_clients_do_the_same() -> None:
    blocking, awaited = Client("http://127.0.0.1:1"), AsyncClient("http://127.0.0.1:1")
    found = methods(blocking)
    assert {"estimate", "models.list", "jobs.wait", "webhooks.test"} <= set(found)
    assert found == methods(awaited)
    assert isinstance(blocking.models.list(), Iterator)
    assert isinstance(awaited.models.list(), AsyncIterator)


def test_methods_tell_what_they_do(client: Client) -> None:
    assert client.estimate.__doc__ == type(client).estimate.__doc__
    assert "population" in (client.estimate.__doc__ or "")
    assert repr(AsyncClient("http://127.0.0.1:1")) == "AsyncClient('http://127.0.0.1:1')"
