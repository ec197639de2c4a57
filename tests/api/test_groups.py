"""One estimate per group of a table."""

import httpx
import numpy as np
import pyarrow as pa
import pytest

from app.core.prevalence.tests.multiple import holm
from app.formats import arrow
from tests.api.sources import COUNTED, register, scores, validation
from tests.api.test_formats import WRITERS, post, table

SHARES = {"BE": 0.2, "NL": 0.6, "FR": 0.2}


def grouped(**more: object) -> pa.Table:
    rng = np.random.default_rng(4)
    parts = [scores(rng, 300, share)[1] for share in SHARES.values()]
    names = np.repeat(list(SHARES), 300)
    order = rng.permutation(900)
    rows = np.concatenate(parts)[order]
    return table(rows, country=pa.array(names[order].tolist()), **more)


@pytest.mark.parametrize("kind", [arrow.ARROW, arrow.CSV])
def test_each_group_is_its_own_batch(lasting: httpx.Client, kind: str) -> None:
    name = f"groups-{len(kind)}"
    address = register(lasting, name, {"validation": validation()})
    given = grouped()
    query = "?group_by=country&segment.source=web"
    answer = post(lasting, f"{address}/estimates", kind, given, query)
    assert answer.status_code == 201, answer.text
    found = answer.json()
    first = list(dict.fromkeys(given["country"].to_pylist()))
    assert [item["group"] for item in found["items"]] == first
    raw = []
    for item in found["items"]:
        estimate = item["estimate"]
        assert estimate["segment"] == {"source": "web", "country": item["group"]}
        part = given.filter(pa.compute.equal(given["country"], item["group"]))
        alone = post(lasting, f"{address}/estimates", kind, part, "?keep=false").json()
        assert estimate["prevalence"] == alone["prevalence"]
        raw.append(estimate["shift"]["p_value"])
    adjusted = [item["holm_p_value"] for item in found["items"]]
    np.testing.assert_allclose(adjusted, holm(np.array(raw)))
    by_group = dict(zip(first, adjusted, strict=True))
    assert by_group["NL"] < 0.01
    listed = lasting.get(f"/v1/estimates?model={name}&segment.country=NL").json()["items"]
    assert len(listed) == 1


def test_nothing_is_kept_when_a_group_is_wrong(lasting: httpx.Client) -> None:
    address = register(lasting, "all-or-none", COUNTED)
    rows = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 0.6]])
    given = table(rows, country=["BE", "NL", "NL"])
    answer = post(lasting, f"{address}/estimates", arrow.ARROW, given, "?group_by=country")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/2"
    assert answer.json()["errors"][0]["row"] == 2
    hole = pa.table({"legit": [0.5, 0.5, None], "fraud": [0.5] * 3, "country": ["BE", "NL", "NL"]})
    answer = post(lasting, f"{address}/estimates", arrow.ARROW, hole, "?group_by=country")
    assert answer.json()["errors"][0]["pointer"] == "/legit/2"
    assert lasting.get("/v1/estimates?model=all-or-none").json()["items"] == []


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("?group_by=none", "/query/group_by"),
        ("?group_by=legit", "/query/group_by"),
        ("?group_by=hole", "/hole/1"),
        ("?group_by=country&include=posteriors", "/include"),
        ("?group_by=a%20b", "/query/group_by"),
        ("?group_by=", "/query/group_by"),
    ],
)
def test_wrong_groups(lasting: httpx.Client, query: str, place: str) -> None:
    if lasting.get("/v1/models/wrong").status_code == 404:
        register(lasting, "wrong", COUNTED)
    hole = pa.array(["x", None, *["x"] * 898], pa.string())
    given = grouped(hole=hole, **{"a b": ["x"] * 900})
    answer = post(lasting, "/v1/models/wrong/versions/1/estimates", arrow.ARROW, given, query)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == place


def test_groups_need_a_table_and_are_not_too_many(lasting: httpx.Client) -> None:
    address = register(lasting, "many", COUNTED)
    body = {"posteriors": [[0.5, 0.5]]}
    answer = lasting.post(f"{address}/estimates?group_by=country", json=body)
    assert answer.status_code == 422
    rows = np.full((1001, 2), 0.5)
    given = table(rows, id=[f"g{i}" for i in range(1001)])
    content = WRITERS[arrow.ARROW](given)
    answer = post(lasting, f"{address}/estimates", arrow.ARROW, content, "?group_by=id")
    assert answer.status_code == 422
    assert "more than 1,000 groups" in answer.json()["detail"]


def test_holm_by_hand() -> None:
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm(np.array([0.9, 0.8])), [1.0, 1.0])
    assert len(holm(np.array([]))) == 0
