"""Monitors through a real server on both databases: rows in, windows, series, alerts."""

import io
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import numpy as np
import pytest

from app.estimation.methods import ALIASES, METHODS
from app.formats import arrow
from tests.monitoring.streams import make, post, register, rows, series

START = datetime(2026, 3, 1, tzinfo=UTC)
ALERT = {"false_alarms": 1, "per": "P30D"}


def at(hours: float) -> str:
    return (START + timedelta(hours=hours)).isoformat()


def drawn(n: int, share: float = 0.2, seed: int = 0) -> Any:
    return rows(np.random.default_rng(seed), n, share)[1]


def test_rows_fill_windows_in_order(client: httpx.Client) -> None:
    register(client)
    make(client)
    told = [post(client, drawn(30, seed=k), observed_at=at(k)) for k in range(10)]
    assert [t["accepted"] for t in told] == [30] * 10
    closed = [w for t in told for s in t["streams"] for w in s["closed"]]
    assert [(w["number"], w["size"]) for w in closed] == [(0, 100), (1, 100), (2, 100)]
    found = series(client, 3)
    assert found["size"] == [100, 100, 100]
    assert [t[:13] for t in found["time"]] == ["2026-03-01T00", "2026-03-01T03", "2026-03-01T06"]
    assert found["classes"] == ["legit", "fraud"]
    for k in range(3):
        assert found["lower"]["fraud"][k] < found["estimate"]["fraud"][k]
        assert found["estimate"]["fraud"][k] < found["upper"]["fraud"][k]


def test_a_window_is_an_ordinary_estimate_of_its_rows(client: httpx.Client) -> None:
    register(client)
    make(client)
    posteriors = drawn(100)
    post(client, posteriors, observed_at=at(0))
    series(client, 1)
    kept = client.get("/v1/estimates?model=cards").json()["items"]
    assert len(kept) == 1
    body = {"posteriors": posteriors.tolist()}
    direct = client.post("/v1/models/cards/versions/1/estimates?keep=false", json=body).json()
    assert kept[0]["monitor"] == "m"
    assert kept[0]["observed_at"] == "2026-03-01T00:00:00Z"
    for mine, other in zip(kept[0]["prevalence"], direct["prevalence"], strict=True):
        assert mine["estimate"] == pytest.approx(other["estimate"], abs=1e-6)
        assert mine["upper"] == pytest.approx(other["upper"], abs=1e-5)


def test_one_large_batch_fills_many_windows(client: httpx.Client) -> None:
    register(client)
    make(client)
    told = post(client, drawn(1234), observed_at=at(0))
    assert told["accepted"] == 1234
    assert [w["number"] for w in told["streams"][0]["closed"]] == list(range(12))
    assert series(client, 12)["size"] == [100] * 12


def test_hours_close_after_their_grace_and_late_rows_are_told(client: httpx.Client) -> None:
    register(client)
    window = {"duration": "PT1H", "grace": "PT30M", "minimum_rows": 20}
    make(client, window=window)
    times = [at(0.1)] * 20 + [at(1.1)] * 30
    assert post(client, drawn(50), observed_at=times)["accepted"] == 50
    # Within the grace of the first hour.
    assert post(client, drawn(5), observed_at=at(0.9))["accepted"] == 5
    told = post(client, drawn(10), observed_at=at(1.6))
    assert [w["size"] for w in told["streams"][0]["closed"]] == [25]
    told = post(client, drawn(7), observed_at=at(0.95))
    assert (told["accepted"], told["late"]) == (0, 7)
    assert [w["code"] for w in told["warnings"]] == ["late-rows"]
    post(client, drawn(3), observed_at=at(5))
    found = series(client, 2)
    assert found["size"] == [25, 40]
    assert found["end"][0] == "2026-03-01T01:00:00.000000Z"


def test_an_hour_closes_by_the_clock(client: httpx.Client) -> None:
    register(client)
    make(client, window={"duration": "PT1S"})
    post(client, drawn(40))
    assert sum(series(client, 1)["size"]) == 40


def test_a_window_of_few_rows_says_nothing(client: httpx.Client) -> None:
    register(client)
    make(client, window={"duration": "PT1H", "minimum_rows": 50})
    post(client, drawn(10), observed_at=at(0))
    post(client, drawn(60), observed_at=at(1))
    post(client, drawn(10), observed_at=at(2))
    found = series(client, 2)
    assert found["size"] == [10, 60]
    assert found["estimate"]["fraud"][0] is None
    assert found["estimate"]["fraud"][1] is not None
    assert found["p_value"][0] is None


def test_segments_have_windows_of_their_own(client: httpx.Client) -> None:
    register(client)
    make(client, segment_by="country")
    countries = ["BE", "NL"] * 120
    told = post(client, drawn(240), observed_at=at(0), segment={"country": countries})
    assert [s["segment"] for s in told["streams"]] == ["BE", "NL"]
    assert [len(s["closed"]) for s in told["streams"]] == [1, 1]
    post(client, drawn(80), observed_at=at(1), segment={"country": "NL"})
    found = series(client, 3)
    assert found["segment"] == ["BE", "NL", "NL"]
    assert series(client, 2, segment="NL")["segment"] == ["NL", "NL"]
    assert series(client, 0, segment="NL", since=at(0.5))["time"] == []
    kept = client.get("/v1/estimates", params={"segment.country": "NL"}).json()["items"]
    assert len(kept) == 2


@pytest.mark.parametrize("media_type", [arrow.CSV, arrow.ARROW, arrow.PARQUET, arrow.NDJSON])
def test_tables_bring_their_times_and_segments(lasting: httpx.Client, media_type: str) -> None:
    pa = pytest.importorskip("pyarrow")
    name = media_type.rpartition(".")[2].rpartition("/")[2]
    if lasting.get("/v1/models/cards").status_code == 404:
        register(lasting)
    body = {"name": name, "model": "cards", "window": {"duration": "PT1H"}, "segment_by": "country"}
    assert lasting.post("/v1/monitors", json=body).status_code == 201
    posteriors = drawn(6)
    times = pa.array([START, START, START + timedelta(hours=2)] * 2, pa.timestamp("us", "UTC"))
    columns = {"legit": posteriors[:, 0], "fraud": posteriors[:, 1], "observed_at": times}
    table = pa.table({**columns, "country": ["BE", "NL", "BE"] * 2})
    if media_type == arrow.NDJSON:
        lines = [
            f'{{"legit": {r["legit"]!r}, "fraud": {r["fraud"]!r}, "country": "{r["country"]}", '
            f'"observed_at": "{r["observed_at"].isoformat()}"}}\n'
            for r in table.to_pylist()
        ]
        content = "".join(lines).encode()
    else:
        out = pa.BufferOutputStream()
        arrow.ENCODERS[media_type](table, out)
        content = out.getvalue().to_pybytes()
    headers = {"content-type": media_type}
    told = lasting.post(f"/v1/monitors/{name}/observations", content=content, headers=headers)
    assert told.status_code == 202, told.text
    streams = {s["segment"]: s["accepted"] for s in told.json()["streams"]}
    assert streams == {"BE": 4, "NL": 2}


def test_rows_as_npy_with_the_rest_in_the_query(client: httpx.Client) -> None:
    register(client)
    make(client, segment_by="country")
    out = io.BytesIO()
    np.save(out, drawn(100))
    query = {"segment.country": "BE", "observed_at": at(0)}
    headers = {"content-type": "application/x-npy"}
    path = "/v1/monitors/m/observations"
    told = client.post(path, content=out.getvalue(), params=query, headers=headers)
    assert told.status_code == 202, told.text
    assert series(client, 1)["segment"] == ["BE"]


def test_predictions_and_their_counts(client: httpx.Client) -> None:
    counted = {
        "class_counts": {"legit": 9900, "fraud": 100},
        "confusion_matrix": [[9800, 100], [30, 70]],
    }
    body = {"name": "cards", "classes": ["legit", "fraud"], "source": counted}
    assert client.post("/v1/models", json=body).status_code == 201
    make(client)
    path = "/v1/monitors/m/observations"
    labels = {"predictions": ["legit"] * 90 + ["fraud"] * 5, "observed_at": at(0)}
    assert client.post(path, json=labels).json()["accepted"] == 95
    counts = {"predicted_counts": {"legit": 4, "fraud": 1}, "observed_at": at(1)}
    assert client.post(path, json=counts).json()["streams"][0]["closed"][0]["size"] == 100
    found = series(client, 1)
    assert found["estimate"]["fraud"][0] > 0.01
    answer = client.post(path, json={"posteriors": [[0.9, 0.1]]})
    assert answer.status_code == 409
    assert client.get("/v1/monitors/m").json()["takes"] == "outputs"


def test_the_same_key_counts_once(client: httpx.Client) -> None:
    register(client)
    make(client)
    body = {"posteriors": drawn(60).tolist(), "observed_at": at(0)}
    path, headers = "/v1/monitors/m/observations", {"Idempotency-Key": "batch-1"}
    first = client.post(path, json=body, headers=headers)
    again = client.post(path, json=body, headers=headers)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json() == first.json()
    post(client, drawn(40), observed_at=at(1))
    assert series(client, 1)["size"] == [100]


def test_an_alert_opens_is_acknowledged_and_closes_by_recovery(client: httpx.Client) -> None:
    register(client)
    make(client, window={"duration": "PT1H"}, alert={**ALERT, "recovery": 2})
    for hour in range(3):
        post(client, drawn(400, 0.2, hour), observed_at=at(hour))
    series(client, 2)
    assert client.get("/v1/alerts").json()["items"] == []
    for hour in range(3, 6):
        post(client, drawn(400, 0.6, hour), observed_at=at(hour))
    found = series(client, 5)
    assert found["detected"] == [False, False, False, True, True]
    (alert,) = client.get("/v1/alerts?monitor=m&state=open").json()["items"]
    assert alert["start"] == "2026-03-01T03:00:00Z"
    assert alert["message"].startswith("fraud rose from 20")
    assert alert["p_value"] <= alert["level"] == pytest.approx(1 / 720)
    path = f"/v1/alerts/{alert['id']}"
    seen = client.patch(path, json={"state": "acknowledged", "note": "a campaign"}).json()
    assert (seen["state"], seen["note"]) == ("acknowledged", "a campaign")
    for hour in range(6, 10):
        post(client, drawn(400, 0.2, hour), observed_at=at(hour))
    series(client, 9)
    assert client.get(path).json()["state"] == "closed"
    assert client.get(path).json()["closed_by"] == "recovery"
    late = client.patch(path, json={"state": "acknowledged"})
    assert late.json()["state"] == "closed"


def test_windows_are_judged_under_the_version_that_the_alias_means_when_they_close(
    client: httpx.Client,
) -> None:
    register(client)
    client.put("/v1/models/cards/aliases/champion", json={"version": 1})
    make(client, alias="champion")
    post(client, drawn(100), observed_at=at(0))
    assert series(client, 1)["version"] == [1]
    validation = {"labels": ["legit", "fraud"] * 50, "posteriors": [[0.9, 0.1], [0.2, 0.8]] * 50}
    client.post("/v1/models/cards/versions", json={"source": {"validation": validation}})
    client.put("/v1/models/cards/aliases/champion", json={"version": 2})
    post(client, drawn(100), observed_at=at(1))
    assert series(client, 2)["version"] == [1, 2]


def test_the_series_as_csv_defuses_formulas(client: httpx.Client) -> None:
    register(client)
    make(client, segment_by="country")
    post(client, drawn(100), observed_at=at(0), segment={"country": '=cmd|"a",1'})
    series(client, 1)
    text = client.get("/v1/monitors/m/series?format=csv&class=fraud").text
    lines = text.splitlines()
    assert lines[0].startswith("time,end,segment,class,estimate,lower,upper,source,p_value")
    assert '"\'=cmd|""a"",1",fraud,0.' in lines[1]


def test_monitors_are_listed_changed_and_deleted(client: httpx.Client) -> None:
    register(client)
    made = make(client, window={"duration": "PT1H"}, alert=ALERT, segment_by="country")
    assert made["alert"]["level"] == pytest.approx(1 / 720)
    assert client.get("/v1/monitors/m").json()["name"] == "m"
    assert [m["name"] for m in client.get("/v1/monitors?model=cards").json()["items"]] == ["m"]
    changed = client.patch("/v1/monitors/m", json={"alert": None, "description": "x"}).json()
    assert (changed["alert"], changed["description"]) == (None, "x")
    post(client, drawn(10), segment={"country": "BE"})
    assert client.delete("/v1/monitors/m").status_code == 204
    assert client.get("/v1/monitors/m").status_code == 404
    assert client.get("/v1/monitors").json()["items"] == []


WRONG = [
    ({"window": {"rows": 5}}, "/window/rows"),
    ({"window": {}}, "/window"),
    ({"window": {"rows": 100, "duration": "PT1H"}}, "/window"),
    ({"window": {"rows": 100, "grace": "PT1H"}}, "/window"),
    ({"window": {"duration": "1 hour"}}, "/window/duration"),
    ({"window": {"duration": "PT0S"}}, "/window"),
    ({"version": 1, "alias": "champion"}, ""),
    ({"alert": {"false_alarms": 0}}, "/alert/false_alarms"),
    ({"alert": {"per": "PT1S"}}, "/alert"),
    ({"method": "magic"}, "/method"),
    ({"segment_by": "a b"}, "/segment_by"),
    ({"colour": "red"}, "/colour"),
]


@pytest.mark.parametrize(("given", "pointer"), WRONG)
def test_what_is_wrong_with_a_monitor(
    lasting: httpx.Client, given: dict[str, Any], pointer: str
) -> None:
    if lasting.get("/v1/models/cards").status_code == 404:
        register(lasting)
    body = {"name": "wrong", "model": "cards", "window": {"rows": 100}, **given}
    answer = lasting.post("/v1/monitors", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == pointer


MISTAKES = [
    ({"posteriors": [[0.9, 0.1]], "observed_at": "yesterday"}, "/observed_at"),
    ({"posteriors": [[0.9, 0.1]], "observed_at": "2026-03-01T00:00:00"}, "/observed_at"),
    ({"posteriors": [[0.9, 0.1]], "observed_at": "2999-03-01T00:00:00Z"}, "/observed_at"),
    ({"posteriors": [[0.9, 0.1]], "observed_at": [at(0), at(1)]}, "/observed_at"),
    ({"posteriors": [[0.9, 0.1]] * 2, "observed_at": [at(0), None]}, "/observed_at/1"),
    ({"posteriors": [[0.9, 0.3]]}, "/posteriors/0"),
    ({"posteriors": [[0.9, 0.1]], "segment": {}}, "/segment/country"),
    ({"posteriors": [[0.9, 0.1]], "segment": {"planet": "x"}}, "/segment/planet"),
    ({"posteriors": [[0.9, 0.1]], "segment": {"country": 7}}, "/segment/country"),
    ({"posteriors": [[0.9, 0.1]], "segment": {"country": ["a", "b"]}}, "/segment/country"),
    ({"posteriors": [[0.9, 0.1]] * 2, "segment": {"country": ["a", []]}}, "/segment/country/1"),
    ({}, ""),
]


@pytest.mark.parametrize(("given", "pointer"), MISTAKES)
def test_what_is_wrong_with_observations(
    lasting: httpx.Client, given: dict[str, Any], pointer: str
) -> None:
    if lasting.get("/v1/models/cards").status_code == 404:
        register(lasting)
    if lasting.get("/v1/monitors/mistaken").status_code == 404:
        body = {
            "name": "mistaken",
            "model": "cards",
            "window": {"rows": 10},
            "segment_by": "country",
        }
        assert lasting.post("/v1/monitors", json=body).status_code == 201
    body = {"segment": {"country": "BE"}, **given}
    answer = lasting.post("/v1/monitors/mistaken/observations", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_evidence_adds_up_over_windows(client: httpx.Client) -> None:
    register(client)
    alert = {**ALERT, "test": "always-valid", "recovery": 2}
    made = make(client, alert=alert)
    assert made["alert"]["level"] == pytest.approx(0.05)
    for k in range(20):
        post(client, drawn(100, 0.2, k), observed_at=at(k))
    quiet = series(client, 20)
    assert not any(quiet["detected"])
    for k in range(20, 40):
        post(client, drawn(100, 0.35, k), observed_at=at(k))
    found = series(client, 40)
    first = found["detected"].index(True)
    assert 20 < first < 40
    # It grows with the evidence, unlike the p-values of windows by themselves.
    assert found["p_value"][:first] == sorted(found["p_value"][:first], reverse=True)
    (alert,) = client.get("/v1/alerts").json()["items"]
    assert alert["p_value"] <= alert["level"]


def test_windows_are_listed_and_keep_their_rows_where_that_is_asked(client: httpx.Client) -> None:
    register(client)
    make(client, keep_rows=True, segment_by="country")
    posteriors = drawn(150)
    post(client, posteriors, observed_at=at(0), segment={"country": "BE"})
    series(client, 1)
    listed = client.get("/v1/monitors/m/windows?limit=1").json()
    assert [(w["state"], w["size"], w["estimate"]) for w in listed["items"]] == [("open", 50, None)]
    cursor = {"cursor": listed["next_cursor"]}
    (window,) = client.get("/v1/monitors/m/windows", params=cursor).json()["items"]
    assert (window["state"], window["segment"], window["size"]) == ("closed", "BE", 100)
    assert client.get(f"/v1/estimates/{window['estimate']}").json()["size"] == 100
    post(client, posteriors, observed_at=at(0), segment={"country": "NL"})
    series(client, 2)
    for country in ("BE", "NL"):
        asked = {"segment": country, "state": "closed"}
        (of_country,) = client.get("/v1/monitors/m/windows", params=asked).json()["items"]
        assert of_country["segment"] == country
    refused = client.get("/v1/monitors/m/windows?segment=FR")
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/query/segment"
    rows = client.get(f"/v1/monitors/m/windows/{window['id']}/rows")
    assert rows.headers["content-type"] == "application/x-npy"
    found = np.load(io.BytesIO(rows.content), allow_pickle=False)
    np.testing.assert_allclose(found, posteriors[:100], rtol=1e-6)


def test_rows_that_are_not_kept_are_gone(client: httpx.Client) -> None:
    register(client)
    make(client)
    post(client, drawn(100), observed_at=at(0))
    series(client, 1)
    (window,) = client.get("/v1/monitors/m/windows?state=closed").json()["items"]
    answer = client.get(f"/v1/monitors/m/windows/{window['id']}/rows")
    assert answer.status_code == 404
    assert "keep_rows" in answer.json()["detail"]


def test_a_window_that_cannot_be_estimated_fails_and_keeps_its_rows(client: httpx.Client) -> None:
    register(client)
    client.put("/v1/models/cards/aliases/champion", json={"version": 1})
    make(client, alias="champion", window={"duration": "PT1S"})
    post(client, drawn(60))
    client.delete("/v1/models/cards/aliases/champion")
    assert series(client, 1)["estimate"]["fraud"] == [None]
    (window,) = client.get("/v1/monitors/m/windows?state=failed").json()["items"]
    assert "champion" in window["note"]
    assert client.get(f"/v1/monitors/m/windows/{window['id']}/rows").status_code == 200
    answer = client.post("/v1/monitors/m/observations", json={"posteriors": [[0.9, 0.1]]})
    assert answer.status_code == 404


def test_a_monitor_says_what_stands_in_the_way_of_its_budget(client: httpx.Client) -> None:
    register(client, n=400)
    made = make(client, alert=ALERT)
    assert [w["code"] for w in made["warnings"]] == ["small-validation-set"]
    assert "400 validation rows for windows of 100" in made["warnings"][0]["message"]
    client.delete("/v1/monitors/m")
    made = make(client, window={"duration": "PT1H"}, alert=ALERT)
    assert made["warnings"] == []
    client.delete("/v1/monitors/m")
    window = {"duration": "PT1H", "minimum_rows": 10}
    made = make(client, window=window, alert={**ALERT, "false_alarms": 1e-4})
    assert [w["code"] for w in made["warnings"]] == ["level-out-of-reach"]


@pytest.mark.parametrize("method", [*METHODS, *ALIASES])
def test_every_method_is_used_or_refused_when_a_monitor_is_made(
    lasting: httpx.Client, method: str
) -> None:
    """No window fails for what could be known when the monitor was made."""
    name = f"by-{method.replace('+', 'p')}"
    if lasting.get("/v1/models/every").status_code == 404:
        register(lasting, "every", 400)
    body = {"name": name, "model": "every", "window": {"rows": 100}, "method": method}
    answer = lasting.post("/v1/monitors", json=body)
    if answer.status_code == 409:
        assert ALIASES.get(method, method) in answer.json()["detail"]
        return
    assert answer.status_code == 201, answer.text
    sent = {"posteriors": rows(np.random.default_rng(0), 100, 0.4)[1].tolist()}
    assert lasting.post(f"/v1/monitors/{name}/observations", json=sent).status_code == 202
    deadline = time.monotonic() + 60
    while (window := windows_of(lasting, name))["state"] == "sealed":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert window["state"] == "closed", window
    kept = lasting.get(f"/v1/estimates/{window['estimate']}").json()
    assert kept["method"] == ALIASES.get(method, method)


def windows_of(client: httpx.Client, name: str) -> dict[str, Any]:
    """The first window of a monitor."""
    found: dict[str, Any] = client.get(f"/v1/monitors/{name}/windows").json()["items"][-1]
    return found
