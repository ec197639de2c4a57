"""Jobs over HTTP on both databases: what they answer equals what a batch in memory is answered."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow.parquet as pq
import pytest

from app.engines.engine import MOST_GROUPS
from app.estimation.methods import ALIASES, METHODS
from tests.api.sources import CLASSES, scores
from tests.jobs.places import Place, fill, placed, write


@pytest.fixture
def place(database_url: str, tmp_path: Path) -> Iterator[Place]:
    with placed(database_url, tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def lasting(workspace: Path, sqlite_template: Path) -> Iterator[Place]:
    """One place for tests that leave nothing behind."""
    folder = workspace / f"jobs{uuid4().hex}"
    folder.mkdir()
    path = folder / "jobs.db"
    path.write_bytes(sqlite_template.read_bytes())
    with placed(f"sqlite:///{path}", folder) as found:
        yield found


def test_an_estimate_of_files_equals_that_of_their_rows(place: Place) -> None:
    rows = fill(place.data)
    made = place.job(kind="estimate", segment={"month": "2026-01"})
    assert made["state"] == "queued"
    job = place.done(made["id"])
    assert (job["state"], job["rows"], job["skipped_rows"]) == ("done", 1100, 0)
    assert job["progress"]["of"] == 3
    (item,) = job["estimates"]
    kept = place.client.get(f"/v1/estimates/{item['estimate']}").json()
    body = {"posteriors": rows.tolist()}
    address = "/v1/models/cards/versions/1/estimates?keep=false"
    direct = place.client.post(address, json=body).json()
    assert kept["segment"] == {"month": "2026-01"}
    assert kept["size"] == 1100
    for mine, other in zip(kept["prevalence"], direct["prevalence"], strict=True):
        for name in ("estimate", "lower", "upper", "counted"):
            assert mine[name] == pytest.approx(other[name], abs=1e-6)
    assert kept["shift"]["statistic"] == pytest.approx(direct["shift"]["statistic"], rel=1e-4)


def test_groups_have_estimates_of_their_own(place: Place) -> None:
    job = place.done(place.job(kind="estimate", group_by=["country"])["id"])
    assert [item["group"] for item in job["estimates"]] == [{"country": "BE"}, {"country": "NL"}]
    assert sum(item["size"] for item in job["estimates"]) == 1100
    assert all(item["holm_p_value"] <= 1 for item in job["estimates"])
    found = place.client.get("/v1/estimates", params={"segment.country": "NL"}).json()["items"]
    assert [one["id"] for one in found] == [job["estimates"][1]["estimate"]]


def test_rows_are_filtered(place: Place) -> None:
    dataset = {"path": "scores/part0.parquet", "filter": "country = 'NL'"}
    job = place.done(place.job(kind="estimate", dataset=dataset)["id"])
    assert job["rows"] == 134


def test_labelled_files_become_a_version(place: Place) -> None:
    labels, posteriors = scores(np.random.default_rng(9), 800, 0.2)
    write(place.data / "labelled.parquet", posteriors, truth=[CLASSES[k] for k in labels])
    dataset = {"path": "labelled.parquet", "label": "truth"}
    given = {"kind": "register", "dataset": dataset, "metadata": {"commit": "4f2a9c1"}}
    job = place.done(place.job(**given)["id"])
    assert (job["state"], job["version"], job["rows"]) == ("done", 2, 800)
    version = place.client.get("/v1/models/cards/versions/2").json()
    assert version["validation"]["size"] == 800
    assert version["metadata"] == {"commit": "4f2a9c1"}
    again = place.done(place.job(**given)["id"])
    assert again["version"] == 2


def test_adjusted_files_equal_adjusted_rows(place: Place) -> None:
    rows = fill(place.data)
    target = {"legit": 0.9, "fraud": 0.1}
    given = {"dataset": {"path": "scores/", "keys": ["country"]}, "target_priors": target}
    job = place.done(place.job(kind="adjust", output="2026-01", **given)["id"])
    assert (job["state"], job["rows"], job["files"]) == ("done", 1100, 3)
    files = sorted((place.output / "2026-01").glob("part-*.parquet"))
    tables = [pq.read_table(file) for file in files]
    found = np.concatenate([np.column_stack([t[c] for c in CLASSES]) for t in tables])
    body = {"posteriors": rows.tolist(), "target_priors": target}
    direct = place.client.post("/v1/models/cards/versions/1/posteriors", json=body).json()
    np.testing.assert_allclose(found, direct["posteriors"], atol=1e-12)
    assert tables[0].column_names == ["country", *CLASSES]
    assert json.loads((place.output / "2026-01" / "_SUCCESS").read_text())["rows"] == 1100


def test_rows_are_adjusted_to_their_own_estimate(place: Place) -> None:
    job = place.done(place.job(kind="adjust", output="own")["id"])
    assert job["state"] == "done"
    estimate = place.done(place.job(kind="estimate")["id"])["estimates"][0]["estimate"]
    prevalence = place.client.get(f"/v1/estimates/{estimate}").json()["prevalence"]
    tables = [pq.read_table(file) for file in (place.output / "own").glob("part-*.parquet")]
    fraud = np.concatenate([table["fraud"] for table in tables])
    # At the maximum the mean adjusted posterior is the estimate.
    assert fraud.mean() == pytest.approx(prevalence[1]["estimate"], abs=1e-4)


def test_a_broken_file_fails_or_is_left_out(place: Place) -> None:
    wrong = scores(np.random.default_rng(3), 50, 0.3)[1]
    wrong[7] = [0.9, 0.3]
    write(place.data / "scores" / "part9.parquet", wrong)
    job = place.done(place.job(kind="estimate")["id"])
    assert job["state"] == "failed"
    assert "part9.parquet" in job["errors"][0]["message"]
    dataset = {"path": "scores/*.parquet", "on_error": "skip"}
    job = place.done(place.job(kind="estimate", dataset=dataset)["id"])
    assert (job["state"], job["rows"], job["skipped_rows"]) == ("done", 1149, 1)
    (warning,) = job["warnings"]
    assert warning["code"] == "skipped-rows"
    assert "part9.parquet" in warning["message"]


def test_events_tell_the_course_of_a_job(place: Place) -> None:
    made = place.job(kind="estimate")
    with place.client.stream("GET", f"/v1/jobs/{made['id']}/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        told = [json.loads(x[6:]) for x in stream.iter_lines() if x.startswith("data: ")]
    assert told[-1]["state"] == "done"
    assert told[-1] == place.client.get(f"/v1/jobs/{made['id']}").json()


def test_what_is_over_is_not_cancelled(place: Place) -> None:
    job = place.done(place.job(kind="estimate")["id"])
    answer = place.client.delete(f"/v1/jobs/{job['id']}")
    assert answer.status_code == 409
    assert "done" in answer.json()["detail"]
    listed = place.client.get("/v1/jobs?state=done&model=cards").json()["items"]
    assert [one["id"] for one in listed] == [job["id"]]


def test_the_same_key_is_one_job(place: Place) -> None:
    body = {"kind": "estimate", "model": "cards", "dataset": {"path": "scores/"}}
    headers = {"Idempotency-Key": "nightly"}
    first, second = (place.client.post("/v1/jobs", json=body, headers=headers) for _ in range(2))
    assert first.json()["id"] == second.json()["id"]
    assert len(place.client.get("/v1/jobs").json()["items"]) == 1


def test_rows_without_a_group_are_one_fault(place: Place) -> None:
    rng = np.random.default_rng(0)
    for country in ("BE", "__HIVE_DEFAULT_PARTITION__"):
        path = place.data / "hive" / f"country={country}" / "a.parquet"
        write(path, scores(rng, 300, 0.3)[1])
    given: dict[str, Any] = {"kind": "estimate", "group_by": ["country"], "method": "acc-qp"}
    failed = place.done(place.job(**given, dataset={"path": "hive/"})["id"])
    assert failed["state"] == "failed"
    (error,) = failed["errors"]
    assert "every row needs a group" in error["message"]
    assert "and 299 more like it" in error["message"]
    for more in ({"filter": "country is not null"}, {"on_error": "skip"}):
        job = place.done(place.job(**given, dataset={"path": "hive/", **more})["id"])
        assert [item["group"] for item in job["estimates"]] == [{"country": "BE"}]
        assert job["skipped_rows"] == (300 if "on_error" in more else 0)


def test_more_groups_than_are_estimated_are_refused(lasting: Place) -> None:
    """Refused wherever it comes out: in a file, in several, and of two columns together."""
    rows = np.full((MOST_GROUPS + 1, 2), 0.5)
    name = [f"g{k}" for k in range(len(rows))]
    some = [f"h{k % 40}" for k in range(len(rows))]
    other = [f"i{k // 40}" for k in range(len(rows))]
    write(lasting.data / "one" / "a.parquet", rows, name=name, some=some, other=other)
    write(lasting.data / "two" / "a.parquet", rows[:600], name=name[:600])
    write(lasting.data / "two" / "b.parquet", rows[600:], name=name[600:])
    given: dict[str, Any] = {"kind": "estimate", "method": "cc"}
    for path, group_by in (("one/", ["name"]), ("two/", ["name"]), ("one/", ["some", "other"])):
        asked = {**given, "dataset": {"path": path}, "group_by": group_by}
        failed = lasting.done(lasting.job(**asked)["id"])
        assert failed["state"] == "failed", path
        (error,) = failed["errors"]
        assert "makes more than 1,000 groups" in error["message"]


def test_the_description_says_how_many_groups_there_may_be(lasting: Place) -> None:
    described = lasting.client.get("/openapi.json").json()
    job = described["components"]["schemas"]["JobIn"]["properties"]["group_by"]
    assert f"{MOST_GROUPS:,}" in job["description"]
    parameters = described["paths"]["/v1/models/{name}/versions/{version}/estimates"]["post"]
    (group_by,) = (p for p in parameters["parameters"] if p["name"] == "group_by")
    assert f"{MOST_GROUPS:,}" in group_by["description"]
    root = Path(__file__).parents[2]
    for page in ("README.md", "docs/scaling.md", "docs/clients.md"):
        assert f"{MOST_GROUPS:,}" in (root / page).read_text()


HOSTILE = [
    "../secrets/x.parquet",
    "scores/../../etc/passwd",
    "/etc/passwd",
    "file:///etc/passwd",
    "s3://bucket/x.parquet",
    "http://127.0.0.1/x.parquet",
    "scores/%2e%2e/x.parquet",
    "~/x.parquet",
    "$HOME/x.parquet",
    "scores\\x.parquet",
    "scores/\x00.parquet",
]


@pytest.mark.parametrize("path", HOSTILE)
def test_hostile_paths_are_refused(lasting: Place, path: str) -> None:
    answer = lasting.ask(kind="estimate", dataset={"path": path})
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"][0]["pointer"] == "/dataset/path"
    answer = lasting.ask(kind="adjust", output=path)
    assert answer.status_code == 422, answer.text


WRONG: list[tuple[dict[str, Any], int, str]] = [
    ({"dataset": {"path": "nothing/*.parquet"}}, 422, "/dataset/path"),
    ({"dataset": {"path": "scores/", "filter": "country ="}}, 422, "/dataset/filter"),
    ({"dataset": {"path": "scores/", "columns": {"legit": "no"}}}, 422, "/dataset"),
    ({"group_by": ["planet"]}, 422, "/dataset"),
    ({"method": "magic"}, 422, "/method"),
    ({"output": "x"}, 422, ""),
    ({"version": 1, "alias": "a"}, 422, ""),
    ({"kind": "register"}, 422, "/dataset/label"),
    ({"kind": "adjust"}, 422, ""),
    ({"kind": "adjust", "output": "x", "target_priors": {"legit": 1}}, 422, "/target_priors"),
    ({"model": "no-such"}, 404, ""),
    ({"version": 7}, 404, ""),
    ({"kind": "dance"}, 422, "/kind"),
]


@pytest.mark.parametrize(("given", "status", "pointer"), WRONG)
def test_what_is_wrong_with_a_job(
    lasting: Place, given: dict[str, Any], status: int, pointer: str
) -> None:
    answer = lasting.ask(**{"kind": "estimate", **given})
    assert answer.status_code == status, answer.text
    if status == 422:
        assert answer.json()["errors"][0]["pointer"].startswith(pointer)


@pytest.mark.parametrize("method", [*METHODS, *ALIASES])
def test_every_method_is_used_or_refused_when_asked(lasting: Place, method: str) -> None:
    """A job never fails for what could be known when it was asked for."""
    if not lasting.data.joinpath("scores").exists():
        fill(lasting.data)
    for kind in ({"kind": "estimate"}, {"kind": "adjust", "output": f"by-{method}"}):
        answer = lasting.ask(**kind, method=method)
        if answer.status_code == 409:
            assert ALIASES.get(method, method) in answer.json()["detail"]
            continue
        assert answer.status_code == 202, answer.text
        job = lasting.done(answer.json()["id"])
        assert job["state"] == "done", job["errors"]
        for item in job["estimates"]:
            kept = lasting.client.get(f"/v1/estimates/{item['estimate']}").json()
            assert kept["method"] == ALIASES.get(method, method)
