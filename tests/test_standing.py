"""What an operator is told of the monitors, beside what their series say."""

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import numpy as np
import pytest
import sqlalchemy as sa

from app.clock import now
from app.main import create_app
from app.metrics import OTHER
from app.monitoring.window_closing import KIND
from app.operations import monitor_standings
from app.settings import Settings
from models_store.series import packed
from models_store.store import Store, UnitOfWork
from models_store.windows import Closing
from tests.api.test_access import Guarded, bearer, guarded_settings
from tests.api.test_metrics import Samples, samples, scraped, value
from tests.conftest import served
from tests.monitoring.streams import make, post, register, rows, series

CLASSES = ("legit", "fraud")
START = datetime(2026, 3, 1, tzinfo=UTC)
NASTY = ('a"b', "back\\slash", "new\nline", 'x",y="z', "{}", " ", "é🦊", OTHER)


def add_monitor(
    unit: UnitOfWork, name: str, classes: tuple[str, ...] = CLASSES, model: str | None = None
) -> str:
    record = unit.models.create(model or f"of-{name}", "classifier", classes, "", now())
    content = {"window": {"rows": 100}}
    return unit.monitors.add(f"id-{name}", name, record.id, content, now()).id


def add_window(
    unit: UnitOfWork,
    monitor_id: str,
    segment: str = "",
    shares: tuple[float, ...] = (0.7, 0.3),
    number: int = 0,
) -> None:
    stream = unit.windows.stream(monitor_id, segment, 1000)
    window = unit.windows.begin(stream.id, number, 0, 1_000_000, None)
    unit.windows.seal(stream.id, 1_000_000)
    table = np.column_stack([shares] * 4)
    told = packed(0, 1_000_000, 5, 1, (0.5, 0.01, False), table)
    unit.windows.close(window.id, Closing("closed", told))


def told(store: Store, only: frozenset[str] | None = None) -> Samples:
    families = monitor_standings.MonitorStandings(store, KIND).families(only)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def test_the_last_window_is_told_as_the_series_has_it(client: httpx.Client) -> None:
    register(client)
    make(client, segment_by="country", alert={"false_alarms": 1, "per": "P30D"})
    rng = np.random.default_rng(0)
    for hour, share in enumerate((0.2, 0.2, 0.6)):
        moment = (START + timedelta(hours=hour)).isoformat()
        post(client, rows(rng, 100, share)[1], observed_at=moment, segment={"country": "BE"})
    said = series(client, 3)
    found = scraped(client)
    stream = {"monitor": "m", "segment": "BE"}
    for name in CLASSES:
        for metric, column in (
            ("prevalence_ratio", "estimate"),
            ("prevalence_lower_ratio", "lower"),
            ("prevalence_upper_ratio", "upper"),
            ("prevalence_source_ratio", "source"),
        ):
            labels = {**stream, "class": name}
            assert value(found, metric, **labels) == said[column][name][-1], metric
    assert value(found, "shift_p_value", **stream) == said["p_value"][-1]
    assert value(found, "shift_level", **stream) == said["level"][-1]
    kept = client.get("/v1/estimates?limit=1").json()["items"][0]
    assert value(found, "shift_statistic", **stream) == kept["shift"]["statistic"]
    assert value(found, "window_rows", **stream) == 100
    ended = value(found, "window_end_timestamp_seconds", **stream)
    assert ended == (START + timedelta(hours=2)).timestamp()
    assert value(found, "alerts_open", monitor="m") == 1
    alert = client.get("/v1/alerts").json()["items"][0]["id"]
    client.patch(f"/v1/alerts/{alert}", json={"state": "acknowledged"}).raise_for_status()
    time.sleep(monitor_standings.FRESH_SECONDS)
    found = scraped(client)
    assert value(found, "alerts_open", monitor="m") == 0
    assert value(found, "alerts_acknowledged", monitor="m") == 1
    assert value(found, "database_up") == value(found, "ready") == 1
    assert value(found, "workers") == 1
    assert 5e7 < value(found, "resident_memory_bytes") < 5e9


class TestBounds:
    def test_classes_beyond_the_first_are_added_up(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(monitor_standings, "MOST_CLASSES", 2)
        with store.write() as unit:
            add_window(unit, add_monitor(unit, "m", tuple("abcd")), "", (0.1, 0.2, 0.3, 0.4))
            add_window(unit, add_monitor(unit, "n", tuple("abc")), "", (0.1, 0.2, 0.7))
        found = told(store)
        of = {"monitor": "m", "segment": ""}
        assert value(found, "prevalence_ratio", **of, **{"class": "b"}) == 0.2
        assert value(found, "prevalence_ratio", **of, **{"class": OTHER}) == pytest.approx(0.7)
        upper = ("priorshift_prevalence_upper_ratio", frozenset({**of, "class": OTHER}.items()))
        assert upper not in found
        # One alone is its own sum, and has an interval.
        assert value(found, "prevalence_upper_ratio", monitor="n", segment="", **{"class": OTHER})
        assert value(found, "series_left_out", of="classes") == 3

    def test_names_hold_anything(self, sqlite_url: str) -> None:
        shares = tuple(np.arange(1.0, len(NASTY) + 1))
        app = create_app(Settings(database_url=sqlite_url))
        with app.state.services.store.write() as unit:
            monitor = add_monitor(unit, "m", NASTY)
            for segment in NASTY:
                add_window(unit, monitor, segment, shares)
        with served(app) as client:
            text = client.get("/metrics").text
            found = scraped(client)
        for segment in NASTY:
            for name, share in zip(NASTY, shares, strict=True):
                labels = {"monitor": "m", "segment": segment, "class": name}
                assert value(found, "prevalence_ratio", **labels) == share
        lines = [line.rpartition(" ")[0] for line in text.splitlines() if line[:1] != "#"]
        assert len(lines) == len(set(lines))

    def test_every_monitor_comes_before_second_segments(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(monitor_standings, "MOST_STREAMS", 5)
        with store.write() as unit:
            for name in "abc":
                monitor = add_monitor(unit, name)
                for segment in "zyx":
                    add_window(unit, monitor, segment)
            add_monitor(unit, "empty")
        found = told(store)
        rows_of = [key for key in found if key[0] == "priorshift_window_rows"]
        shown = sorted(tuple(sorted(labels)) for _, labels in rows_of)
        streams = [(labels[0][1], labels[1][1]) for labels in shown]
        assert streams == [("a", "y"), ("a", "z"), ("b", "y"), ("b", "z"), ("c", "z")]
        assert value(found, "series_left_out", of="streams") == 4
        assert value(found, "series_left_out", of="monitors") == 0
        monkeypatch.setattr(monitor_standings, "MOST_STREAMS", 2)
        assert value(told(store), "series_left_out", of="monitors") == 1

    def test_alerts_of_every_monitor_count(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(monitor_standings, "MOST_STREAMS", 1)
        with store.write() as unit:
            for name in "abc":
                monitor = add_monitor(unit, name)
                add_window(unit, monitor)
                stream = unit.windows.stream(monitor, "", 1)
                for state in ("open", "closed"):
                    alert = {"id": f"{name}{state}", "state": state}
                    unit.alerts.open(monitor, stream.id, alert, now())
        found = told(store)
        assert value(found, "alerts_open", monitor="a") == 1
        assert value(found, "alerts_open", monitor=OTHER) == 2


class TestLag:
    def seal(self, unit: UnitOfWork, end: datetime, asked: datetime | None) -> None:
        stream = unit.windows.stream(add_monitor(unit, "m"), "", 1)
        micros = int(end.timestamp() * 1e6)
        unit.windows.begin(stream.id, 0, micros - 1, micros, None)
        unit.windows.seal(stream.id, micros)
        if asked is not None:
            unit.tasks.add(KIND, str(stream.id), {"stream": stream.id}, asked)

    def test_is_how_long_a_sealed_window_has_waited(self, store: Store) -> None:
        with store.write() as unit:
            self.seal(unit, now() - timedelta(seconds=100), None)
        assert value(told(store), "window_lag_seconds", monitor="m") == pytest.approx(100, abs=20)

    def test_is_none_for_rows_of_long_ago_that_came_just_now(self, store: Store) -> None:
        with store.write() as unit:
            self.seal(unit, START, now())
        assert value(told(store), "window_lag_seconds", monitor="m") < 20

    def test_is_that_of_an_open_one_that_is_due(self, store: Store) -> None:
        with store.write() as unit:
            stream = unit.windows.stream(add_monitor(unit, "m"), "", 1)
            at = int(now().timestamp() * 1e6)
            unit.windows.begin(stream.id, 0, at - 90_000_000, at - 80_000_000, at - 60_000_000)
            unit.windows.begin(stream.id, 1, at - 80_000_000, at + 80_000_000, at + 90_000_000)
        assert value(told(store), "window_lag_seconds", monitor="m") == pytest.approx(60, abs=20)


@pytest.fixture
def guarded(database_url: str, tmp_path: Path) -> Iterator[Guarded]:
    settings = guarded_settings(database_url, tmp_path)
    app = create_app(settings)
    with served(app) as client:
        yield Guarded(client, app.state.services.store, settings)


def test_a_key_sees_its_own_models_only(guarded: Guarded) -> None:
    with guarded.store.write() as unit:
        for name in ("mine", "secret"):
            add_window(unit, add_monitor(unit, f"{name}-monitor", model=f"{name}-model"))
    counts = {"class_counts": {"legit": 990, "fraud": 110}}
    for name in ("mine-model", "secret-model"):
        for place, body in (
            ("versions", {"source": counts}),
            ("versions/1/estimates", {"posteriors": [[0.5, 0.5]]}),
        ):
            address = f"/v1/models/{name}/{place}"
            answer = guarded.client.post(address, json=body, headers=bearer("x" * 40))
            assert answer.status_code == 201, answer.text
    key = guarded.key("read", models=["mine-model"])
    text = guarded.client.get("/metrics", headers=bearer(key)).text
    assert "secret" not in text
    assert (
        'priorshift_prevalence_ratio{class="fraud",monitor="mine-monitor",segment=""} 0.3' in text
    )
    assert 'priorshift_estimates_total{method="mle",model="mine-model",version="1"} 1.0' in text
    assert 'priorshift_series_left_out{of="monitors"} 0.0' in text
    everything = guarded.client.get("/metrics", headers=bearer("x" * 40)).text
    assert "secret-monitor" in everything
    assert 'model="secret-model"' in everything


def test_a_scrape_outlives_the_database(
    workspace: Path, sqlite_template: Path, tmp_path: Path
) -> None:
    path = tmp_path / "goes.db"
    shutil.copy(sqlite_template, path)
    app = create_app(Settings(database_url=f"sqlite:///{path}"))
    with served(app) as client:
        with app.state.services.store.write() as unit:
            add_window(unit, add_monitor(unit, "m"))
        assert "priorshift_prevalence_ratio{" in client.get("/metrics").text
        app.state.services.store.engine.dispose()
        path.rename(tmp_path / "away.db")
        path.mkdir()
        time.sleep(monitor_standings.FRESH_SECONDS)
        found = scraped(client)
        assert value(found, "database_up") == value(found, "ready") == 0
        assert ("priorshift_database_up", frozenset()) in found
        assert not any(name.startswith(("priorshift_prev", "priorshift_al")) for name, _ in found)
        path.rmdir()
        (tmp_path / "away.db").rename(path)
        app.state.services.store.engine.dispose()
        time.sleep(monitor_standings.FRESH_SECONDS)
        assert value(scraped(client), "ready") == 1


def test_a_database_of_another_release_answers_and_is_not_ready(sqlite_url: str) -> None:
    app = create_app(Settings(database_url=sqlite_url))
    with served(app) as client:
        assert value(scraped(client), "ready") == 1
        with app.state.services.store.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
            connection.exec_driver_sql("DROP TABLE windows")
        time.sleep(monitor_standings.FRESH_SECONDS)
        found = scraped(client)
        assert value(found, "database_up") == 1
        assert value(found, "ready") == 0
        assert not any(name.startswith("priorshift_window") for name, _ in found)


def test_a_database_that_hangs_is_down_and_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_standings, "PATIENCE_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        app = create_app(Settings(database_url=f"postgresql://u:p@127.0.0.1:{port}/none"))
        before = threading.active_count()
        for _ in range(5):
            found = {f.name: f.samples[0].value for f in app.state.services.standings.families()}
            assert found == {"priorshift_database_up": 0, "priorshift_ready": 0}
        assert threading.active_count() <= before + 1


def test_connections_are_counted(store: Store) -> None:
    app = create_app(Settings(database_url=store.engine.url.render_as_string(False)))
    metrics, engine = app.state.services.metrics, app.state.services.store.engine

    def taken() -> float:
        return value(samples(metrics.page().decode()), "database_connections_in_use")

    with engine.connect(), engine.connect():
        assert taken() == 2
    assert taken() == 0
    with pytest.raises(sa.exc.InvalidRequestError), engine.connect() as connection:
        connection.invalidate()
        connection.commit()
        raise sa.exc.InvalidRequestError
    assert taken() == 0
    engine.dispose()
