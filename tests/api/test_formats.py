"""Batches and answers as CSV, NDJSON, Arrow, Parquet and NPY: the same rows, bit for bit."""

import io
import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from app.core.arrays import Floats
from app.formats import arrow
from tests.api.sources import CLASSES, COUNTED, register, scores, validation
from tests.api.trained import address as trained_address
from tests.api.trained import rows as trained_rows
from tests.api.trained import train, training

ROWS = scores(np.random.default_rng(3), 500, 0.5)[1]
SHORT = {arrow.ARROW: "arrow", arrow.PARQUET: "parquet", arrow.CSV: "csv", arrow.NDJSON: "ndjson"}
KINDS = (arrow.ARROW, arrow.PARQUET, arrow.CSV, arrow.NDJSON)


def table(rows: Floats = ROWS, **more: Any) -> pa.Table:
    """Posteriors by name, fraud first, beside another column."""
    return pa.table({"fraud": rows[:, 1], "note": ["x"] * len(rows), "legit": rows[:, 0], **more})


def stream(given: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, given.schema) as writer:
        writer.write_table(given, 100)
    return out.getvalue()


def parquet(given: pa.Table) -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(given, out)
    return out.getvalue()


def text(given: pa.Table) -> bytes:
    out = io.BytesIO()
    pyarrow.csv.write_csv(given, out)
    return out.getvalue()


def lines(given: pa.Table) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in given.to_pylist()).encode()


WRITERS: dict[str, Callable[[pa.Table], bytes]] = {
    arrow.ARROW: stream,
    arrow.PARQUET: parquet,
    arrow.CSV: text,
    arrow.NDJSON: lines,
}


def post(
    client: httpx.Client, address: str, kind: str, given: pa.Table | bytes, query: str = ""
) -> httpx.Response:
    content = given if isinstance(given, bytes) else WRITERS[kind](given)
    return client.post(f"{address}{query}", content=content, headers={"content-type": kind})


@pytest.mark.parametrize("kind", KINDS)
class TestBatches:
    def test_the_same_estimate_as_json(self, lasting: httpx.Client, kind: str) -> None:
        address = register(lasting, f"same-{SHORT[kind]}", {"validation": validation()})
        plain = lasting.post(f"{address}/estimates", json={"posteriors": ROWS.tolist()}).json()
        query = "?interval.level=0.9&segment.country=BE&keep=true"
        answer = post(lasting, f"{address}/estimates", kind, table(), query)
        assert answer.status_code == 201, answer.text
        found = answer.json()
        assert found["diagnostics"] == plain["diagnostics"]
        assert [row["estimate"] for row in found["prevalence"]] == [
            row["estimate"] for row in plain["prevalence"]
        ]
        assert found["interval"]["level"] == 0.9
        assert found["segment"] == {"country": "BE"}

    def test_predictions_and_labels_by_column(self, lasting: httpx.Client, kind: str) -> None:
        address = register(lasting, f"columns-{SHORT[kind]}", COUNTED)
        predicted = [CLASSES[k] for k in (ROWS[:, 1] > 0.5).astype(int)]
        known = [CLASSES[1] if i % 50 == 0 else None for i in range(500)]
        given = table(guess=predicted, truth=pa.array(known, pa.string()))
        body = {"predictions": predicted, "labels": known}
        plain = lasting.post(f"{address}/estimates", json=body).json()
        query = "?predictions=guess&labels=truth"
        found = post(lasting, f"{address}/estimates", kind, given, query).json()
        assert found["prevalence"] == plain["prevalence"]
        assert found["labelled"] == 10

    def test_adjusted_rows_come_back_bit_for_bit(self, lasting: httpx.Client, kind: str) -> None:
        address = register(lasting, f"back-{SHORT[kind]}", COUNTED)
        plain = lasting.post(f"{address}/posteriors", json={"posteriors": ROWS.tolist()}).json()
        answer = lasting.post(
            f"{address}/posteriors",
            content=WRITERS[kind](table()),
            headers={"content-type": kind, "accept": kind},
        )
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith(kind)
        frame = arrow.decode(kind, answer.content, arrow.Limits(1000, 10**7))
        assert list(frame.columns) == CLASSES
        np.testing.assert_array_equal(frame.numbers(CLASSES), plain["posteriors"])
        assert "fraud" in answer.headers["priorshift-target-priors"]

    def test_features_of_a_trained_version(self, lasting: httpx.Client, kind: str) -> None:
        if lasting.get("/v1/models/trained").status_code == 404:
            train(lasting, "trained", training(missing="impute"))
        shown = lasting.get("/v1/models/trained/versions/1").json()
        values = trained_rows(40, CLASSES, seed=9)[0]
        names = shown["training"]["feature_names"]
        estimates = f"{trained_address(shown)}/estimates"
        plain = lasting.post(estimates, json={"features": values}).json()
        columns = {name: [row[j] for row in values] for j, name in enumerate(names)}
        answer = post(lasting, estimates, kind, pa.table(columns))
        assert answer.status_code == 201, answer.text
        assert answer.json()["prevalence"] == plain["prevalence"]

    @pytest.mark.parametrize(
        ("change", "place"),
        [
            ({"legit": None}, ""),
            ({"legit": ["a"] * 500}, "/legit"),
            ({"legit": pa.array([None, *ROWS[1:, 0]])}, "/legit/0"),
            ({"legit": ROWS[:, 0] + 0.1}, "/0"),
            ({"legit": np.full(500, -1.0)}, "/0"),
        ],
    )
    def test_wrong_columns_are_named(
        self, lasting: httpx.Client, kind: str, change: dict[str, Any], place: str
    ) -> None:
        name = f"wrong-{SHORT[kind]}"
        if lasting.get(f"/v1/models/{name}").status_code == 404:
            register(lasting, name, COUNTED)
        columns = {"fraud": ROWS[:, 1], "legit": ROWS[:, 0], **change}
        given = pa.table({k: v for k, v in columns.items() if v is not None})
        answer = post(lasting, f"/v1/models/{name}/versions/1/estimates", kind, given)
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["pointer"] == place

    def test_wrong_queries(self, lasting: httpx.Client, kind: str) -> None:
        address = register(lasting, f"query-{SHORT[kind]}", COUNTED)
        for query, place in (
            ("?predictions=none", "/predictions"),
            ("?predictions=legit", "/legit/0" if kind == arrow.CSV else "/predictions"),
            ("?predictions=note", "/note/0"),
            ("?labels=none", "/labels"),
            ("?columns=legit", "/columns"),
            ("?nothing=1", "/nothing"),
        ):
            answer = post(lasting, f"{address}/shift-tests", kind, table(), query)
            assert answer.status_code == 422, query
            assert answer.json()["errors"][0]["pointer"] == place, query

    def test_corrupted_bodies_are_4xx(self, lasting: httpx.Client, kind: str) -> None:
        address = register(lasting, f"corrupt-{SHORT[kind]}", COUNTED)
        whole = WRITERS[kind](table())
        rng = np.random.default_rng(0)
        bodies = [b"", b"\x00", whole[:10], whole[: len(whole) // 2], whole[:-7]]
        for place in rng.integers(0, len(whole), 200):
            broken = bytearray(whole)
            broken[place] ^= int(rng.integers(1, 256))
            bodies.append(bytes(broken))
        for body in bodies:
            answer = post(lasting, f"{address}/shift-tests", kind, body)
            # A digit or a byte of a note may change and leave a body that is still right.
            assert answer.status_code in (200, 400, 413, 422), answer.text


def test_float16_float32_and_integers(lasting: httpx.Client) -> None:
    address = register(lasting, "kinds", COUNTED)
    for kind in (np.float16, np.float32, np.int8, np.uint64):
        rows = np.array([[1, 0], [0, 1], [1, 0]], kind)
        given = pa.table({"legit": rows[:, 0], "fraud": rows[:, 1]})
        answer = post(lasting, f"{address}/shift-tests", arrow.ARROW, given)
        assert answer.status_code == 200, answer.text


def test_dictionaries_of_labels(lasting: httpx.Client) -> None:
    address = register(lasting, "dictionary", COUNTED)
    names = pa.array(["legit", "fraud", "legit"]).dictionary_encode()
    more = pa.array(["fraud", "fraud"]).dictionary_encode()
    given = pa.table({"guess": pa.chunked_array([names, more])})
    answer = post(lasting, f"{address}/estimates", arrow.ARROW, given, "?predictions=guess")
    assert answer.status_code == 201, answer.text
    assert answer.json()["prevalence"][1]["counted"] == 0.6


@pytest.mark.parametrize("kind", KINDS)
def test_limits(kind: str) -> None:
    given = WRITERS[kind](table())
    with pytest.raises(Exception, match="more than 499 rows"):
        arrow.decode(kind, given, arrow.Limits(499, 10**7))
    if kind != arrow.NDJSON:  # Its lines are never more than the body.
        with pytest.raises(Exception, match="bytes in memory"):
            arrow.decode(kind, given, arrow.Limits(1000, 1000))


def test_wide_tables_are_refused(lasting: httpx.Client) -> None:
    address = register(lasting, "wide", COUNTED)
    header = ",".join(f"c{i}" for i in range(20_000))
    cells = ",".join("1" for _ in range(20_000))
    for kind, body in (
        (arrow.CSV, f"{header}\n{cells}\n".encode()),
        (arrow.NDJSON, json.dumps({f"c{i}": 1 for i in range(20_000)}).encode()),
    ):
        assert post(lasting, f"{address}/shift-tests", kind, body).status_code == 413
    wide = pa.table({f"c{i}": [1] for i in range(11_000)})
    for kind in (arrow.ARROW, arrow.PARQUET):
        assert post(lasting, f"{address}/shift-tests", kind, wide).status_code == 413


def test_parquet_that_inflates(lasting: httpx.Client) -> None:
    address = register(lasting, "inflate", COUNTED)
    rows = np.zeros(30_000_000)
    bomb = parquet(pa.table({"legit": rows, "fraud": rows}))
    assert len(bomb) < 1_000_000
    answer = post(lasting, f"{address}/shift-tests", arrow.PARQUET, bomb)
    assert answer.status_code in (413, 422)


def test_the_other_name_of_parquet(lasting: httpx.Client) -> None:
    address = register(lasting, "alias", COUNTED)
    kind = "application/x-parquet"
    answer = lasting.post(
        f"{address}/posteriors",
        content=parquet(table()),
        headers={"content-type": kind, "accept": kind},
    )
    assert answer.status_code == 200
    assert answer.headers["content-type"] == kind


@pytest.mark.parametrize(
    ("lines", "status", "place"),
    [
        ('{"legit": 0.5, "fraud": 0.5}\n\n{"fraud": 0.5, "legit": 0.5}', 200, None),
        ('{"legit": 0.5, "fraud": 0.5}\n{"legit": 0.5}', 422, "/fraud/1"),
        ('{"legit": 0.5, "fraud": 0.5}\n{"legit": 0.5, "fraud": "0.5"}', 422, "/fraud/1"),
        ('{"legit": 0.5, "fraud": 0.5}\n{"legit": 0.5, "fraud": true}', 422, "/fraud/1"),
        ('{"legit": 0.5, "fraud": [0.5]}', 422, "/fraud/0"),
        ('{"legit": 0.5, "fraud": 1e999}', 422, "/0"),
        ('{"legit": 0.5, "fraud": NaN}', 400, None),
        ('{"legit": 0.5, "legit": 0.5, "fraud": 0.5}', 400, None),
        ('{"legit": 0.5, "fraud": 0.5}\n[0.5, 0.5]', 400, None),
        ('{"legit": 0.5, "fraud": 0.5', 400, None),
        ("\n\n", 422, ""),
    ],
)
def test_lines_of_json(lasting: httpx.Client, lines: str, status: int, place: str | None) -> None:
    if lasting.get("/v1/models/lines").status_code == 404:
        register(lasting, "lines", COUNTED)
    address = "/v1/models/lines/versions/1/shift-tests"
    answer = post(lasting, address, arrow.NDJSON, lines.encode())
    assert answer.status_code == status, answer.text
    if place is not None:
        assert answer.json()["errors"][0]["pointer"] == place
