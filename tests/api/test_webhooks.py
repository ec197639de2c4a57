"""Webhooks over HTTP: who may, what is kept, what arrives."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
import sqlalchemy as sa

from app.main import create_app
from app.settings import Settings
from app.webhooks import deliver, sending
from models_store.engine import connect
from models_store.store import Store
from models_store.webhooks import DELIVER, EVENTS, Event
from tests.api.test_access import ADMIN, bearer, guarded_settings
from tests.conftest import served
from tests.patience import patience, until
from tests.webhooks.receivers import Answer, Received, raw, receiving

SECRET = "a secret of the server's own"


@dataclass(frozen=True)
class Hooked:
    """A service whose webhooks may go to this machine, and its database."""

    client: httpx.Client
    store: Store

    def create(self, url: str, **more: Any) -> dict[str, Any]:
        body = {"url": url, "events": list(EVENTS), **more}
        answer = self.client.post("/v1/webhooks", json=body)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    def publish(self, number: int = 1, event: Event = "alert.opened", **of: str) -> int:
        with self.store.write() as unit:
            return sum(
                unit.webhooks.publish(event, {"number": n}, datetime.now(UTC), **of)
                for n in range(number)
            )

    def deliveries(self, id: str) -> list[dict[str, Any]]:
        answer = self.client.get(f"/v1/webhooks/{id}/deliveries", params={"limit": 200})
        assert answer.status_code == 200, answer.text
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    def each_was_tried(self, id: str) -> bool:
        return all(item["attempts"] for item in self.deliveries(id))

    def statuses(self, id: str) -> list[str]:
        return [item["status"] for item in self.deliveries(id)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliver, "SCHEDULE", (0.02, 0.05, 0.1))
    monkeypatch.setattr(sending, "SECONDS", patience(2.0))


@pytest.fixture
def hooked(database_url: str) -> Iterator[Hooked]:
    settings = Settings.model_validate(
        {
            "database_url": database_url,
            "key_secret": SECRET,
            "webhook_allowed_hosts": ["127.0.0.1", "hooks.internal"],
        }
    )
    store = Store(connect(database_url))
    with served(create_app(settings)) as client:
        yield Hooked(client, store)
    store.close()


class TestDelivery:
    def test_half_the_time_failing_every_event_arrives_and_verifies(self, hooked: Hooked) -> None:
        refused: set[str] = set()

        def every_other(received: Received) -> Answer:
            if received.message in refused:
                return 200, {}
            refused.add(received.message)
            return (200, {}) if len(refused) % 2 else (503, {"Retry-After": "0"})

        with receiving(every_other) as receiver:
            made = hooked.create(f"{receiver.base}/hook")
            assert hooked.publish(30) == 30
            until(lambda: hooked.statuses(made["id"]) == ["delivered"] * 30)
        numbers = [received.content["data"]["number"] for received in receiver.got]
        assert sorted(set(numbers)) == list(range(30))
        assert len(numbers) == 45
        assert all(received.verifies(made["secret"]) for received in receiver.got)
        by_number = {(r.content["data"]["number"], r.message) for r in receiver.got}
        assert len(by_number) == 30
        first = receiver.got[0]
        assert set(first.content) == {"type", "timestamp", "data"}
        assert first.content["type"] == "alert.opened"
        assert datetime.fromisoformat(first.content["timestamp"]).tzinfo is not None
        assert first.headers["content-type"] == "application/json"
        assert first.headers["user-agent"].startswith("priorshift/")
        shown = {item["message"]: item for item in hooked.deliveries(made["id"])}
        assert set(shown) == {received.message for received in receiver.got}
        assert sorted(len(item["attempts"]) for item in shown.values()) == [1] * 15 + [2] * 15
        twice = next(item for item in shown.values() if len(item["attempts"]) == 2)
        assert [attempt["status"] for attempt in twice["attempts"]] == [503, 200]
        assert twice["next_attempt_at"] is None
        told = hooked.client.get("/metrics").text
        assert 'priorshift_webhook_attempts_total{outcome="delivered"} 30.0' in told
        assert 'priorshift_webhook_attempts_total{outcome="postponed"} 15.0' in told
        assert 'priorshift_tasks{kind="deliver"}' in told

    def test_an_event_that_is_rolled_back_is_not_sent(self, hooked: Hooked) -> None:
        with receiving() as receiver:
            made = hooked.create(receiver.base)
            with pytest.raises(RuntimeError), hooked.store.write() as unit:
                unit.webhooks.publish("alert.opened", {}, datetime.now(UTC))
                raise RuntimeError
            hooked.publish()
            until(lambda: hooked.statuses(made["id"]) == ["delivered"])
        assert len(receiver.got) == 1

    def test_a_receiver_that_keeps_failing_is_given_up(self, hooked: Hooked) -> None:
        with receiving(lambda received: (500, {})) as receiver:
            made = hooked.create(receiver.base)
            hooked.publish()
            until(lambda: hooked.statuses(made["id"]) == ["failed"])
        (item,) = hooked.deliveries(made["id"])
        assert [attempt["status"] for attempt in item["attempts"]] == [500] * 4
        assert len({received.message for received in receiver.got}) == 1
        assert hooked.client.get(f"/v1/webhooks/{made['id']}").json()["disabled"] is False
        with hooked.store.read() as unit:
            assert unit.tasks.next_due([DELIVER]) is None

    def test_one_that_redirects_is_not_followed(self, hooked: Hooked) -> None:
        away = {"Location": "http://169.254.169.254/latest/meta-data"}
        with receiving(lambda received: (302, away)) as receiver:
            made = hooked.create(receiver.base)
            hooked.publish()
            until(lambda: hooked.statuses(made["id"]) == ["failed"])
        (item,) = hooked.deliveries(made["id"])
        assert {attempt["status"] for attempt in item["attempts"]} == {302}

    def test_one_that_hangs_is_left_and_holds_nobody_up(
        self, hooked: Hooked, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sending, "SECONDS", patience(0.3))

        def hang(connection: Any) -> None:
            while connection.recv(65536):
                pass

        with raw(hang) as base, receiving() as receiver:
            silent, good = hooked.create(base), hooked.create(receiver.base)
            assert hooked.publish() == 2
            until(lambda: hooked.statuses(good["id"]) == ["delivered"])
            until(lambda: hooked.statuses(silent["id"]) == ["failed"])
        (item,) = hooked.deliveries(silent["id"])
        assert {attempt["error"] for attempt in item["attempts"]} == {"timeout"}

    def test_one_that_is_gone_is_disabled(self, hooked: Hooked) -> None:
        with receiving(lambda received: (410, {})) as receiver:
            made = hooked.create(receiver.base)
            hooked.publish()
            until(lambda: hooked.statuses(made["id"]) == ["failed"])
            shown = hooked.client.get(f"/v1/webhooks/{made['id']}").json()
            assert (shown["disabled"], shown["reason"]) == (True, "answered 410 Gone")
            assert hooked.publish() == 0
            assert hooked.client.post(f"/v1/webhooks/{made['id']}/test").status_code == 409
            enabled = hooked.client.patch(f"/v1/webhooks/{made['id']}", json={"disabled": False})
            assert (enabled.json()["disabled"], enabled.json()["reason"]) == (False, None)
            assert hooked.publish() == 1
        assert len(receiver.got) >= 1

    def test_what_waits_goes_with_its_webhook(self, hooked: Hooked) -> None:
        with receiving(lambda received: (500, {"Retry-After": "3600"})) as receiver:
            gone, off = hooked.create(receiver.base), hooked.create(receiver.base)
            assert hooked.publish(3) == 6
            for made in (gone, off):
                until(partial(hooked.each_was_tried, made["id"]))
            assert len(receiver.got) == 6
            waiting = hooked.deliveries(off["id"])[0]
            asked = datetime.fromisoformat(waiting["next_attempt_at"])
            assert asked > datetime.now(UTC) + timedelta(seconds=3500)
            assert hooked.client.delete(f"/v1/webhooks/{gone['id']}").status_code == 204
            body = {"disabled": True}
            assert hooked.client.patch(f"/v1/webhooks/{off['id']}", json=body).status_code == 200
            assert hooked.client.get(f"/v1/webhooks/{gone['id']}").status_code == 404
            assert hooked.client.get(f"/v1/webhooks/{gone['id']}/deliveries").status_code == 404
            hasten(hooked.store)
            until(lambda: not waits(hooked.store))
            assert hooked.statuses(off["id"]) == ["cancelled"] * 3
        assert len(receiver.got) == 6

    def test_what_waits_goes_to_the_new_address(self, hooked: Hooked) -> None:
        with receiving(lambda received: (500, {"Retry-After": "3600"})) as old, receiving() as new:
            made = hooked.create(old.base)
            hooked.publish()
            until(partial(hooked.each_was_tried, made["id"]))
            body = {"url": f"{new.base}/moved"}
            changed = hooked.client.patch(f"/v1/webhooks/{made['id']}", json=body)
            assert changed.json()["url"] == f"{new.base}/moved"
            hasten(hooked.store)
            until(lambda: hooked.statuses(made["id"]) == ["delivered"])
        assert [old.got[0].message] == [new.got[0].message]


def hasten(store: Store) -> None:
    """What waits is due now."""
    with store.engine.begin() as connection:
        statement = sa.text("UPDATE tasks SET due_at = :now WHERE owner IS NULL")
        moment = datetime.now(UTC) - timedelta(seconds=1)
        given = moment if store.engine.dialect.name == "postgresql" else f"{moment:%F %T.%f}"
        connection.execute(statement, {"now": given})


def waits(store: Store) -> bool:
    with store.read() as unit:
        return unit.tasks.next_due([DELIVER]) is not None


class TestChoosing:
    def test_webhooks_are_told_of_what_they_want(self, hooked: Hooked) -> None:
        with receiving() as receiver:
            hooked.create(receiver.base, events=["alert.closed"])
            hooked.create(receiver.base, models=["cards"])
            hooked.create(receiver.base, monitors=["hourly"], models=["cards", "tickets"])
            assert hooked.publish(model="mail", monitor="hourly") == 0
            assert hooked.publish(model="tickets", monitor="daily") == 0
            assert hooked.publish(model="tickets", monitor="hourly") == 1
            assert hooked.publish(model="cards", monitor="hourly") == 2
            assert hooked.publish(event="alert.closed") == 1
            until(lambda: not waits(hooked.store))
        messages = [received.message for received in receiver.got]
        assert len(messages) == 4
        assert len(set(messages)) == 3

    def test_a_test_is_sent_whatever_is_wanted(self, hooked: Hooked) -> None:
        with receiving() as receiver:
            made = hooked.create(receiver.base, events=["alert.closed"])
            answer = hooked.client.post(f"/v1/webhooks/{made['id']}/test")
            assert answer.status_code == 202
            assert answer.json()["status"] == "pending"
            until(lambda: hooked.statuses(made["id"]) == ["delivered"])
        (received,) = receiver.got
        assert received.content["type"] == "webhook.test"
        assert received.message == answer.json()["message"]
        assert received.verifies(made["secret"])


class TestSecrets:
    def test_are_shown_once_and_nowhere_else(
        self, hooked: Hooked, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG, logger="priorshift")
        with receiving(lambda received: (500, {})) as receiver:
            made = hooked.create(f"{receiver.base}/path?token=in-the-address")
            again = hooked.client.post(f"/v1/webhooks/{made['id']}/secret").json()
            assert again["secret"].startswith("whsec_")
            assert again["secret"] != made["secret"]
            hooked.publish()
            until(lambda: hooked.statuses(made["id"]) == ["failed"])
        for path in ("", f"/{made['id']}", f"/{made['id']}/deliveries"):
            shown = hooked.client.get(f"/v1/webhooks{path}").text
            assert "whsec_" not in shown
        assert hooked.client.get(f"/v1/webhooks/{made['id']}").json()["secret"] is None
        told = " ".join(str(record.__dict__) for record in caplog.records)
        assert "event not delivered" in told
        for kept in (told, everything(hooked.store)):
            for secret in (made["secret"], again["secret"]):
                assert secret not in kept
                assert secret.removeprefix("whsec_") not in kept
        assert "in-the-address" not in told

    def test_both_sign_for_a_day_after_a_rotation(self, hooked: Hooked) -> None:
        with receiving() as receiver:
            made = hooked.create(receiver.base)
            place = f"/v1/webhooks/{made['id']}"
            secrets = [made["secret"]]
            secrets += [hooked.client.post(f"{place}/secret").json()["secret"] for _ in range(2)]
            hooked.publish()
            until(lambda: len(receiver.got) == 1)
            (received,) = receiver.got
            assert [received.verifies(secret) for secret in secrets] == [False, True, True]
            with hooked.store.write() as unit:
                kept = unit.webhooks.lock(made["id"])
                assert kept.rotated_at is not None
                earlier = kept.rotated_at - timedelta(hours=24)
                unit.webhooks.put(type(kept)(**{**vars(kept), "rotated_at": earlier}))
            hooked.publish()
            until(lambda: len(receiver.got) == 2)
            last = receiver.got[1]
            assert [last.verifies(secret) for secret in secrets] == [False, False, True]

    def test_another_secret_of_the_server_is_noticed(self, hooked: Hooked) -> None:
        with receiving() as receiver:
            made = hooked.create(receiver.base)
            with hooked.store.write() as unit:
                kept = unit.webhooks.lock(made["id"])
                unit.webhooks.put(type(kept)(**{**vars(kept), "check": "0" * 32}))
            hooked.publish()
            until(lambda: hooked.statuses(made["id"]) == ["failed"])
            (item,) = hooked.deliveries(made["id"])
            assert "PRIORSHIFT_KEY_SECRET" in item["attempts"][0]["error"]
        assert receiver.got == []

    def test_without_a_secret_of_the_server_there_are_none(self, sqlite_url: str) -> None:
        with served(create_app(Settings(database_url=sqlite_url))) as client:
            body = {"url": "https://8.8.8.8/", "events": ["alert.opened"]}
            answer = client.post("/v1/webhooks", json=body)
        assert answer.status_code == 409
        assert "PRIORSHIFT_KEY_SECRET" in answer.json()["detail"]


def everything(store: Store) -> str:
    """All of the database as text."""
    found: list[Any] = []
    with store.engine.connect() as connection:
        for name in ("webhooks", "deliveries", "tasks", "audit", "idempotency"):
            found += connection.execute(sa.text(f"SELECT * FROM {name}")).all()
    return str(found)


class TestResource:
    def test_what_is_wrong_is_told_where(self, hooked: Hooked) -> None:
        good = {"url": "https://8.8.8.8/", "events": ["alert.opened"]}
        for change, pointer in (
            ({"url": "https://127.0.0.2/"}, "/url"),
            ({"url": "https://[::ffff:10.0.0.1]/"}, "/url"),
            ({"url": "http://8.8.8.8/"}, "/url"),
            ({"url": "https://a:b@8.8.8.8/"}, "/url"),
            ({"url": 3}, "/url"),
            ({"url": "https://8.8.8.8/\x00"}, "/url"),
            ({"events": []}, "/events"),
            ({"events": ["estimate.created"]}, "/events/0"),
            ({"events": ["alert.opened", "alert.opened"]}, "/events"),
            ({"models": []}, "/models"),
            ({"models": ["No Name"]}, "/models/0"),
            ({"secret": "whsec_mine"}, "/secret"),
        ):
            answer = hooked.client.post("/v1/webhooks", json={**good, **change})
            assert answer.status_code == 422, change
            assert answer.json()["errors"][0]["pointer"] == pointer, answer.text
        made = hooked.create("https://8.8.8.8/")
        place = f"/v1/webhooks/{made['id']}"
        for change, pointer in (
            ({"url": "https://10.0.0.1/"}, "/url"),
            ({"events": []}, "/events"),
            ({"url": ""}, "/url"),
            ({"disabled": "no"}, "/disabled"),
            ({"reason": "x"}, "/reason"),
        ):
            answer = hooked.client.patch(place, json=change)
            assert answer.status_code == 422, change
            assert answer.json()["errors"][0]["pointer"] == pointer, answer.text
        shown = hooked.client.get(place).json()
        assert shown == {**made, "secret": None}

    def test_change_list_and_delete(self, hooked: Hooked) -> None:
        made = [hooked.create(f"http://hooks.internal/{n}", models=["cards"]) for n in range(3)]
        place = f"/v1/webhooks/{made[0]['id']}"
        change = {"models": None, "monitors": ["m"], "events": ["alert.closed"], "description": "x"}
        changed = hooked.client.patch(place, json=change).json()
        assert {name: changed[name] for name in change} == change
        assert changed["url"] == made[0]["url"]
        assert changed["updated_at"] > made[0]["updated_at"]
        first = hooked.client.get("/v1/webhooks", params={"limit": 2}).json()
        rest = hooked.client.get("/v1/webhooks", params={"cursor": first["next_cursor"]}).json()
        ids = [item["id"] for item in (*first["items"], *rest["items"])]
        assert ids == [item["id"] for item in reversed(made)]
        assert hooked.client.delete(place).status_code == 204
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/test"), ("POST", "/secret")):
            assert hooked.client.request(method, place + path).status_code == 404
        assert hooked.client.patch(place, json={}).status_code == 404
        assert hooked.client.get("/v1/webhooks/x").status_code == 404

    def test_deliveries_are_paged(self, hooked: Hooked) -> None:
        with receiving() as receiver:
            made = hooked.create(receiver.base)
            hooked.publish(5)
            until(lambda: hooked.statuses(made["id"]) == ["delivered"] * 5)
        place, seen, cursor = f"/v1/webhooks/{made['id']}/deliveries", [], None
        while True:
            query = {"limit": "2", **({} if cursor is None else {"cursor": cursor})}
            page = hooked.client.get(place, params=query).json()
            seen += [item["id"] for item in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert seen == [item["id"] for item in hooked.deliveries(made["id"])]
        assert len(set(seen)) == 5

    def test_writes_leave_a_trail(self, database_url: str, tmp_path: Path) -> None:
        settings = guarded_settings(database_url, tmp_path)
        with served(create_app(settings)) as client:
            client.headers.update(bearer(ADMIN))
            body = {"url": "https://8.8.8.8/", "events": ["alert.opened"]}
            id = client.post("/v1/webhooks", json=body).json()["id"]
            client.patch(f"/v1/webhooks/{id}", json={"description": "x"})
            client.post(f"/v1/webhooks/{id}/secret")
            client.delete(f"/v1/webhooks/{id}")
            trail = client.get("/v1/audit").json()["items"]
        assert [entry["action"] for entry in reversed(trail)] == [
            "POST /v1/webhooks",
            "PATCH /v1/webhooks/{id}",
            "POST /v1/webhooks/{id}/secret",
            "DELETE /v1/webhooks/{id}",
        ]
        assert {entry["key_name"] for entry in trail} == {"admin-key-file"}


class TestPause:
    NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)

    @pytest.mark.parametrize(
        ("retry_after", "least", "most"),
        [
            (None, 4.0, 6.0),
            ("0", 4.0, 6.0),
            ("120", 120, 120),
            (" 120 ", 120, 120),
            ("999999999999", 28_800, 28_800),
            ("Mon, 01 Jun 2026 12:10:00 GMT", 600, 600),
            ("Mon, 01 Jun 2026 12:10:00", 600, 600),
            ("Mon, 01 Jun 2020 12:10:00 GMT", 4.0, 6.0),
            ("-5", 4.0, 6.0),
            ("soon", 4.0, 6.0),
            ("Mon, 99 Jun 2026 99:10:00 GMT", 4.0, 6.0),
            ("²", 4.0, 6.0),
        ],
    )
    def test_what_the_receiver_asks_for(
        self, retry_after: str | None, least: float, most: float, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.undo()
        for _ in range(20):
            assert least <= deliver.pause(1, retry_after, self.NOW) <= most

    def test_the_schedule_spans_a_day(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.undo()
        assert 23 < sum(deliver.SCHEDULE) / 3600 < 26
        assert list(deliver.SCHEDULE) == sorted(deliver.SCHEDULE)


def test_every_event_has_a_name_of_two_parts() -> None:
    assert get_args(Event) == EVENTS
    assert all(event.count(".") == 1 and event.islower() for event in EVENTS)
