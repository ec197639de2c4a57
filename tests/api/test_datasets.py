"""Data sets as requests describe them: hostile paths end as problem+json, whatever they are."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from app.datasets.dataset import resolve
from app.datasets.roots import Roots
from app.http import problems
from app.intake.parse import envelope
from app.schemas.datasets import DatasetIn
from tests.datasets.test_access import HOSTILE, tree
from tests.datasets.test_dataset import CLASSES, table, write

__all__ = ["tree"]


@pytest.fixture
def service(tree: Path) -> FastAPI:
    """Nothing but a route that resolves a data set, behind the service's own errors."""
    app = FastAPI()
    problems.install(app)

    @app.post("/resolve")
    def look(body: dict[str, Any]) -> int:
        given = envelope(DatasetIn, body)
        return len(resolve(Roots.of([str(tree)]), given.asked(), CLASSES).partitions)

    return app


def sent(app: FastAPI, **dataset: Any) -> httpx.Response:
    async def named(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "request_id": "r"}, receive, send)

    async def post() -> httpx.Response:
        transport = httpx.ASGITransport(app=named)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            headers = {"content-type": "application/json"}
            return await client.post("/resolve", content=json.dumps(dataset), headers=headers)

    return asyncio.run(post())


@pytest.mark.parametrize("path", HOSTILE)
def test_hostile_paths_end_as_problems(service: FastAPI, tree: Path, path: str) -> None:
    answer = sent(service, path=path)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    errors = answer.json()["errors"]
    assert [error["pointer"].removeprefix("/dataset") for error in errors] == ["/path"]
    assert str(tree) not in answer.text


def test_a_good_one_does_not(service: FastAPI, tree: Path) -> None:
    write(tree / "scores/a.parquet", table(10))
    answer = sent(
        service,
        path="scores/a.parquet",
        columns={"fraud": "fraud"},
        label="label",
        filter="country = 'BE' and amount > 10",
        keys=["id"],
        on_error="skip",
    )
    assert (answer.status_code, answer.json()) == (200, 1)


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"root": "/etc"}, "/root"),
        ({"credentials": {"key": "k"}}, "/credentials"),
        ({"on_error": "ignore"}, "/on_error"),
        ({"columns": {"fraud": 1}}, "/columns/fraud"),
        ({"filter": ""}, "/filter"),
        ({"filter": "__import__('os').system('id')"}, "/dataset/filter"),
        ({"path": ["a.csv"]}, "/path"),
        ({"path": 1}, "/path"),
    ],
)
def test_other_faults_are_named(service: FastAPI, wrong: dict[str, Any], pointer: str) -> None:
    answer = sent(service, **{"path": "scores/a.csv", **wrong})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer
