"""The examples at /docs, pasted one after another into an empty service."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from app.http.scopes import RULES
from app.main import create_app
from app.schemas.examples import BODIES, places
from app.settings import Settings
from tests.conftest import served

NOT_YET = {"/v1/alerts/{id}": (404,), "/v1/jobs": (422,)}
"""Addresses of what an empty service cannot have."""


@contextmanager
def serving(workspace: Path, sqlite_template: Path) -> Iterator[httpx.Client]:
    path = workspace / f"examples{uuid4().hex}.db"
    path.write_bytes(sqlite_template.read_bytes())
    secret = "a secret of more than thirty-two characters"
    settings = Settings(database_url=f"sqlite:///{path}", key_secret=secret)
    with served(create_app(settings)) as client:
        yield client


@pytest.fixture(scope="module")
def described(workspace: Path, sqlite_template: Path) -> Iterator[httpx.Client]:
    with serving(workspace, sqlite_template) as client:
        for address in ("/v1/models", "/v1/models/{name}/aliases/{alias}"):
            for method in ("POST", "PUT"):
                for body in BODIES.get((method, address), {}).values():
                    url = address.format(**places(address))
                    assert client.request(method, url, json=body).status_code in (200, 201)
        yield client


@pytest.fixture
def pasted(workspace: Path, sqlite_template: Path) -> Iterator[httpx.Client]:
    """One that has a key in the end, and is closed to everybody else."""
    with serving(workspace, sqlite_template) as client:
        yield client


def test_every_one_is_accepted_and_none_is_missing(pasted: httpx.Client) -> None:
    described = pasted
    description = described.get("/openapi.json").json()
    told, made = set(), ""
    for (method, address), bodies in BODIES.items():
        operation = description["paths"][address][method.lower()]
        shown = operation["requestBody"]["content"]["application/json"]["examples"]
        assert {name: item["value"] for name, item in shown.items()} == dict(bodies)
        told.add((method, address))
        url = address.format(**{"id": made, **places(address)})
        for name, body in bodies.items():
            answer = described.request(method, url, json=body)
            expected = NOT_YET.get(address, (200, 201, 202))
            assert answer.status_code in expected, (address, name, answer.text)
            made = str(answer.json().get("id", made))
    takes_bodies = {
        (method.upper(), address)
        for address, path in description["paths"].items()
        for method, operation in path.items()
        if "requestBody" in operation
    }
    assert told == takes_bodies
    assert takes_bodies <= set(RULES)


def test_addresses_have_examples_that_exist(described: httpx.Client) -> None:
    description = described.get("/openapi.json").json()
    version = "/v1/models/{name}/versions/{version}"
    for address in (version, f"{version}/parameters"):
        operation = description["paths"][address]["get"]
        parts = {p["name"]: p["example"] for p in operation["parameters"] if p["in"] == "path"}
        assert described.get(address.format(**parts)).status_code == 200


def test_every_shape_that_is_named_is_there(described: httpx.Client) -> None:
    text = described.get("/openapi.json").text
    named = set(re.findall('"#/components/schemas/([^"]+)"', text))
    assert named <= set(described.get("/openapi.json").json()["components"]["schemas"])


def test_no_shape_is_called_by_where_it_is_written(described: httpx.Client) -> None:
    shapes = described.get("/openapi.json").json()["components"]["schemas"]
    assert not [name for name in shapes if "__" in name]
