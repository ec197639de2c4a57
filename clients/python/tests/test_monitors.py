"""Monitors by both clients: rows in, windows, series, alerts."""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import numpy as np
import pytest

from clients.python.tests.frames import ByInterchange
from clients.python.tests.servers import hanging_up, scripted
from clients.python.tests.streams import drawn, hour, register
from clients.python.tests.test_answers import with_news
from priorshift_client import (
    AlertSpec,
    AsyncClient,
    Client,
    Conflict,
    InvalidInput,
    NotFound,
    PriorshiftError,
    Retries,
    WindowSpec,
)
from tests.api.sources import CLASSES
from tests.patience import Deadline, until

HOURS = WindowSpec(duration=timedelta(hours=1), grace="PT10M")
ROWS = drawn(6)


@pytest.fixture(scope="module", autouse=True)
def cards(client: Client) -> str:
    register(client)
    return "cards"


def test_from_rows_to_an_alert_and_its_close(client: Client) -> None:
    made = client.monitors.create(
        "shifting", "cards", WindowSpec(rows=400), alert=AlertSpec(recovery=1), keep_rows=True
    )
    assert made.window == WindowSpec(rows=400)
    assert made.alert is not None
    assert (made.version, made.alert.per, made.alert.level) == ("latest", "P30D", None)
    batches = [drawn(400, share, k) for k, share in enumerate((0.2, 0.6))]
    told = [
        client.monitors.observe(made, rows, observed_at=hour(k)) for k, rows in enumerate(batches)
    ]
    assert [(t.accepted, t.late, t.streams[0].closed[0].number) for t in told] == [
        (400, 0, 0),
        (400, 0, 1),
    ]
    (alert,) = until(lambda: list(client.alerts.list(made, state="open")))
    assert (alert.monitor, alert.size, alert.segment) == ("shifting", 400, None)
    assert alert.p_value < alert.level
    assert {share.name: share.source for share in alert.prevalence}["fraud"] < 0.25
    assert client.estimates.get(alert.estimate).monitor == "shifting"

    seen = client.alerts.acknowledge(alert, "a campaign")
    assert (seen.state, seen.note, seen.acknowledged_at is None) == (
        "acknowledged",
        "a campaign",
        False,
    )
    assert client.alerts.get(alert.id) == seen
    assert list(client.alerts.list(made, state="open")) == []
    ended = client.alerts.close(seen)
    assert (ended.state, ended.note, ended.closed_at is None) == ("closed", "a campaign", False)
    assert list(client.alerts.list("shifting", since=seen.opened_at)) == [ended]
    assert list(client.alerts.list("shifting", until=seen.opened_at)) == []

    windows = list(client.monitors.windows(made, limit=1))
    assert [(w.number, w.state, w.size) for w in windows] == [
        (1, "closed", 400),
        (0, "closed", 400),
    ]
    assert windows[0].estimate == alert.estimate
    kept = client.monitors.rows(made, windows[0])
    np.testing.assert_allclose(kept, batches[1], atol=1e-7)  # in single precision

    series = client.monitors.series(made)
    assert (len(series), series.count, series.classes) == (2, 2, ("legit", "fraud"))
    assert series.time == (hour(0), hour(1))
    assert series.detected == (False, True)
    assert series.segment == (None, None)
    assert (series.lower["fraud"] < series.estimate["fraud"]).all()
    assert series.p_value[1] < series.level[1] < series.p_value[0]
    later = client.monitors.series("shifting", since=hour(1), class_name="fraud", points=5)
    assert (later.time, list(later.estimate)) == ((hour(1),), ["fraud"])
    assert client.monitors.series_csv(made, until=hour(1)).count("\n") == 1 + 2

    again = client.monitors.get("shifting")
    assert (again.takes, again.segments) == ("posteriors", 1)
    assert again.alert is not None
    client.monitors.delete(made)
    with pytest.raises(NotFound):
        client.monitors.get("shifting")


def test_a_specification_says_what_the_service_would(client: Client) -> None:
    spec = AlertSpec()
    plain = client._http.post(
        "/v1/monitors",
        json={"name": "plain", "model": "cards", "window": {"rows": 100}, "alert": {}},
    ).json()
    assert plain["interval_level"] == 0.95
    assert {name: plain["alert"][name] for name in spec.content()} == spec.content()
    made = client.monitors.create("stated", "cards", WindowSpec(rows=100), alert=spec)
    # What was answered may be asked again.
    copied = client.monitors.create("copied", "cards", made.window, alert=made.alert)
    assert (copied.window, copied.alert) == (made.window, made.alert)


@pytest.mark.parametrize(
    ("version", "kept"), [("latest", "latest"), (1, "1"), ("1", "1"), ("@main", "@main")]
)
def test_versions_by_number_or_alias(client: Client, version: int | str, kept: str) -> None:
    client.aliases.put("cards", "main", 1)
    name = f"of-{str(version).strip('@')}-{type(version).__name__}"
    assert client.monitors.create(name, "cards", HOURS, version).version == kept


FORMS: list[tuple[str, Any, list[str] | None]] = [
    ("array", ROWS, None),
    ("singles", ROWS.astype(np.float32), None),
    ("lists", ROWS.tolist(), None),
    ("reversed", ROWS[:, ::-1], ["fraud", "legit"]),
    ("columns", {"fraud": ROWS[:, 1], "legit": ROWS[:, 0]}, None),
    ("frame", ByInterchange({"fraud": ROWS[:, 1], "legit": ROWS[:, 0]}), None),
]


@pytest.mark.parametrize(("name", "batch", "columns"), FORMS, ids=[form[0] for form in FORMS])
def test_rows_in_every_form(
    client: Client, name: str, batch: Any, columns: list[str] | None
) -> None:
    monitor = client.monitors.create(f"form-{name}", "cards", HOURS)
    observed = client.monitors.observe(monitor, batch, observed_at=hour(0), columns=columns)
    assert observed.accepted == 6
    (window,) = client.monitors.windows(monitor, state="open")
    found = client.monitors.rows(monitor, window.id)
    np.testing.assert_allclose(found, ROWS, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "batch"), [("labels", ["legit"] * 5 + ["fraud"]), ("counts", {"legit": 5, "fraud": 1})]
)
def test_predictions_are_watched_too(client: Client, name: str, batch: Any) -> None:
    monitor = client.monitors.create(f"of-{name}", "cards", HOURS, method="acc-qp")
    assert client.monitors.observe(monitor, batch, observed_at=hour(0)).accepted == 6
    (window,) = client.monitors.windows(monitor)
    assert client.monitors.rows(monitor, window).tolist() == [[5, 1]]


TIMES = [hour(0), hour(1), hour(0.5), hour(1.5), hour(0), hour(1)]
COUNTRIES = ["BE", "BE", "NL", "NL", "BE", "BE"]


@pytest.mark.parametrize(
    ("name", "times", "countries"),
    [
        ("datetimes", TIMES, COUNTRIES),
        ("texts", [time.isoformat() for time in TIMES], tuple(COUNTRIES)),
        ("numpy", np.array([t.replace(tzinfo=None) for t in TIMES], "M8[ns]"), np.array(COUNTRIES)),
        ("mixed", [np.datetime64(t.replace(tzinfo=None), "ns") for t in TIMES], iter(COUNTRIES)),
        ("objects", np.array(TIMES, object), np.array(COUNTRIES, object)),
    ],
)
def test_times_and_segments_of_each_row(
    client: Client, name: str, times: Any, countries: Any
) -> None:
    monitor = client.monitors.create(f"rows-{name}", "cards", HOURS, segment_by="country")
    segment = {"country": countries}
    told = client.monitors.observe(monitor, ROWS, observed_at=times, segment=segment)
    assert [(s.segment, s.accepted) for s in told.streams] == [("BE", 4), ("NL", 2)]
    found = {(w.segment, w.start): w.size for w in client.monitors.windows(monitor)}
    assert found == {
        ("BE", hour(0)): 2,
        ("BE", hour(1)): 2,
        ("NL", hour(0)): 1,
        ("NL", hour(1)): 1,
    }
    assert {w.segment for w in client.monitors.windows(monitor, segment="NL")} == {"NL"}
    told = client.monitors.observe(monitor, ROWS, observed_at=hour(9), segment={"country": "NL"})
    assert [w.start for w in told.streams[0].closed] == [hour(1)]
    until(lambda: client.monitors.series(monitor, segment="NL").count == 2)


def test_one_numpy_time_is_in_utc_and_a_missing_one_is_named(client: Client) -> None:
    monitor = client.monitors.create("numpy-time", "cards", HOURS)
    client.monitors.observe(monitor, ROWS, observed_at=np.datetime64("2026-03-01T02:30"))
    (window,) = client.monitors.windows(monitor)
    assert window.start == hour(2)
    times = np.array(["2026-03-01T02:30"] * 5 + ["NaT"], "M8[s]")
    with pytest.raises(InvalidInput, match="every row needs a time"):
        client.monitors.observe(monitor, ROWS, observed_at=times)


def test_rows_count_once_however_often_they_are_sent(client: Client, base: str) -> None:
    monitor = client.monitors.create("once", "cards", HOURS, idempotency_key="make-once")
    assert client.monitors.create("once", "cards", HOURS, idempotency_key="make-once") == monitor
    for _ in range(2):
        client.monitors.observe(monitor, ROWS, observed_at=hour(0), idempotency_key="rows-1")
    with pytest.raises(Conflict):
        client.monitors.observe(monitor, ROWS[:3], observed_at=hour(0), idempotency_key="rows-1")
    port = int(base.rstrip("/").rpartition(":")[2])
    with hanging_up(port, 2) as line, Client(line, retries=Retries(3, 0.01)) as unlucky:
        assert unlucky.monitors.observe("once", ROWS, observed_at=hour(0)).accepted == 6
    assert [window.size for window in client.monitors.windows("once")] == [12]


def test_late_rows_are_told(client: Client) -> None:
    monitor = client.monitors.create("late", "cards", WindowSpec(duration="PT1H", minimum_rows=50))
    client.monitors.observe(monitor, ROWS, observed_at=hour(0))
    client.monitors.observe(monitor, ROWS, observed_at=hour(2))
    told = client.monitors.observe(monitor, ROWS, observed_at=hour(0))
    assert (told.accepted, told.late) == (0, 6)
    assert [warning.code for warning in told.warnings] == ["late-rows"]
    series = until(lambda: found if (found := client.monitors.series(monitor)).count else None)
    assert np.isnan(series.estimate["fraud"][0])
    assert (series.detected[0], series.version[0]) == (None, None)
    (silent,) = client.monitors.windows(monitor, state="closed")
    assert silent.estimate is None
    assert silent.note


def test_what_is_left_out_of_a_change_stays(client: Client) -> None:
    monitor = client.monitors.create("changing", "cards", HOURS, alert=AlertSpec(), description="d")
    changed = client.monitors.change(monitor, alert=AlertSpec(2, timedelta(days=7)))
    assert changed.alert is not None
    assert (changed.alert.false_alarms, changed.alert.per, changed.description) == (
        2,
        "PT604800S",
        "d",
    )
    changed = client.monitors.change("changing", description="e")
    assert (changed.alert is None, changed.description) == (False, "e")
    assert client.monitors.change(monitor, alert=None).alert is None


def test_lists_come_in_pages(client: Client) -> None:
    names = {client.monitors.create(f"p{k}", "cards", HOURS).name for k in range(3)}
    listed = [monitor.name for monitor in client.monitors.list("cards", limit=2)]
    assert names < set(listed)
    assert listed == sorted(listed)


@pytest.mark.parametrize(
    ("work", "error", "said"),
    [
        (lambda c: c.create("w", "cards", WindowSpec()), InvalidInput, "one of rows and duration"),
        (lambda c: c.create("w", "cards", WindowSpec(duration="1h")), InvalidInput, "ISO 8601"),
        (
            lambda c: c.create("w", "cards", WindowSpec(duration=timedelta(seconds=0.5))),
            ValueError,
            "whole seconds",
        ),
        (lambda c: c.create("w", "cards", HOURS, "newest"), ValueError, "a version is a number"),
        (lambda c: c.create("w", "nobody", HOURS), NotFound, "nobody"),
        (lambda c: c.create("w", "cards", HOURS, method="rffm"), Conflict, "mle or acc-qp"),
        (lambda c: c.create("w", "cards", HOURS, alert=AlertSpec(0)), InvalidInput, "false_alarms"),
        (lambda c: c.observe("wrong", [[0.5, 0.5], [0.5]]), InvalidInput, "has 1 values"),
        (lambda c: c.observe("wrong", ROWS * 2), InvalidInput, "sums to 2"),
        (lambda c: c.observe("wrong", ROWS, observed_at="yesterday"), InvalidInput, "observed_at"),
        (
            lambda c: c.observe("wrong", ROWS, observed_at=TIMES[:5]),
            InvalidInput,
            "5 entries for 6 rows",
        ),
        (lambda c: c.observe("wrong", ROWS, segment={"a": "b"}), InvalidInput, "segment_by"),
        (lambda c: c.observe("wrong", ROWS, observed_at=5), InvalidInput, "observed_at"),
        (lambda c: c.observe("", ROWS), ValueError, "cannot be a name"),
        (lambda c: c.series("wrong", class_name="bird"), InvalidInput, "not a class"),
        (lambda c: c.rows("wrong", 2**40), NotFound, "window"),
    ],
)
def test_what_is_wrong_is_said(
    client: Client, work: Callable[[Any], Any], error: type[Exception], said: str
) -> None:
    if "wrong" not in [monitor.name for monitor in client.monitors.list()]:
        client.monitors.create("wrong", "cards", HOURS)
    with pytest.raises(error, match=said) as raised:
        work(client.monitors)
    assert isinstance(raised.value, PriorshiftError | ValueError)


def test_fields_that_nobody_knows_are_left_out(client: Client, base: str) -> None:
    monitor = client.monitors.create("news", "cards", WindowSpec(rows=10), alert=AlertSpec())
    observed = client.monitors.observe(monitor, drawn(10), observed_at=hour(0))
    series = until(lambda: found if (found := client.monitors.series(monitor)).count else None)
    looks: list[tuple[str, Callable[[Client], bool]]] = [
        ("/news", lambda c: c.monitors.get("news") == client.monitors.get("news")),
        ("/news/windows", lambda c: len(list(c.monitors.windows("news"))) == 1),
        ("/news/series", lambda c: c.monitors.series("news").time == series.time),
    ]
    for path, same in looks:
        content = httpx.get(f"{base}/v1/monitors{path}").json()
        news = with_news(content)
        for by_class in ("estimate", "lower", "upper", "source"):
            news.get(by_class, {}).pop("new-field", None)  # any name is a class there
        body = json.dumps(news).encode()
        answer = (200, {"Content-Type": "application/json"}, body)
        with scripted(answer) as line, Client(line.base) as other:
            assert same(other)
    assert observed.streams[0].closed[0].size == 10


def test_alerts_that_are_not_there(client: Client) -> None:
    with pytest.raises(NotFound):
        client.alerts.acknowledge("0" * 32)
    with pytest.raises(NotFound):
        next(iter(client.alerts.list("nobody")))


def test_without_waiting(base: str) -> None:
    async def found(client: AsyncClient) -> str:
        deadline = Deadline(20)
        while not deadline.over():
            async for alert in client.alerts.list("awaited", state="open"):
                return alert.id
            await asyncio.sleep(0.02)
        raise AssertionError("no alert")

    async def work() -> None:
        async with AsyncClient(base) as client:
            monitor = await client.monitors.create(
                "awaited", "cards", WindowSpec(rows=400), alert=AlertSpec(), segment_by="country"
            )
            for k, share in enumerate((0.2, 0.6)):
                rows, segment = drawn(500, share, k), {"country": "BE"}
                await client.monitors.observe(
                    monitor, rows, observed_at=hour(k), segment=segment, columns=CLASSES
                )
            alert = await found(client)
            assert (await client.alerts.get(alert)).segment == "BE"
            assert (await client.alerts.acknowledge(alert)).state == "acknowledged"
            assert (await client.alerts.close(alert, "over")).note == "over"
            windows = [window async for window in client.monitors.windows(monitor, limit=2)]
            assert [window.size for window in windows] == [200, 400, 400]
            assert (await client.monitors.rows(monitor, windows[0])).shape == (200, 2)
            assert len(await client.monitors.series(monitor)) == 2
            assert "BE" in await client.monitors.series_csv(monitor)
            assert (await client.monitors.change(monitor, alert=None)).alert is None
            assert "awaited" in [found.name async for found in client.monitors.list("cards")]
            assert (await client.monitors.get("awaited")).segments == 1
            await client.monitors.delete("awaited")

    asyncio.run(work())
