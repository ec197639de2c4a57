"""Keys, scopes and tenants, over HTTP, and the trail of writes."""

import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from alembic import command

from app.access.callers import Caller
from app.access.gate import Gate, Misconfigured, new_key
from app.api import jobs
from app.http import scopes
from app.main import create_app
from app.settings import Settings
from models_store import schema
from models_store.audit import AuditFilter
from models_store.engine import WRITING, connect
from models_store.store import Store
from models_store.tables import api_keys
from tests.api.sources import COUNTED
from tests.conftest import served
from tests.patience import Deadline, patience

SECRET = "a secret of the server's own"
ADMIN = "x" * 40
SCOPES = ("read", "estimate", "register", "admin")


@dataclass(frozen=True)
class Guarded:
    """A service with keys, and what its tests need."""

    client: httpx.Client
    store: Store
    settings: Settings

    def key(self, *scopes: str, **more: Any) -> str:
        """A key, by the administrator."""
        body = {"name": "test", "scopes": scopes, **more}
        answer = self.client.post("/v1/api-keys", json=body, headers=bearer(ADMIN))
        assert answer.status_code == 201, answer.text
        key: str = answer.json()["key"]
        return key


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def guarded_settings(url: str, folder: Path) -> Settings:
    path = folder / "admin-key"
    path.write_text(ADMIN + "\n")
    return Settings.model_validate(
        {"database_url": url, "key_secret": SECRET, "admin_key_file": path}
    )


@pytest.fixture
def guarded(database_url: str, tmp_path: Path) -> Iterator[Guarded]:
    settings = guarded_settings(database_url, tmp_path)
    store = Store(connect(database_url))
    with served(create_app(settings)) as client:
        yield Guarded(client, store, settings)
    store.close()


@pytest.fixture(scope="module")
def everlasting(workspace: Path, sqlite_template: Path) -> Iterator[Guarded]:
    """One service for many keys."""
    folder = workspace / "keys"
    folder.mkdir()
    shutil.copy(sqlite_template, folder / "keys.db")
    settings = guarded_settings(f"sqlite:///{folder / 'keys.db'}", folder)
    store = Store(connect(settings.database_url))
    with served(create_app(settings)) as client:
        yield Guarded(client, store, settings)
    store.close()


def cards(guarded: Guarded, name: str = "cards") -> None:
    body = {"name": name, "classes": ["legit", "fraud"], "source": COUNTED}
    answer = guarded.client.post("/v1/models", json=body, headers=bearer(ADMIN))
    assert answer.status_code == 201, answer.text


class TestMatrix:
    def test_every_route_times_every_kind_of_key(self, guarded: Guarded) -> None:
        """From the routes that the service itself describes, and its documentation's."""
        cards(guarded)
        described = guarded.client.get("/openapi.json", headers=bearer(ADMIN)).json()["paths"]
        routes = {(m.upper(), path) for path, item in described.items() for m in item}
        hidden = {key for key in scopes.RULES if not key[1].startswith(DESCRIBED)}
        assert routes | hidden == set(scopes.RULES)
        keys = {scope: guarded.key(scope) for scope in SCOPES}
        bad = {
            "none": None,
            "wrong": "w" * 43,
            "other scheme": "",
            "expired": stored(guarded, expires_at=datetime.now(UTC) - timedelta(seconds=1)),
            "revoked": stored(guarded, revoked_at=datetime.now(UTC)),
            "of another secret": stored(guarded, secret=b"another secret altogether"),
        }
        for method, path in sorted(scopes.RULES):
            needed = scopes.RULES[method, path]
            if path in OF_BROWSERS:
                continue
            for kind, key in bad.items():
                answer = ask(guarded.client, method, path, key)
                assert (answer.status_code == 401) == (needed is not None), (method, path, kind)
                if needed is not None:
                    assert answer.headers["www-authenticate"] == "Bearer"
                    assert answer.headers["content-type"] == "application/problem+json"
            for scope, key in keys.items():
                answer = ask(guarded.client, method, path, key)
                allowed = needed is None or scope in (needed, "admin")
                assert (answer.status_code == 403) == (not allowed), (method, path, scope)
                assert answer.status_code not in (401, 500)

    def test_a_route_without_a_rule_stops_the_service(
        self, monkeypatch: pytest.MonkeyPatch, sqlite_url: str
    ) -> None:
        fewer = {key: rule for key, rule in scopes.RULES.items() if key[1] != "/v1/audit"}
        monkeypatch.setattr(scopes, "RULES", fewer)
        with pytest.raises(scopes.RouteWithoutRule, match="audit"):
            create_app(Settings(database_url=sqlite_url))

    def test_addresses_that_do_not_exist_say_so_to_anyone(self, guarded: Guarded) -> None:
        assert guarded.client.get("/nothing").status_code == 404
        assert guarded.client.put("/v1/models").status_code == 405


OF_BROWSERS = ("/sign-in", "/sign-out")
"""Open, and they answer 401 or 403 themselves."""
DESCRIBED = ("/v1/", "/livez", "/readyz", "/version", "/metrics")
"""Where what the service describes begins; the rest is for browsers."""


def stored(guarded: Guarded, secret: bytes = SECRET.encode(), **change: Any) -> str:
    """A key that was written straight into the database."""
    token, record = new_key(secret, "stored", SCOPES, None, None)
    with guarded.store.write() as unit:
        unit.keys.add(type(record)(**{**vars(record), **change}))
    return token


def stored_before_roots(guarded: Guarded, **change: Any) -> str:
    """The same in a database that knows of no data roots."""
    token, record = new_key(SECRET.encode(), "stored", SCOPES, None, None)
    row = {**vars(record), **change}
    del row["roots"]
    with guarded.store.engine.execution_options(**{WRITING: True}).begin() as connection:
        connection.execute(api_keys.insert().values(row))
    return token


def ask(client: httpx.Client, method: str, path: str, key: str | None) -> httpx.Response:
    values = {"name": "no-such", "version": "1", "alias": "a", "id": "0" * 32, "monitor": "no-such"}
    address = path.format(**values, release="1", file="page.css")
    headers = {"Authorization": "Basic YTpi"} if key == "" else bearer(key or "")
    return client.request(method, address, headers=headers if key is not None else {})


class TestKeys:
    def test_shown_once_and_kept_hashed(self, guarded: Guarded) -> None:
        body = {"name": "scorer", "scopes": ["estimate"], "models": ["cards"]}
        made = guarded.client.post("/v1/api-keys", json=body, headers=bearer(ADMIN))
        assert made.headers["cache-control"] == "no-store"
        key = made.json()["key"]
        assert len(key) == 43
        shown = guarded.client.get(made.headers["location"], headers=bearer(ADMIN)).json()
        assert shown["key"] is None
        assert shown["prefix"] == key[:8]
        assert shown["models"] == ["cards"]
        listed = guarded.client.get("/v1/api-keys", headers=bearer(ADMIN))
        assert [item["id"] for item in listed.json()["items"]] == [shown["id"]]
        assert key not in listed.text
        with guarded.store.engine.connect() as connection:
            rows = connection.exec_driver_sql("SELECT * FROM api_keys").all()
        assert key not in str(rows)

    def test_the_last_use_is_noted(self, guarded: Guarded) -> None:
        key = guarded.key("read")
        listed = guarded.client.get("/v1/api-keys", headers=bearer(ADMIN)).json()["items"]
        assert listed[0]["last_used_at"] is None
        assert guarded.client.get("/v1/models", headers=bearer(key)).status_code == 200
        listed = guarded.client.get("/v1/api-keys", headers=bearer(ADMIN)).json()["items"]
        assert listed[0]["last_used_at"] is not None

    def test_a_revocation_is_felt_within_a_second_by_every_worker(self, guarded: Guarded) -> None:
        key = guarded.key("read")
        with served(create_app(guarded.settings)) as other:
            for client in (guarded.client, other):
                assert client.get("/v1/models", headers=bearer(key)).status_code == 200
            listed = guarded.client.get("/v1/api-keys", headers=bearer(ADMIN)).json()["items"]
            address = f"/v1/api-keys/{listed[0]['id']}"
            assert guarded.client.delete(address, headers=bearer(ADMIN)).status_code == 204
            since = time.monotonic()
            for client in (guarded.client, other):
                while client.get("/v1/models", headers=bearer(key)).status_code == 200:
                    assert time.monotonic() - since < patience(1)
                    time.sleep(0.02)
            assert guarded.client.delete(address, headers=bearer(ADMIN)).status_code == 204

    def test_what_is_followed_ends_with_the_key(self, guarded: Guarded) -> None:
        """A job that nobody takes up has events for an hour."""
        cards(guarded)
        asked = {"kind": "estimate", "model": "cards", "dataset": {"path": "scores/"}}
        with guarded.store.write() as unit:
            model_id = unit.models.get("cards").id
            now = datetime.now(UTC)
            unit.jobs.add("1" * 32, model_id, "estimate", {"request": asked, "version": 1}, now)
        key = guarded.key("read")
        address = f"/v1/jobs/{'1' * 32}/events"
        with guarded.client.stream("GET", address, headers=bearer(key)) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "event: queued"
            listed = guarded.client.get("/v1/api-keys", headers=bearer(ADMIN)).json()["items"]
            guarded.client.delete(f"/v1/api-keys/{listed[0]['id']}", headers=bearer(ADMIN))
            since = time.monotonic()
            assert not any(line.startswith("event") for line in lines)
            assert time.monotonic() - since < jobs.QUIET_SECONDS

    @pytest.mark.parametrize(
        ("body", "place"),
        [
            ({"scopes": ["read"]}, "/name"),
            ({"name": "", "scopes": ["read"]}, "/name"),
            ({"name": "a", "scopes": []}, "/scopes"),
            ({"name": "a", "scopes": ["write"]}, "/scopes/0"),
            ({"name": "a", "scopes": ["read", "read"]}, "/scopes"),
            ({"name": "a", "scopes": ["read"], "models": []}, "/models"),
            ({"name": "a", "scopes": ["read"], "models": ["UPPER"]}, "/models/0"),
            (
                {"name": "a", "scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z"},
                "/expires_at",
            ),
            ({"name": "a", "scopes": ["read"], "key": "mine"}, "/key"),
            ({"name": "a", "scopes": ["admin"], "models": ["cards"]}, "/models"),
            ({"name": "a", "scopes": ["read", "admin"], "models": ["cards"]}, "/models"),
        ],
    )
    def test_wrong_keys_are_refused(
        self, guarded: Guarded, body: dict[str, Any], place: str
    ) -> None:
        answer = guarded.client.post("/v1/api-keys", json=body, headers=bearer(ADMIN))
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == place

    def test_without_keys_anyone_may_and_with_the_first_nobody(self, store: Store) -> None:
        url = store.engine.url.render_as_string(hide_password=False)
        settings = Settings.model_validate({"database_url": url, "key_secret": SECRET})
        with served(create_app(settings)) as client:
            body = {"name": "first", "scopes": ["admin"]}
            key = client.post("/v1/api-keys", json=body).json()["key"]
            deadline = Deadline(1)
            while client.get("/v1/models").status_code == 200:
                assert not deadline.over()
                time.sleep(0.02)
            assert client.get("/v1/models", headers=bearer(key)).status_code == 200

    def test_no_secret_no_keys(self, client: httpx.Client) -> None:
        answer = client.post("/v1/api-keys", json={"name": "a", "scopes": ["read"]})
        assert answer.status_code == 409
        assert "PRIORSHIFT_KEY_SECRET" in answer.json()["detail"]

    def test_short_secrets_stop_the_service(self, store: Store, tmp_path: Path) -> None:
        short = tmp_path / "short"
        short.write_text("short")
        for wrong in ({"key_secret": "short"}, {"admin_key_file": short}):
            with pytest.raises(Misconfigured):
                Gate(store, Settings.model_validate(wrong))


def some(draw: random.Random, *of: Any) -> tuple[Any, ...]:
    """One or more of these, in any order."""
    return tuple(draw.sample(of, draw.randint(1, len(of))))


class TestNoKeyMakesAWiderOne:
    @pytest.mark.parametrize("seed", range(120))
    def test_over_scopes_models_and_ends(self, everlasting: Guarded, seed: int) -> None:
        """Whoever makes it, even one that no release would make any more."""
        # Not hypothesis: the server's threads draw from `random` too.
        draw, now = random.Random(seed), datetime.now(UTC).replace(microsecond=0)
        own = some(draw, *SCOPES) if draw.random() < 0.5 else ("admin",)
        mine = some(draw, "cards", "other") if draw.random() < 0.2 else None
        days, wanted = (draw.choice([None, 1, 2, 3]) for _ in range(2))
        scopes = list(some(draw, *SCOPES))
        models = draw.choice([None, list(some(draw, "cards", "other"))])
        ends = None if days is None else now + timedelta(days=days)
        maker = stored(everlasting, scopes=own, models=mine, expires_at=ends)
        body = {"name": "made", "scopes": scopes, "models": models}
        if wanted is not None:
            body["expires_at"] = (now + timedelta(days=wanted)).isoformat()
        client = everlasting.client
        answer = client.post("/v1/api-keys", json=body, headers=bearer(maker))
        if "admin" not in own or mine is not None:
            assert answer.status_code == 403
            return
        outlives = days is not None and (wanted is None or wanted > days)
        contradicts = models is not None and "admin" in scopes
        assert answer.status_code == (422 if outlives or contradicts else 201), answer.text
        if outlives or contradicts:
            at = {error["pointer"] for error in answer.json()["errors"]}
            assert at == {"/expires_at" if outlives else "/models"}
            return
        made = answer.json()
        assert (made["scopes"], made["models"]) == (scopes, models)
        assert ends is None or datetime.fromisoformat(made["expires_at"]) <= ends
        opened = client.get("/v1/api-keys", headers=bearer(made["key"]))
        assert opened.status_code == (200 if "admin" in scopes else 403)

    def test_an_older_release_may_still_write_such_a_key(self, guarded: Guarded) -> None:
        key = stored(guarded, scopes=("admin", "read"), models=("cards",))
        for address in ("/v1/api-keys", "/v1/audit", "/v1/webhooks"):
            assert guarded.client.get(address, headers=bearer(key)).status_code == 403
        assert guarded.client.get("/v1/models", headers=bearer(key)).status_code == 200


def test_migration_takes_admin_from_keys_of_some_models_and_says_from_which(
    guarded: Guarded, capfd: pytest.CaptureFixture[str]
) -> None:
    cards(guarded)
    cards(guarded, "other")
    config = schema.configuration()
    with guarded.store.engine.execution_options(**{WRITING: True}).begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0009")
    kept: list[tuple[tuple[str, ...], tuple[str, ...] | None]] = [
        (("admin",), None),
        (("read", "admin"), None),
        (("read",), ("cards",)),
        (("read", "estimate"), None),
        (("admin",), ("cards",)),
        (("admin", "read"), ("cards",)),
        (("estimate", "admin", "register"), ("cards", "gone")),
    ]
    try:
        keys = [
            stored_before_roots(guarded, scopes=scopes, models=models, name=f"a\x1b[2J{k}")
            for k, (scopes, models) in enumerate(kept)
        ]
        capfd.readouterr()
    finally:
        schema.migrate(guarded.store.engine)
    told = capfd.readouterr()
    left = {**dict(enumerate(scopes for scopes, _ in kept))}
    left[4], left[5], left[6] = (
        ("read", "estimate", "register"),
        ("read",),
        ("estimate", "register"),
    )
    assert told.out == ""
    assert "\x1b" not in told.err
    assert len(told.err.splitlines()) == 3
    with guarded.store.read() as unit:
        records = {r.name: r for r in unit.keys.list(None, 50).items}
        trail = [e.target for e in unit.audit.list(AuditFilter(None, None, None), None, 50).items]
    for k, (key, (_, models)) in enumerate(zip(keys, kept, strict=True)):
        record = records[f"a\x1b[2J{k}"]
        assert (record.scopes, record.models) == (left[k], models)
        assert ((f"key {record.id} ({key[:8]}…" in told.err), record.id in trail) == (
            (True, True) if k >= 4 else (False, False)
        )
        assert key not in told.err
        administers = guarded.client.get("/v1/api-keys", headers=bearer(key)).status_code
        assert administers == (200 if "admin" in left[k] else 403)
        listed = guarded.client.get("/v1/models", headers=bearer(key))
        if "read" in left[k] and models is not None:
            assert [item["name"] for item in listed.json()["items"]] == ["cards"]
    schema.migrate(guarded.store.engine)
    assert capfd.readouterr().err == ""


class TestTenants:
    def test_other_models_do_not_exist(self, guarded: Guarded) -> None:
        cards(guarded)
        cards(guarded, "other")
        kept = {}
        for name in ("cards", "other"):
            answer = guarded.client.post(
                f"/v1/models/{name}/versions/1/estimates",
                json={"predicted_counts": {"legit": 90, "fraud": 10}},
                headers=bearer(ADMIN),
            )
            kept[name] = answer.json()["id"]
        mine = bearer(guarded.key("read", "estimate", "register", models=["cards"]))
        get = guarded.client.get
        assert [m["name"] for m in get("/v1/models", headers=mine).json()["items"]] == ["cards"]
        listed = get("/v1/estimates", headers=mine).json()["items"]
        assert [item["id"] for item in listed] == [kept["cards"]]
        assert get(f"/v1/estimates/{kept['cards']}", headers=mine).status_code == 200
        for address in (
            "/v1/models/other",
            "/v1/models/other/versions/1",
            f"/v1/estimates/{kept['other']}",
            "/v1/estimates?model=other",
            "/v1/evaluations?model=other",
        ):
            missing = get(
                address.replace("other", "nobody").replace(kept["other"], "0" * 32), headers=mine
            )
            answer = get(address, headers=mine)
            assert answer.status_code == missing.status_code == 404, address
            same = answer.json()["detail"].replace("other", "nobody")
            assert same.replace(kept["other"], "0" * 32) == missing.json()["detail"]
        evaluation = {"labels": ["legit"] * 100, "estimate": kept["other"]}
        answer = guarded.client.post(
            "/v1/models/cards/versions/1/evaluations", json=evaluation, headers=mine
        )
        assert answer.status_code == 404
        assert "other" not in answer.json()["detail"]
        body = {"name": "new", "classes": ["a", "b"]}
        assert guarded.client.post("/v1/models", json=body, headers=mine).status_code == 403

    def test_idempotency_keys_are_their_owners(self, guarded: Guarded) -> None:
        cards(guarded)
        answers = []
        for count in (10, 20):
            answer = guarded.client.post(
                "/v1/models/cards/versions/1/estimates",
                json={"predicted_counts": {"legit": 90, "fraud": count}},
                headers={**bearer(guarded.key("estimate")), "Idempotency-Key": "same"},
            )
            answers.append(answer.status_code)
        assert answers == [201, 201]


class TestTrail:
    def test_every_write_leaves_an_entry_and_no_read_does(self, guarded: Guarded) -> None:
        cards(guarded)
        key = guarded.key("register", "estimate", "read")
        mine = bearer(key)
        base = "/v1/models/cards"
        counts = {"predicted_counts": {"legit": 9, "fraud": 1}}
        writes: list[tuple[str, str, Any]] = [
            ("PATCH", base, {"description": "x"}),
            ("POST", f"{base}/versions", {"source": {"priors": {"legit": 0.9, "fraud": 0.1}}}),
            ("PUT", f"{base}/aliases/champion", {"version": 1}),
            ("POST", f"{base}/versions/1/estimates", counts),
            ("DELETE", f"{base}/aliases/champion", None),
            ("DELETE", f"{base}?force=true", None),
        ]
        guarded.client.post(f"{base}/versions/1/shift-tests", json=counts, headers=mine)
        guarded.client.get(base, headers=mine)
        for method, path, body in writes:
            answer = guarded.client.request(method, path, json=body, headers=mine)
            assert answer.status_code < 300, answer.text
        failed = guarded.client.patch(base, json={"description": "gone"}, headers=mine)
        assert failed.status_code == 404
        trail = guarded.client.get("/v1/audit?limit=100", headers=bearer(ADMIN)).json()["items"]
        mine_only = [e for e in trail if e["key_name"] == "test"]
        told = [(e["action"].split()[0], e["target"]) for e in reversed(mine_only)]
        assert told == [(method, path.partition("?")[0]) for method, path, _ in writes]
        assert {e["address"] for e in trail} == {"127.0.0.1"}
        assert {e["key_name"] for e in trail} == {"test", "admin-key-file"}
        first = guarded.client.get("/v1/audit?limit=2", headers=bearer(ADMIN)).json()
        rest = guarded.client.get(
            f"/v1/audit?limit=100&cursor={first['next_cursor']}", headers=bearer(ADMIN)
        ).json()
        assert first["items"] + rest["items"] == trail
        one = mine_only[0]["key_id"]
        only = guarded.client.get(f"/v1/audit?key={one}", headers=bearer(ADMIN)).json()["items"]
        assert only == mine_only

    def test_wrong_filters(self, guarded: Guarded) -> None:
        for query in ("key=x", "since=yesterday", "cursor=x", "limit=0", "who=me"):
            answer = guarded.client.get(f"/v1/audit?{query}", headers=bearer(ADMIN))
            assert answer.status_code == 422, query


def test_admin_covers_every_scope() -> None:
    admin = Caller("1", "a", frozenset({"admin"}))
    assert all(admin.may(scope) for scope in SCOPES)
    assert admin.sees("anything")
    assert not Caller("1", "a", frozenset({"read"}), frozenset({"m"})).sees("n")
