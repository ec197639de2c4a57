"""What is too old goes, in small batches; nothing else does."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
import sqlalchemy as sa

from app.operations import housekeeping
from app.operations.housekeeping import Housekeeping
from models_store.engine import connect
from models_store.estimates import Filter
from models_store.records import RecordedAnswer, WebhookRecord
from models_store.store import Store
from models_store.tables import ended_sessions, estimate_segments, evaluations
from tests.models_store.test_store import prepared, validated
from tests.patience import until

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def kept(database_url: str) -> Iterator[Store]:
    store = Store(connect(database_url))
    yield store
    store.close()


def register(store: Store) -> int:
    """A version; its id."""
    with store.write() as unit:
        unit.models.create("m", "classifier", ("a", "b"), "", NOW)
        return unit.versions.register("m", prepared(validated()), {}, NOW)[0].id


def add(store: Store, version_id: int, age_days: float) -> str:
    made, name = NOW - timedelta(days=age_days), uuid4().hex
    with store.write() as unit:
        unit.estimates.add(version_id, NOW, made, {"country": "BE"}, {"id": name})
        unit.evaluations.add(version_id, name, made, {"id": uuid4().hex})
    return name


def count(store: Store, table: sa.Table) -> int:
    with store.engine.connect() as connection:
        found: int = connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
    return found


def test_old_estimates_go_with_what_hangs_on_them(
    kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "BATCH", 4)
    version_id = register(kept)
    old = [add(kept, version_id, 31 + k) for k in range(9)]
    young = [add(kept, version_id, 29 - k) for k in range(3)]
    assert Housekeeping(kept, None).sweep(NOW) == 0
    assert Housekeeping(kept, 30).sweep(NOW) == len(old)
    with kept.read() as unit:
        left = [record.content["id"] for record in unit.estimates.list(Filter(), None, 50).items]
    assert sorted(left) == sorted(young)
    assert count(kept, estimate_segments) == len(young)
    assert count(kept, evaluations) == len(young)
    assert Housekeeping(kept, 30).sweep(NOW) == 0


def test_answers_to_retries_go_after_a_day(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "BATCH", 2)
    register(kept)
    with kept.read() as unit:
        model_id = unit.models.get("m").id
    for k in range(7):
        made = NOW - timedelta(hours=21 + k)
        with kept.write() as unit:
            answer = RecordedAnswer(201, {}, b"{}")
            unit.idempotency.add("o", "r", f"k{k}", "h", model_id, answer, made)
    Housekeeping(kept, None).sweep(NOW)
    with kept.read() as unit:
        found = [unit.idempotency.find("o", "r", f"k{k}", "h", NOW) for k in range(7)]
        assert [answer is not None for answer in found] == [True] * 3 + [False] * 4
        assert not unit.idempotency.stale(NOW)


def test_deliveries_of_webhooks_go_after_a_month(
    kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "BATCH", 2)
    moment = NOW - timedelta(days=60)
    webhook = WebhookRecord(
        id="1" * 32,
        url="https://hooks.example.com/",
        events=("alert.opened",),
        models=None,
        monitors=None,
        description="",
        disabled=False,
        reason=None,
        generation=1,
        check="",
        rotated_at=None,
        created_at=moment,
        updated_at=moment,
    )
    with kept.write() as unit:
        unit.webhooks.add(webhook)
        for age in (40, 35, 31, 30.5, 29, 1):
            unit.webhooks.publish("alert.opened", {}, NOW - timedelta(days=age))
    Housekeeping(kept, None).sweep(NOW)
    with kept.read() as unit:
        left = unit.webhooks.deliveries(webhook.id, None, 50).items
    assert [(NOW - record.created_at).days for record in left] == [1, 29]


def test_a_database_that_goes_is_told_once(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(housekeeping, "FIRST_SECONDS", 0.01)
    store = Store(connect(sqlite_url + ".nowhere/x.db"))
    found = Housekeeping(store, None)
    found.start()
    until(lambda: len(caplog.records) > 0)
    found._stopped.wait(0.1)
    found.close()
    store.close()
    assert ["database unavailable" in str(record.msg) for record in caplog.records] == [True]


def test_ended_sessions_go_when_their_cookies_are_over(
    kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "BATCH", 2)
    with kept.write() as unit:
        for k in range(5):
            unit.sessions.end(f"over {k}", NOW - timedelta(hours=2))
        for _ in range(2):
            unit.sessions.end("stands", NOW + timedelta(hours=2))
    Housekeeping(kept, None).sweep(NOW)
    assert count(kept, ended_sessions) == 1
    with kept.read() as unit:
        assert unit.sessions.ended("stands")


def test_what_could_not_be_written_is_tried_before_all_else(kept: Store) -> None:
    tried = threading.Event()
    keeper = Housekeeping(kept, None, tried.set)
    keeper.start()
    assert tried.wait(60)
    keeper.close()
