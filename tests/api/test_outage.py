"""The database goes and comes back under one process, and what still works meanwhile."""

import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import httpx
import numpy as np
import pytest

from app import clock as app_clock
from app.access import callers, gate
from app.main import create_app
from app.settings import Settings
from models_store import store as stores
from models_store.engine import connect
from models_store.errors import Unavailable
from models_store.store import Store
from tests.api.sources import COUNTED, register
from tests.conftest import served
from tests.patience import patience

BATCH = {"posteriors": [[0.9, 0.1], [0.2, 0.8]]}
SECRET = "a secret of more than thirty-two characters"


class Broken:
    """A SQLite database that can be taken away and put back."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._away = path.with_suffix(".away")

    @property
    def url(self) -> str:
        return f"sqlite:///{self._path}"

    def away(self, client: httpx.Client, store: Store) -> None:
        store.engine.dispose()
        self._path.rename(self._away)
        self._path.mkdir()
        store.engine.dispose()  # what was opened meanwhile

    def back(self, store: Store) -> None:
        self._path.rmdir()
        self._away.rename(self._path)
        store.engine.dispose()


@pytest.fixture
def broken(workspace: Path, sqlite_template: Path, tmp_path: Path) -> Broken:
    path = tmp_path / "goes.db"
    shutil.copy(sqlite_template, path)
    return Broken(path)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(gate, "FRESH_SECONDS", 0.05)


def test_what_needs_no_database_goes_on(broken: Broken) -> None:
    app = create_app(Settings(database_url=broken.url, selection_seconds=0.05))
    store: Store = app.state.services.store
    with served(app) as client:
        address = register(client, "m", COUNTED).replace("/1", "/latest")
        before = client.post(f"{address}/shift-tests", json=BATCH).json()
        broken.away(client, store)
        time.sleep(0.1)
        for _ in range(3):
            answer = client.post(f"{address}/shift-tests", json=BATCH)
            assert answer.status_code == 200
            assert answer.json()["shift"] == before["shift"]
            codes = [warning["code"] for warning in answer.json()["warnings"]]
            assert codes.count("stale-selection") == 1
        assert client.post(f"{address}/posteriors", json=BATCH).status_code == 200
        for asked in (
            client.post(f"{address}/estimates", json=BATCH),
            client.get("/v1/models"),
            client.post("/v1/models/m/versions/9/shift-tests", json=BATCH),
            client.get("/readyz"),
        ):
            assert asked.status_code == 503
            assert asked.headers["content-type"] == "application/problem+json"
            assert asked.headers["retry-after"]
        broken.back(store)
        time.sleep(0.1)
        assert client.get("/readyz").status_code == 200
        answer = client.post(f"{address}/estimates", json=BATCH)
        assert answer.status_code == 201
        assert "stale-selection" not in answer.text


def test_callers_that_were_known_stay_known_for_a_while(
    broken: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(Settings(database_url=broken.url, key_secret=SECRET))
    store: Store = app.state.services.store
    token, record = gate.new_key(SECRET.encode(), "k", list(gate.SCOPES), None, None)
    with store.write() as unit:
        unit.keys.add(record)
    with served(app) as client:
        client.headers["authorization"] = f"Bearer {token}"
        address = register(client, "m", COUNTED)
        assert client.post(f"{address}/shift-tests", json=BATCH).status_code == 200
        broken.away(client, store)
        time.sleep(0.1)
        assert client.post(f"{address}/shift-tests", json=BATCH).status_code == 200
        for other in ("ps_unknown", token[:-1] + "x"):
            headers = {"authorization": f"Bearer {other}"}
            answer = client.post(f"{address}/shift-tests", json=BATCH, headers=headers)
            assert answer.status_code == 503
        monkeypatch.setattr(gate, "OUTAGE_SECONDS", 0.01)
        time.sleep(0.1)
        assert client.post(f"{address}/shift-tests", json=BATCH).status_code == 503
        broken.back(store)
        time.sleep(0.1)
        assert client.post(f"{address}/shift-tests", json=BATCH).status_code == 200


def keyed(store: Store, expires_at: datetime | None = None) -> dict[str, str]:
    """A header with a new key."""
    scopes = list(gate.SCOPES)
    token, record = gate.new_key(SECRET.encode(), "k", scopes, None, expires_at)
    with store.write() as unit:
        unit.keys.add(record)
    return {"authorization": f"Bearer {token}"}


def test_a_key_that_expires_meanwhile_is_believed_no_more(
    broken: Broken, clock: "type[Clock]"
) -> None:
    app = create_app(Settings(database_url=broken.url, key_secret=SECRET))
    store: Store = app.state.services.store
    with served(app) as client:
        ends = datetime.now(UTC) + timedelta(minutes=30)
        short, lasting = keyed(store, ends), keyed(store)
        client.headers.update(lasting)
        path = f"{register(client, 'm', COUNTED)}/shift-tests"

        def statuses() -> list[int]:
            return [client.post(path, json=BATCH, headers=h).status_code for h in (short, lasting)]

        assert statuses() == [200, 200]
        broken.away(client, store)
        time.sleep(0.1)
        for _ in range(3):  # asked of the database, and within the pause after it failed
            assert statuses() == [200, 200]
        clock.offset = timedelta(minutes=31)
        for _ in range(3):
            assert statuses() == [503, 200]
        broken.back(store)
        time.sleep(0.1)
        assert statuses() == [401, 200]


def test_wrong_keys_push_no_right_one_out_of_memory(broken: Broken) -> None:
    app = create_app(Settings(database_url=broken.url, key_secret=SECRET))
    store: Store = app.state.services.store
    with served(app) as client:
        right = [keyed(store) for _ in range(5)]
        path = f"{register_with(client, right[0])}/shift-tests"
        for headers in right:
            assert client.post(path, json=BATCH, headers=headers).status_code == 200
        for k in range(callers.MOST_KNOWN + 100):
            wrong = {"authorization": f"Bearer {k:043d}"}
            cookie = {"cookie": f"priorshift=9{k:011d}.{k:032x}.holder.{k:064x}"}
            assert client.get("/v1/models", headers=wrong if k % 3 else cookie).status_code == 401
        broken.away(client, store)
        time.sleep(0.1)
        for headers in right:
            assert client.post(path, json=BATCH, headers=headers).status_code == 200
        broken.back(store)


def test_whoever_needed_no_key_needs_one_in_an_outage_too(broken: Broken) -> None:
    app = create_app(Settings(database_url=broken.url, key_secret=SECRET))
    store: Store = app.state.services.store
    with served(app) as client:
        path = f"{register(client, 'm', COUNTED)}/shift-tests"
        assert client.post(path, json=BATCH).status_code == 200
        broken.away(client, store)
        time.sleep(0.1)
        # There is no key yet, and it makes no difference what one sends.
        for headers in ({}, {"authorization": "Bearer x"}):
            assert client.post(path, json=BATCH, headers=headers).status_code == 200
        broken.back(store)
        time.sleep(0.1)
        key = keyed(store)
        assert client.post(path, json=BATCH, headers=key).status_code == 200
        broken.away(client, store)
        time.sleep(0.1)
        for headers in ({}, {"authorization": "Bearer x"}):
            assert client.post(path, json=BATCH, headers=headers).status_code in (401, 503)
        assert client.post(path, json=BATCH, headers=key).status_code == 200
        broken.back(store)


OWN_PAGE = {"sec-fetch-site": "same-origin"}


def test_no_session_is_believed_and_one_that_is_signed_out_ends_afterwards(
    broken: Broken,
) -> None:
    settings = Settings(database_url=broken.url, key_secret=SECRET)
    app = create_app(settings)
    store: Store = app.state.services.store
    with served(app) as client, served(create_app(settings)) as other:
        token = keyed(store)["authorization"].removeprefix("Bearer ")
        cookies = []
        for _ in range(2):
            answer = client.post("/sign-in", data={"key": token}, headers=OWN_PAGE)
            cookies.append(answer.headers["set-cookie"].partition(";")[0])
        client.cookies.clear()
        ended, kept = [{"cookie": cookie} for cookie in cookies]
        assert client.get("/v1/models", headers=ended).status_code == 200
        broken.away(client, store)
        time.sleep(0.1)
        assert client.get("/openapi.json", headers=ended).status_code == 503
        html = {**OWN_PAGE, **ended, "accept": "text/html"}
        answer = client.post("/sign-out", headers=html)
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert "as soon as the database is back" in answer.text
        gone = answer.headers["set-cookie"]
        assert gone.startswith('priorshift="";')
        assert "Max-Age=0" in gone
        broken.back(store)
        time.sleep(0.1)
        assert client.get("/v1/models", headers=ended).status_code == 401
        assert other.get("/v1/models", headers=ended).status_code == 401
        assert other.get("/v1/models", headers=kept).status_code == 200


def register_with(client: httpx.Client, headers: dict[str, str]) -> str:
    with httpx.Client(base_url=client.base_url, headers=headers, timeout=60) as own:
        return register(own, "m", COUNTED)


def test_twins_are_computed_once(client: httpx.Client) -> None:
    rows = np.random.default_rng(0).dirichlet([1, 1], 3000).tolist()
    address = register(client, "twins", COUNTED)
    ready = threading.Barrier(6)

    def ask(_: int) -> httpx.Response:
        with httpx.Client(base_url=client.base_url, timeout=patience(60)) as own:
            ready.wait()
            return own.post(
                f"{address}/estimates",
                json={"posteriors": rows},
                headers={"idempotency-key": "one"},
            )

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(ask, range(6)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1
    replayed = ["idempotency-replayed" in answer.headers for answer in answers]
    assert sorted(replayed) == [False, *[True] * 5]
    items = client.get("/v1/estimates", params={"model": "twins"}).json()["items"]
    assert len(items) == 1


class Clock(datetime):
    """Time that can jump."""

    offset: ClassVar[timedelta] = timedelta(0)

    @classmethod
    def now(cls, tz: object = None) -> "Clock":
        assert tz is UTC
        moved = datetime.now(UTC) + cls.offset
        return cls.fromtimestamp(moved.timestamp(), UTC)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Clock]]:
    for module in (app_clock, gate, callers):
        monkeypatch.setattr(module, "datetime", Clock)
    yield Clock
    Clock.offset = timedelta(0)


def test_a_clock_that_jumps_back_loses_nothing(client: httpx.Client, clock: type[Clock]) -> None:
    address = register(client, "jumps", COUNTED)

    def ask(key: str) -> str:
        headers = {"idempotency-key": key}
        answer = client.post(f"{address}/estimates", json=BATCH, headers=headers)
        assert answer.status_code == 201
        found: str = answer.json()["id"]
        return found

    kept = [ask(f"before {k}") for k in range(3)]
    clock.offset = timedelta(hours=-3)
    kept += [ask(f"after {k}") for k in range(3)]
    assert [ask(f"before {k}") for k in range(3)] == kept[:3]
    assert [ask(f"after {k}") for k in range(3)] == kept[3:]
    seen, cursor = [], None
    while True:
        params = {"model": "jumps", "limit": "2", **({"cursor": cursor} if cursor else {})}
        page = client.get("/v1/estimates", params=params).json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(seen) == sorted(kept)
    again = client.post(
        "/v1/models/jumps/versions", json={"source": {"priors": {"legit": 0.4, "fraud": 0.6}}}
    )
    assert again.status_code == 201


def test_a_store_says_what_is_wrong_with_its_file(tmp_path: Path) -> None:
    found = Store(connect(f"sqlite:///{tmp_path / 'nowhere' / 'x.db'}"))
    with pytest.raises(Unavailable, match="cannot be opened"), found.read():
        pass
    found.close()
