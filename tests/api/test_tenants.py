"""What a key restricted to models can learn of others: nothing, whatever names it tries."""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.http import scopes
from app.main import create_app
from models_store.engine import connect
from models_store.store import Store
from tests.api.sources import validation
from tests.api.test_access import ADMIN, Guarded, bearer, cards, guarded_settings
from tests.conftest import served
from tests.stored.examples import ALERT

IDS = ("estimate", "evaluation", "monitor", "alert", "job", "adaptation")
THEIRS = {what: f"{k + 1:032x}" for k, what in enumerate(IDS)}
"""Identities of what the other tenant has."""
WATCH = {"name": "watch", "model": "cards", "window": {"rows": 100}}
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/v1/models"): {"name": "other", "classes": ["a", "b"]},
    ("POST", "/v1/monitors"): WATCH,
    ("POST", "/v1/jobs"): {"kind": "estimate", "model": "other", "dataset": {"path": "a.csv"}},
    ("PATCH", "/v1/alerts/{id}"): {"state": "acknowledged"},
    ("PATCH", "/v1/monitors/{monitor}"): {"description": "mine"},
    ("POST", "/v1/monitors/{monitor}/observations"): {"predicted_counts": {"legit": 9}},
}
FILTERS = (
    "/v1/estimates?model=other",
    "/v1/estimates?segment.country=BE",
    "/v1/evaluations?model=other",
    "/v1/monitors?model=other",
    "/v1/monitors?limit=1",
    "/v1/alerts?monitor=watch",
    "/v1/alerts?monitor=other:watch",
    "/v1/alerts?state=open",
    "/v1/jobs?model=other",
    "/v1/jobs?state=queued",
    "/v1/models?limit=1",
)


@pytest.fixture
def worlds(
    workspace: Path, sqlite_template: Path, tmp_path: Path
) -> Iterator[tuple[Guarded, Guarded]]:
    """Two services: in the first another tenant has all that one can have, in the second none."""
    with ExitStack() as stack:
        found = []
        for name in ("full", "bare"):
            path = workspace / f"{name}{uuid4().hex}.db"
            shutil.copy(sqlite_template, path)
            settings = guarded_settings(f"sqlite:///{path}", tmp_path)
            store = Store(connect(settings.database_url))
            stack.callback(store.close)
            client = stack.enter_context(served(create_app(settings)))
            found.append(Guarded(client, store, settings))
        full, bare = found
        cards(full)
        cards(bare)
        cards(full, "other")
        answer = full.client.put(
            "/v1/models/other/aliases/champion", json={"version": 1}, headers=bearer(ADMIN)
        )
        assert answer.status_code == 200
        _keep_theirs(full.store)
        yield full, bare


def _keep_theirs(store: Store) -> None:
    at = datetime.now(UTC)
    with store.write() as unit:
        version = unit.versions.get("other", "1")
        content = {"id": THEIRS["estimate"], "model": "other"}
        unit.estimates.add(version.id, at, at, {"country": "BE"}, content)
        unit.evaluations.add(version.id, None, at, {"id": THEIRS["evaluation"]})
        unit.monitors.add(THEIRS["monitor"], "watch", version.model_id, WATCH, at)
        stream = unit.windows.stream(THEIRS["monitor"], "BE", 10)
        alert = {"id": THEIRS["alert"], "state": "open", "note": ""}
        unit.alerts.open(THEIRS["monitor"], stream.id, alert, at)
        unit.adaptations.add(version.id, at, {"id": THEIRS["adaptation"]}, {})
        unit.jobs.add(THEIRS["job"], version.model_id, "estimate", {"request": {}}, at)


def addresses(method: str, path: str) -> list[str]:
    """With every name of theirs that fits."""
    values = {"name": "other", "version": "1", "alias": "champion", "release": "1", "file": "x"}
    called = ["watch", "other:watch"] if "{monitor}" in path else [""]
    ids = [*THEIRS.values(), "0"] if "{id}" in path else [""]
    return [path.format(**values, monitor=name, id=id) for name in called for id in ids]


def told(answer: httpx.Response) -> Any:
    """An answer without what differs between any two services."""
    text = re.sub(r"[0-9a-f]{32}", "ID", answer.text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)", "TIME", text)
    kept = {k: v for k, v in answer.headers.items() if k in ("location", "allow", "content-type")}
    return answer.status_code, re.sub(r"[0-9a-f]{32}", "ID", json.dumps(kept)), text


def test_no_route_tells_what_other_tenants_have(worlds: tuple[Guarded, Guarded]) -> None:
    """Every route with every name of theirs, answered as where there is nothing of theirs."""
    asked = [
        (method, address, BODIES.get((method, path)))
        for method, path in sorted(scopes.RULES)
        if path not in ("/metrics", "/readyz", "/")
        for address in addresses(method, path)
    ]
    asked += [("GET", address, None) for address in FILTERS]
    # Once more, when there is a monitor of this name of one's own.
    asked += [("POST", "/v1/monitors", WATCH), ("GET", "/v1/monitors/watch", None)]
    full, _ = worlds
    keys = {}
    for world in worlds:
        keys[world.client] = world.key("read", "estimate", "register", models=["cards"])
    statuses = set()
    for method, address, body in asked:
        answers = [
            told(
                world.client.request(method, address, json=body, headers=bearer(keys[world.client]))
            )
            for world in worlds
        ]
        assert answers[0] == answers[1], (method, address)
        statuses.add(answers[0][0])
    assert {200, 201, 403, 404, 409} <= statuses
    page = full.client.get("/metrics", headers=bearer(keys[full.client])).text
    assert "other" not in page.replace("(other)", "")
    overview = full.client.get("/", headers=bearer(keys[full.client])).text
    assert "other" not in overview


def both(guarded: Guarded) -> tuple[str, str]:
    """Two tenants, each with a monitor of the same name; the first is older."""
    found = []
    for name in ("cards", "loans"):
        body = {
            "name": name,
            "classes": ["legit", "fraud"],
            "source": {"validation": validation(400)},
        }
        assert guarded.client.post("/v1/models", json=body, headers=bearer(ADMIN)).is_success
        key = guarded.key("read", "estimate", "register", models=[name])
        made = guarded.client.post(
            "/v1/monitors", json={**WATCH, "model": name}, headers=bearer(key)
        )
        assert made.status_code == 201, made.text
        assert made.headers["location"] == "/v1/monitors/watch"
        assert made.json()["name"] == "watch"
        found.append(key)
    return found[0], found[1]


@pytest.fixture
def guarded(database_url: str, tmp_path: Path) -> Iterator[Guarded]:
    settings = guarded_settings(database_url, tmp_path)
    store = Store(connect(database_url))
    with served(create_app(settings)) as client:
        yield Guarded(client, store, settings)
    store.close()


class TestNamesOfMonitors:
    def test_each_tenant_has_his_own(self, guarded: Guarded) -> None:
        for model, key in zip(("cards", "loans"), both(guarded), strict=True):
            for name in ("watch", f"{model}:watch"):
                found = guarded.client.get(f"/v1/monitors/{name}", headers=bearer(key)).json()
                assert (found["name"], found["model"]) == ("watch", model)
            listed = guarded.client.get("/v1/monitors", headers=bearer(key)).json()["items"]
            assert [item["name"] for item in listed] == ["watch"]

    def test_who_sees_both_has_two_names(self, guarded: Guarded) -> None:
        """The first keeps its name; by its name in a list everyone finds each."""
        both(guarded)
        wide = guarded.key("read", "register", models=["cards", "loans"])
        for key in (ADMIN, wide):
            listed = guarded.client.get("/v1/monitors", headers=bearer(key)).json()["items"]
            named = {item["name"]: item["model"] for item in listed}
            assert named == {"watch": "cards", "loans:watch": "loans"}
            for name, model in named.items():
                found = guarded.client.get(f"/v1/monitors/{name}", headers=bearer(key)).json()
                assert (found["name"], found["model"]) == (name, model)
            paged: list[str] = []
            cursor = ""
            while len(paged) < 2:
                page = guarded.client.get(
                    f"/v1/monitors?limit=1{cursor}", headers=bearer(key)
                ).json()
                paged += [item["name"] for item in page["items"]]
                cursor = f"&cursor={page['next_cursor']}"
            assert sorted(paged) == sorted(named)
            for model in ("cards", "loans"):
                answer = guarded.client.post(
                    "/v1/monitors", json={**WATCH, "model": model}, headers=bearer(key)
                )
                assert answer.status_code == 409

    def test_a_change_reaches_the_one_that_is_meant(self, guarded: Guarded) -> None:
        cards_key, loans_key = both(guarded)
        client = guarded.client
        for key, text in ((cards_key, "of cards"), (loans_key, "of loans")):
            body = {"description": text}
            assert client.patch("/v1/monitors/watch", json=body, headers=bearer(key)).is_success
        for name, text in (("watch", "of cards"), ("loans:watch", "of loans")):
            found = client.get(f"/v1/monitors/{name}", headers=bearer(ADMIN)).json()
            assert found["description"] == text
        assert client.delete("/v1/monitors/watch", headers=bearer(loans_key)).status_code == 204
        assert client.get("/v1/monitors/watch", headers=bearer(cards_key)).status_code == 200
        assert client.get("/v1/monitors/loans:watch", headers=bearer(ADMIN)).status_code == 404

    def test_alerts_events_and_metrics_say_which(self, guarded: Guarded) -> None:
        cards_key, loans_key = both(guarded)
        admin = bearer(ADMIN)
        wanted = {"watch": {"cards"}, "loans:watch": {"loans"}, "cards:watch": {"cards"}}
        hooks = {}
        for monitor in wanted:
            body = {"url": "https://93.184.215.14/", "events": ["alert.acknowledged"]}
            made = guarded.client.post(
                "/v1/webhooks", json={**body, "monitors": [monitor]}, headers=admin
            )
            assert made.status_code == 201, made.text
            hooks[monitor] = made.json()["id"]
        with guarded.store.write() as unit:
            for name in ("cards", "loans"):
                record = unit.monitors.get(f"{name}:watch")
                stream = unit.windows.stream(record.id, "", 10)
                kept = {"id": uuid4().hex, "model": name, "state": "open", "note": ""}
                moment = datetime.now(UTC)
                alert = {**ALERT, **kept, "monitor": record.name, "prevalence": []}
                unit.alerts.open(record.id, stream.id, alert, moment)
        for key, expected in (
            (cards_key, {"cards": "watch"}),
            (loans_key, {"loans": "watch"}),
            (ADMIN, {"cards": "watch", "loans": "loans:watch"}),
        ):
            listed = guarded.client.get("/v1/alerts", headers=bearer(key)).json()["items"]
            assert {item["model"]: item["monitor"] for item in listed} == expected
            for item in listed:
                query = {"monitor": item["monitor"]}
                one = guarded.client.get("/v1/alerts", params=query, headers=bearer(key)).json()
                assert [found["id"] for found in one["items"]] == [item["id"]]
            metrics = guarded.client.get("/metrics", headers=bearer(key)).text
            open_ = re.findall(r'priorshift_alerts_open\{monitor="(.+?)"\} 1', metrics)
            assert sorted(open_) == sorted(expected.values())
        for key in (cards_key, loans_key):
            (item,) = guarded.client.get("/v1/alerts", headers=bearer(key)).json()["items"]
            answer = guarded.client.patch(
                f"/v1/alerts/{item['id']}", json={"state": "acknowledged"}, headers=bearer(key)
            )
            assert answer.json()["monitor"] == "watch"
        with guarded.store.read() as unit:
            for monitor, models in wanted.items():
                sent = unit.webhooks.deliveries(hooks[monitor], None, 10).items
                bodies = [json.loads(delivery.body)["data"] for delivery in sent]
                assert {body["model"] for body in bodies} == models
                names = {"cards": "watch", "loans": "loans:watch"}
                assert [body["monitor"] for body in bodies] == [names[m] for m in models]

    def test_a_cursor_that_is_none_is_refused(self, guarded: Guarded) -> None:
        for cursor in ("WyJcdWQ4MDAiXQ", "WyJcdTAwMDAiXQ", "WyJhIGIiXQ"):
            address = f"/v1/monitors?cursor={cursor}"
            assert guarded.client.get(address, headers=bearer(ADMIN)).status_code == 422
