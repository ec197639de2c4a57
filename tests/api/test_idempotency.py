"""Idempotency-Key on every route that writes: the walk is over the routes, not over a list."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pytest

from app.http import scopes
from app.main import create_app
from app.schemas.examples import BODIES, VERSION, places
from app.settings import Settings
from models_store.engine import connect
from models_store.store import Store
from tests.api.sources import scores
from tests.api.test_access import ADMIN, Guarded, bearer, guarded_settings
from tests.conftest import served
from tests.jobs.places import write
from tests.stored.examples import ALERT

WRITES_NOTHING = {
    f"{VERSION}/posteriors",
    f"{VERSION}/shift-tests",
    f"{VERSION}/region-tests",
    f"{VERSION}/bias-adjustments",
    f"{VERSION}/adjusted-models",
    "/v1/adaptations/{id}/predictions",
}
"""POSTs that compute and keep nothing: the header changes nothing for them."""
OF_BROWSERS = {"/sign-in", "/sign-out"}
"""Forms of the page: they write nothing but a cookie."""
BODILESS = ("/v1/webhooks/{id}/secret", "/v1/webhooks/{id}/test")
SECRETS = ("key", "secret")


@pytest.fixture
def guarded(database_url: str, tmp_path: Path) -> Iterator[Guarded]:
    """A service in which every example works."""
    rows = scores(np.random.default_rng(0), 200, 0.3)[1]
    more: dict[str, Any] = {
        "country": ["BE", "NL"] * 100,
        "amount": [20.0] * 200,
        "transaction": ["t"] * 200,
    }
    write(tmp_path / "data" / "scores" / "2026-01" / "a.parquet", rows, **more)
    (tmp_path / "out").mkdir()
    given = guarded_settings(database_url, tmp_path).model_dump(exclude_unset=True)
    roots = {"data_roots": [str(tmp_path / "data")], "output_root": str(tmp_path / "out")}
    settings = Settings.model_validate({**given, **roots})
    store = Store(connect(database_url))
    with served(create_app(settings)) as client:
        client.headers = httpx.Headers(bearer(ADMIN))
        yield Guarded(client, store, settings)
    store.close()


def writes(guarded: Guarded) -> int:
    """How many the trail tells of."""
    count, cursor = 0, ""
    while True:
        page = guarded.client.get(f"/v1/audit?limit=200{cursor}").json()
        count += len(page["items"])
        if page["next_cursor"] is None:
            return count
        cursor = f"&cursor={page['next_cursor']}"


def story() -> Iterator[tuple[str, str, Any]]:
    """A request for every route that takes one, each possible after those before it."""
    for (method, path), bodies in BODIES.items():
        for body in bodies.values():
            yield method, path, body
        if path == "/v1/webhooks/{id}":
            for bodiless in BODILESS:
                if bodiless.endswith("test"):
                    yield "PATCH", path, {"disabled": False}
                yield "POST", bodiless, None


def without_secrets(answer: httpx.Response) -> dict[str, Any]:
    content: dict[str, Any] = answer.json()
    kept = {name: value for name, value in content.items() if name not in SECRETS}
    if any(content.get(name) for name in SECRETS):
        return kept | {"warnings": []}
    notes = [w for w in content.get("warnings", []) if w["code"] == "shown-once"]
    return kept | {"warnings": []} if notes else kept


def alert(store: Store) -> str:
    id = uuid4().hex
    with store.write() as unit:
        monitor = unit.monitors.get("cards-hourly")
        stream = unit.windows.stream(monitor.id, "BE", 10)
        content = {**ALERT, "id": id, "model": "cards", "state": "open", "note": ""}
        unit.alerts.open(monitor.id, stream.id, content, datetime.now(UTC))
    return id


def test_every_writing_route_answers_once(guarded: Guarded) -> None:
    tried, made = set(), ""
    for step, (method, path, body) in enumerate(story()):
        tried.add((method, path))
        if path == "/v1/alerts/{id}":
            made = alert(guarded.store)
        url = path.format(**{"id": made, **places(path)})
        headers = {"Idempotency-Key": f"step {step}"}
        before = writes(guarded)
        first = guarded.client.request(method, url, json=body, headers=headers)
        assert first.status_code in (200, 201, 202), (method, path, first.text)
        again = guarded.client.request(method, url, json=body, headers=headers)
        assert again.status_code == first.status_code, (method, path, again.text)
        if path in WRITES_NOTHING:
            assert writes(guarded) == before, path
            assert "idempotency-replayed" not in again.headers
            continue
        assert writes(guarded) == before + 1, (method, path)
        assert again.headers["idempotency-replayed"] == "true", (method, path)
        assert again.headers.get("location") == first.headers.get("location")
        assert without_secrets(again) == without_secrets(first)
        _require_told_once(first, again)
        if body is not None:
            other = guarded.client.request(
                method, url, content=json.dumps(body) + " ", headers=headers | JSON
            )
            assert other.status_code == 409, (method, path)
            assert "Idempotency-Key" in other.json()["detail"]
        made = str(first.json().get("id", made))
    routes = {key for key in scopes.RULES if key[0] in ("POST", "PUT", "PATCH")}
    assert tried == {key for key in routes if key[1] not in OF_BROWSERS}


JSON = {"content-type": "application/json"}


def _require_told_once(first: httpx.Response, again: httpx.Response) -> None:
    """A secret is in the first answer, and a word about it in its place in the second."""
    for name in SECRETS:
        secret = first.json().get(name)
        if secret is not None:
            assert again.json()[name] is None
            assert secret not in again.text
            assert [w["code"] for w in again.json()["warnings"]][-1] == "shown-once"


def test_every_route_says_whether_it_takes_the_header(guarded: Guarded) -> None:
    """The description has it for the routes that write, and for no others."""
    described = guarded.client.get("/openapi.json").json()["paths"]
    told = {
        (method.upper(), path)
        for path, item in described.items()
        for method, operation in item.items()
        if any(p["name"].lower() == "idempotency-key" for p in operation.get("parameters", []))
    }
    writing = {
        (method, path)
        for method, path in scopes.RULES
        if method in ("POST", "PUT", "PATCH") and path not in WRITES_NOTHING | OF_BROWSERS
    }
    assert told == writing


def test_no_secret_is_in_what_is_recorded(guarded: Guarded) -> None:
    body = {"name": "k", "scopes": ["read"]}
    headers = {"Idempotency-Key": "a"}
    key = guarded.client.post("/v1/api-keys", json=body, headers=headers).json()["key"]
    hook = {"url": "https://93.184.215.14/", "events": ["alert.opened"]}
    made = guarded.client.post("/v1/webhooks", json=hook, headers=headers).json()
    turned = guarded.client.post(f"/v1/webhooks/{made['id']}/secret", headers=headers).json()
    with guarded.store.engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT body, headers FROM idempotency").all()
    kept = b"".join(bytes(row.body) for row in rows).decode()
    assert len(rows) == 3
    for secret in (key, made["secret"], turned["secret"]):
        assert secret not in kept
    # The secret of the first answer is the webhook's; the repeated request made no other.
    assert made["secret"] != turned["secret"]
    assert guarded.client.get("/v1/models", headers=bearer(key)).status_code == 200


@pytest.mark.parametrize("path", ["/v1/api-keys", "/v1/webhooks"])
def test_requests_at_one_time_make_one(guarded: Guarded, path: str) -> None:
    """Of several workers, so that each computes; one shows the secret."""
    bodies = {
        "/v1/api-keys": {"name": "k", "scopes": ["read"]},
        "/v1/webhooks": {"url": "https://93.184.215.14/", "events": ["alert.opened"]},
    }
    with served(create_app(guarded.settings)) as other, ThreadPoolExecutor(8) as pool:
        # A first request builds the routes, under filters of warnings that all threads share.
        for client in (guarded.client, other):
            assert client.get("/v1/audit", headers=bearer(ADMIN)).is_success

        def ask(k: int) -> httpx.Response:
            client = (guarded.client, other)[k % 2]
            headers = {**bearer(ADMIN), "Idempotency-Key": "same"}
            return client.post(path, json=bodies[path], headers=headers)

        answers = list(pool.map(ask, range(8)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    shown = [a for a in answers if any(a.json().get(name) for name in SECRETS)]
    assert len(shown) == 1
    assert len(guarded.client.get(path).json()["items"]) == 1


def test_a_replay_needs_neither_name_service_nor_future(guarded: Guarded) -> None:
    """What was answered is answered again, though it would be refused today."""
    headers = {"Idempotency-Key": "k"}
    body = {
        "name": "short",
        "scopes": ["read"],
        "expires_at": datetime.now(UTC).replace(year=datetime.now(UTC).year + 1).isoformat(),
    }
    made = guarded.client.post("/v1/api-keys", json=body, headers=headers)
    guarded.client.delete(made.headers["location"])
    again = guarded.client.post("/v1/api-keys", json=body, headers=headers)
    assert again.json()["id"] == made.json()["id"]
