"""Every wrong request gets a 4xx problem that names the place, and stores nothing."""

import io
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import pytest

from app.main import create_app
from app.settings import Settings
from tests.api.sources import CLASSES, COUNTED, register, validation
from tests.conftest import served

GOOD = [[0.5, 0.5]]
EVEN = {"priors": {"legit": 0.5, "fraud": 0.5}}


def row_counts(database: Path) -> dict[str, int]:
    """The rows of every table."""
    with closing(sqlite3.connect(database)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for (name,) in names.fetchall()
        }


@pytest.fixture(scope="module")
def database(workspace: Path, sqlite_template: Path) -> Path:
    path = workspace / f"m{uuid4().hex}.db"
    shutil.copy(sqlite_template, path)
    return path


@pytest.fixture(scope="module")
def lasting(database: Path) -> Iterator[httpx.Client]:
    """A client of one service; no table may have gained or lost a row by what was refused."""
    before: dict[str, int] = {}

    def count(request: httpx.Request) -> None:
        before.update(row_counts(database))

    def compare(answer: httpx.Response) -> None:
        if answer.is_error:
            assert row_counts(database) == before

    settings = Settings(database_url=f"sqlite:///{database}", max_body_bytes=1_000_000)
    with served(create_app(settings)) as client:
        client.event_hooks = {"request": [count], "response": [compare]}
        yield client


@pytest.fixture(scope="module")
def cards(lasting: httpx.Client) -> str:
    return register(lasting, "cards", COUNTED)


@pytest.fixture(scope="module")
def bare(lasting: httpx.Client) -> str:
    return register(lasting, "bare", EVEN)


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    content: dict[str, Any] = json.loads(answer.content, parse_constant=pytest.fail)
    assert {"type", "title", "status", "detail", "instance"} <= set(content)
    assert content["status"] == status
    return content


def pointers(answer: httpx.Response) -> list[str]:
    return [error["pointer"] for error in problem(answer, 422)["errors"]]


class TestBodies:
    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"{",
            b"nonsense",
            b"\xff\xfe",
            b'{"posteriors": [[NaN, 1]]}',
            b'{"posteriors": [[Infinity, 1]]}',
            b'{"posteriors": [[0.5, 0.5]], "posteriors": [[0.1, 0.9]]}',
            b"[" * 100_000,
            b"[[0.5, 0.5]]",
            b'"text"',
            b'{"predicted_counts": {"\\ud800": 3}}',
            b'{"posteriors": [[0.5, 0.5]], "segment": {"country": "\\uDFFF"}}',
            b"1" * 5000,
        ],
    )
    def test_what_is_not_a_json_object(
        self, lasting: httpx.Client, cards: str, body: bytes
    ) -> None:
        headers = {"content-type": "application/json"}
        for path in (f"{cards}/estimates", f"{cards}/posteriors", "/v1/models"):
            problem(lasting.post(path, content=body, headers=headers), 400)

    @pytest.mark.parametrize("kind", ["text/plain", "application/xml", "", "image/png; x=y"])
    def test_wrong_content_type(self, lasting: httpx.Client, cards: str, kind: str) -> None:
        for path in (f"{cards}/estimates", "/v1/models"):
            answer = lasting.post(path, content=b"{}", headers={"content-type": kind})
            assert "application/json" in problem(answer, 415)["detail"]

    def test_content_encoding(self, lasting: httpx.Client, cards: str) -> None:
        headers = {"content-type": "application/json", "content-encoding": "br"}
        problem(lasting.post(f"{cards}/estimates", content=b"{}", headers=headers), 415)

    def test_over_the_limit(self, lasting: httpx.Client, cards: str) -> None:
        headers = {"content-type": "application/json"}
        body = b" " * 1_000_001
        problem(lasting.post(f"{cards}/estimates", content=body, headers=headers), 413)
        chunks = (b" " * 100_000 for _ in range(11))
        problem(lasting.post(f"{cards}/estimates", content=chunks, headers=headers), 413)

    def test_charset_parameters_are_fine(self, lasting: httpx.Client, cards: str) -> None:
        headers = {"content-type": "application/json; charset=utf-8"}
        body = json.dumps({"posteriors": GOOD}).encode()
        answer = lasting.post(f"{cards}/shift-tests", content=body, headers=headers)
        assert answer.status_code == 200


class TestRows:
    @pytest.mark.parametrize(
        ("rows", "place"),
        [
            ([], "/posteriors"),
            (None, ""),
            ("rows", "/posteriors"),
            (0.5, "/posteriors"),
            ({"legit": [0.5]}, "/posteriors/fraud"),
            ([0.5, 0.5], "/posteriors/0"),
            ([[]], "/posteriors/0"),
            ([[0.5, 0.5], [1.0]], "/posteriors/1"),
            ([[0.5, 0.5, 0.0]], "/posteriors/0"),
            ([[0.5, "0.5"]], "/posteriors/0"),
            ([["0.5", "0.5"]], "/posteriors/0"),
            ([[True, False]], "/posteriors/0"),
            ([[0.5, 0.5], [1, False]], "/posteriors/1"),
            ([[0.5, None]], "/posteriors/0"),
            ([[[0.5], [0.5]]], "/posteriors/0"),
            ([[0.5, 0.6]], "/posteriors/0"),
            ([[1.5, -0.5]], "/posteriors/0"),
            ([[0.5, 0.5], [0, 0]], "/posteriors/1"),
            ([[10**400, 0]], "/posteriors/0"),
            ([[1e308, 1e308]], "/posteriors/0"),
        ],
    )
    def test_are_refused_where_they_are(
        self, lasting: httpx.Client, cards: str, rows: Any, place: str
    ) -> None:
        for path in ("estimates", "posteriors", "shift-tests"):
            assert pointers(lasting.post(f"{cards}/{path}", json={"posteriors": rows}))[0] == place

    def test_numbers_beyond_double(self, lasting: httpx.Client, cards: str) -> None:
        answer = lasting.post(
            f"{cards}/estimates",
            content=b'{"posteriors": [[0.5, 0.5], [1e999, 0]]}',
            headers={"content-type": "application/json"},
        )
        assert pointers(answer) == ["/posteriors/1"]

    def test_the_first_twenty_and_the_total(self, lasting: httpx.Client, cards: str) -> None:
        content = problem(
            lasting.post(f"{cards}/estimates", json={"posteriors": GOOD + [[0.7, 0.7]] * 100}), 422
        )
        assert content["error_count"] == 100
        assert [error["row"] for error in content["errors"]] == list(range(1, 21))
        assert "sums to 1.4" in content["errors"][0]["message"]

    @pytest.mark.parametrize(
        ("columns", "places"),
        [
            (["legit"], ["/columns"]),
            (["legit", "legit"], ["/columns/1", "/columns"]),
            (["legit", "theft"], ["/columns/1", "/columns"]),
            (["legit", "fraud", "other"], ["/columns/2"]),
            ("legit", ["/columns"]),
            ([1, 2], ["/columns"]),
        ],
    )
    def test_columns(
        self, lasting: httpx.Client, cards: str, columns: Any, places: list[str]
    ) -> None:
        content = {"posteriors": GOOD, "columns": columns}
        assert pointers(lasting.post(f"{cards}/estimates", json=content)) == places


class TestOutputs:
    @pytest.mark.parametrize(
        ("content", "place"),
        [
            ({}, ""),
            ({"posteriors": GOOD, "predictions": ["fraud"]}, ""),
            ({"predictions": []}, "/predictions"),
            ({"predictions": "fraud"}, "/predictions"),
            ({"predictions": ["fraud", "theft"]}, "/predictions/1"),
            ({"predictions": [1, 0]}, "/predictions/0"),
            ({"predictions": ["fraud", True]}, "/predictions/1"),
            ({"predictions": ["fraud", None]}, "/predictions/1"),
            ({"predictions": ["fraud", ["fraud"]]}, "/predictions/1"),
            ({"predictions": ["fraud"], "columns": CLASSES}, "/columns"),
            ({"predicted_counts": {}}, "/predicted_counts"),
            ({"predicted_counts": {"fraud": 0}}, "/predicted_counts"),
            ({"predicted_counts": {"theft": 1}}, "/predicted_counts/theft"),
            ({"predicted_counts": {"fraud": -1}}, "/predicted_counts/fraud"),
            ({"predicted_counts": {"fraud": 1.5}}, "/predicted_counts/fraud"),
            ({"predicted_counts": {"fraud": "3"}}, "/predicted_counts/fraud"),
            ({"predicted_counts": {"fraud": True}}, "/predicted_counts/fraud"),
            ({"predicted_counts": {"fraud": 10**400}}, "/predicted_counts/fraud"),
            ({"predicted_counts": [3, 4]}, "/predicted_counts"),
        ],
    )
    def test_are_refused_where_they_are(
        self, lasting: httpx.Client, cards: str, content: dict[str, Any], place: str
    ) -> None:
        assert pointers(lasting.post(f"{cards}/estimates", json=content))[0] == place


class TestEnvelope:
    @pytest.mark.parametrize(
        ("part", "place"),
        [
            ({"method": 3}, "/method"),
            ({"method": "guess"}, "/method"),
            ({"mehtod": "em"}, "/mehtod"),
            ({"options": {"tolerance": 0}}, "/options/tolerance"),
            ({"options": {"tolerance": "1e-6"}}, "/options/tolerance"),
            ({"options": {"max_iterations": 0}}, "/options/max_iterations"),
            ({"options": {"max_iterations": 10**30}}, "/options/max_iterations"),
            ({"options": {"other": 1}}, "/options/other"),
            ({"shift": {"significance": 1.5}}, "/shift/significance"),
            ({"shift": {"significance": True}}, "/shift/significance"),
            ({"shift": {"minimum_effect": -1}}, "/shift/minimum_effect"),
            ({"shift": {"reference": "other"}}, "/shift/reference"),
            ({"interval": {"level": 1}}, "/interval/level"),
            ({"observed_at": "yesterday"}, "/observed_at"),
            ({"observed_at": "2026-01-31T00:00:00"}, "/observed_at"),
            ({"observed_at": "0001-01-01T00:00:00+14:00"}, "/observed_at"),
            ({"observed_at": 5}, "/observed_at"),
            ({"segment": {"country": 5}}, "/segment/country"),
            ({"segment": {"a b": "x"}}, "/segment/a b/[key]"),
            ({"segment": {"country": "\x00"}}, "/segment/country"),
            ({"segment": {f"k{i}": "x" for i in range(17)}}, "/segment"),
            ({"include": ["everything"]}, "/include/0"),
            ({"include": "trace"}, "/include"),
        ],
    )
    def test_estimates(
        self, lasting: httpx.Client, cards: str, part: dict[str, Any], place: str
    ) -> None:
        body = json.dumps({"posteriors": GOOD, **part})
        headers = {"content-type": "application/json"}
        answer = lasting.post(f"{cards}/estimates", content=body, headers=headers)
        assert pointers(answer)[0] == place

    @pytest.mark.parametrize(
        "target",
        [
            {},
            {"legit": 1},
            {"legit": 0.5, "fraud": 0.6},
            {"legit": "0.5", "fraud": "0.5"},
            {"legit": 1.5, "fraud": -0.5},
            {"legit": 0.5, "fraud": 0.5, "theft": 0},
            [0.5, 0.5],
            "even",
        ],
    )
    def test_target_priors(self, lasting: httpx.Client, cards: str, target: Any) -> None:
        content = {"posteriors": GOOD, "target_priors": target}
        answer = lasting.post(f"{cards}/posteriors", json=content)
        assert pointers(answer)[0].startswith("/target_priors")

    def test_queries_that_would_be_ignored(self, lasting: httpx.Client, cards: str) -> None:
        for query in ("kep=false", "keep=false&method=em", "keep=perhaps"):
            answer = lasting.post(f"{cards}/estimates?{query}", json={"posteriors": GOOD})
            problem(answer, 422)

    def test_idempotency_keys(self, lasting: httpx.Client, cards: str) -> None:
        for key in ("", "k" * 256, "a\tb"):
            answer = lasting.post(
                f"{cards}/estimates", json={"posteriors": GOOD}, headers={"Idempotency-Key": key}
            )
            problem(answer, 422)


class TestUnknown:
    @pytest.mark.parametrize("version", ["7", "0", "-1", "1.0", "x", "@none", "@", "9" * 40, "%00"])
    def test_versions(self, lasting: httpx.Client, cards: str, version: str) -> None:
        path = f"/v1/models/cards/versions/{version}"
        problem(lasting.get(path), 404)
        problem(lasting.post(f"{path}/estimates", json={"posteriors": GOOD}), 404)

    def test_latest_of_a_model_without_versions(self, lasting: httpx.Client) -> None:
        lasting.post("/v1/models", json={"name": "empty", "classes": CLASSES})
        path = "/v1/models/empty/versions/latest/estimates"
        answer = lasting.post(path, json={"posteriors": GOOD})
        assert "no version" in problem(answer, 404)["detail"]

    def test_addresses_and_verbs(self, lasting: httpx.Client) -> None:
        problem(lasting.get("/v1/nothing"), 404)
        answer = lasting.put("/v1/models", json={})
        problem(answer, 405)
        assert answer.headers["allow"] == "GET, HEAD, POST"
        answer = lasting.request("OPTIONS", "/v1/models/m/versions/1/estimates")
        assert answer.headers["allow"] == "POST"

    def test_head_is_get_without_the_body(self, lasting: httpx.Client, cards: str) -> None:
        for path in ("/livez", "/v1/models/cards", "/openapi.json", "/v1/models/none"):
            asked, got = lasting.head(path), lasting.get(path)
            assert asked.status_code == got.status_code
            assert asked.headers["content-length"] == got.headers["content-length"]
            assert asked.content == b""
        assert lasting.head("/v1/nothing").status_code == 404


class TestText:
    """JSON is UTF-8; lone surrogates are no text that an answer or a database could hold."""

    @pytest.mark.parametrize(
        "body",
        [
            b'{"predictions": ["\xed\xa0\x80"]}',
            b'{"predictions": ["\\ud800"]}',
            '{"predictions": ["\\ud800"]}'.encode("utf-16"),
            '{"predictions": ["fraud"]}'.encode("utf-16-le"),
            '{"predictions": ["fraud"]}'.encode("utf-32"),
        ],
    )
    def test_that_is_none_is_400(self, lasting: httpx.Client, bare: str, body: bytes) -> None:
        headers = {"content-type": "application/json"}
        problem(lasting.post(f"{bare}/shift-tests", content=body, headers=headers), 400)


class TestUnavailable:
    @pytest.mark.parametrize("method", ["acc", "acc-qp", "bbse"])
    def test_methods_that_need_a_confusion_matrix(
        self, lasting: httpx.Client, bare: str, method: str
    ) -> None:
        answer = lasting.post(f"{bare}/estimates", json={"posteriors": GOOD, "method": method})
        assert "confusion matrix" in problem(answer, 409)["detail"]

    @pytest.mark.parametrize("method", ["em", "pcc"])
    def test_methods_that_predictions_cannot_feed(
        self, lasting: httpx.Client, bare: str, method: str
    ) -> None:
        answer = lasting.post(
            f"{bare}/estimates", json={"predictions": ["fraud"], "method": method}
        )
        problem(answer, 409)

    def test_a_scaled_test_without_validation_rows(self, lasting: httpx.Client, bare: str) -> None:
        content = {"posteriors": GOOD, "shift": {"reference": "scaled-chi-square"}}
        problem(lasting.post(f"{bare}/shift-tests", json=content), 409)


def source(**parts: Any) -> dict[str, Any]:
    return parts


class TestSources:
    @pytest.mark.parametrize(
        ("given", "place"),
        [
            ({}, "/source"),
            (source(priors={"legit": 0.5}), "/source/priors/fraud"),
            (source(priors={"legit": 0.5, "fraud": 0.6}), "/source/priors"),
            (source(priors={"legit": 1.0, "fraud": 0.0}), "/source/priors/fraud"),
            (source(priors={"legit": True, "fraud": 0.0}), "/source/priors/legit"),
            (source(priors={"legit": "0.5", "fraud": 0.5}), "/source/priors/legit"),
            (source(class_counts={"legit": 5, "theft": 5}), "/source/class_counts/theft"),
            (source(class_counts={"legit": 5, "fraud": 0}), "/source/class_counts/fraud"),
            (
                source(class_counts={"legit": 5, "fraud": 5}, priors={"legit": 0.5, "fraud": 0.5}),
                "/source/priors",
            ),
            (source(confusion_matrix=[[1, 2]]), "/source/confusion_matrix"),
            (source(confusion_matrix=[[1, 2], [3]]), "/source/confusion_matrix/1"),
            (source(confusion_matrix=[[1, 2], [0, 0]]), "/source/confusion_matrix/1"),
            (source(confusion_matrix=[[0.9, 0.1], [0.2, 0.8]]), "/source/confusion_matrix/0"),
            (source(confusion_matrix=[[1, -2], [3, 4]]), "/source/confusion_matrix/0"),
            (source(confusion_matrix=[[1, 2, 3], [3, 4, 5]]), "/source/confusion_matrix/0"),
            (source(confusion_matrix=[[1, 2], [3, 4]], outputs=["a", "a"]), "/source/outputs/1"),
            (
                source(confusion_matrix=[[1, 2], [3, 4]], outputs=["a"]),
                "/source/confusion_matrix/0",
            ),
            (source(outputs=["a", "b"]), "/source/outputs"),
            (source(calibration="isotonic", **EVEN), "/source/calibration"),
            (source(calibration="beta", **EVEN), "/source/calibration"),
            (source(other=1), "/source/other"),
            (source(metadata={"x": "y" * 20_000}, **EVEN), "/source/metadata"),
            (source(metadata={"x": "\x00"}, **EVEN), "/source/metadata"),
            (source(metadata=[1], **EVEN), "/source/metadata"),
        ],
    )
    def test_are_refused_where_they_are(
        self, lasting: httpx.Client, cards: str, given: dict[str, Any], place: str
    ) -> None:
        answer = lasting.post("/v1/models/cards/versions", json={"source": given})
        assert pointers(answer)[0] == place
        assert lasting.get("/v1/models/cards").json()["versions"] == 1

    @pytest.mark.parametrize(
        ("change", "place"),
        [
            ({"labels": [1, 0]}, "/source/validation/labels/0"),
            ({"labels": ["legit", 0]}, "/source/validation/labels/1"),
            ({"labels": ["legit", True]}, "/source/validation/labels/1"),
            ({"labels": ["legit", "theft"]}, "/source/validation/labels/1"),
            ({"labels": ["legit", "legit"]}, "/source/validation/labels"),
            ({"labels": ["legit"]}, "/source/validation/posteriors"),
            ({"labels": []}, "/source/validation/labels"),
            ({"posteriors": [[0.5, 0.5], [0.5, 0.4]]}, "/source/validation/posteriors/1"),
            ({"posteriors": []}, "/source/validation/posteriors"),
            ({"columns": ["fraud"]}, "/source/validation/columns"),
            ({"weights": [1, 1]}, "/source/validation/weights"),
        ],
    )
    def test_validation(
        self, lasting: httpx.Client, cards: str, change: dict[str, Any], place: str
    ) -> None:
        good = {"labels": ["legit", "fraud"], "posteriors": [[0.8, 0.2], [0.4, 0.6]]}
        content = {"source": {"validation": {**good, **change}}}
        assert pointers(lasting.post("/v1/models/cards/versions", json=content))[0] == place

    def test_numeric_looking_classes_are_strings_in_their_order(
        self, lasting: httpx.Client
    ) -> None:
        given = validation()
        names = {"legit": "10", "fraud": "1"}
        labels = [names[label] for label in given["labels"]]
        content = {"labels": labels, "posteriors": given["posteriors"]}
        address = register(lasting, "digits", {"validation": content}, classes=["10", "1"])
        counts = lasting.get(address).json()["validation"]["label_counts"]
        assert list(counts) == ["10", "1"]
        assert counts["10"] > counts["1"]
        numbers = {"labels": [int(label) for label in labels], "posteriors": given["posteriors"]}
        answer = lasting.post("/v1/models/digits/versions", json={"validation": numbers})
        assert (answer.status_code, answer.json()["version"]) == (200, 1)
        numbers["labels"][3] = 2
        answer = lasting.post("/v1/models/digits/versions", json={"validation": numbers})
        assert "is not a string" in problem(answer, 422)["errors"][0]["message"]


class TestModels:
    @pytest.mark.parametrize(
        ("content", "place"),
        [
            ({"classes": ["a", "b"]}, "/name"),
            ({"name": "Upper", "classes": ["a"]}, "/name"),
            ({"name": "new\n", "classes": ["a"]}, "/name"),
            ({"name": "x" * 64, "classes": ["a"]}, "/name"),
            ({"name": "new", "classes": []}, "/classes"),
            ({"name": "new", "classes": ["a", "a"]}, "/classes/1"),
            ({"name": "new", "classes": [0, 1]}, "/classes/0"),
            ({"name": "new", "classes": [""]}, "/classes/0"),
            ({"name": "new", "classes": ["\x00"]}, "/classes/0"),
            ({"name": "new", "classes": [str(k) for k in range(1001)]}, "/classes"),
            ({"name": "new", "classes": ["a"], "kind": "forest"}, "/kind"),
            ({"name": "new", "classes": ["a"], "kind": "regression-mixture"}, "/classes"),
            ({"name": "new", "classes": ["a"], "description": "\x00"}, "/description"),
        ],
    )
    def test_are_refused_where_they_are(
        self, lasting: httpx.Client, content: dict[str, Any], place: str
    ) -> None:
        assert pointers(lasting.post("/v1/models", json=content))[0] == place
        assert lasting.get("/v1/models/new").status_code == 404

    @pytest.mark.parametrize("version", [0, -1, "1", 1.5, True, None, 10**20])
    def test_alias_targets(self, lasting: httpx.Client, cards: str, version: Any) -> None:
        answer = lasting.put("/v1/models/cards/aliases/champion", json={"version": version})
        assert pointers(answer) == ["/version"]


def npy(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


ROWS = np.array([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])


class TestNpy:
    def post(self, client: httpx.Client, address: str, body: bytes, **query: Any) -> httpx.Response:
        headers = {"content-type": "application/x-npy"}
        return client.post(f"{address}/estimates", content=body, headers=headers, params=query)

    @pytest.mark.parametrize(
        "change",
        [
            lambda a: a,
            np.asfortranarray,
            lambda a: a.astype(">f8"),
            lambda a: a.astype("float32"),
            lambda a: a.astype("float16"),
            lambda a: a.astype(">f4"),
        ],
    )
    def test_layouts_give_the_same_estimate(
        self, lasting: httpx.Client, cards: str, change: Callable[[Any], Any]
    ) -> None:
        answer = self.post(lasting, cards, npy(change(ROWS)), method="em", keep="false")
        by_json = lasting.post(
            f"{cards}/estimates?keep=false", json={"posteriors": ROWS.tolist(), "method": "em"}
        )
        assert answer.status_code == 200, answer.text
        assert answer.json()["prevalence"] == by_json.json()["prevalence"]

    def test_integers_are_probabilities_too(self, lasting: httpx.Client, cards: str) -> None:
        for kind in ("int8", "uint16", ">i4", "int64"):
            answer = self.post(lasting, cards, npy(np.eye(2, dtype=kind)))
            assert answer.status_code == 201

    def test_options_come_by_query(self, lasting: httpx.Client, cards: str) -> None:
        query = {
            "columns": CLASSES[::-1],
            "method": "sld",
            "options.max_iterations": "3",
            "options.tolerance": "1e-9",
            "shift.significance": "0.01",
            "segment.country": "BE",
            "observed_at": "2026-01-31T00:00:00Z",
            "include": ["trace", "posteriors"],
        }
        answer = self.post(lasting, cards, npy(ROWS), **query)
        shown = answer.json()
        assert answer.status_code == 201, shown
        assert shown["diagnostics"]["iterations"] == 3
        assert shown["shift"]["significance"] == 0.01
        assert shown["segment"] == {"country": "BE"}
        assert len(shown["trace"]) == 4
        assert len(shown["posteriors"]) == 3

    @pytest.mark.parametrize(
        "query",
        [
            {"methd": "em"},
            {"posteriors": "x"},
            {"options": "x"},
            {"options.tolerance": "small"},
            {"options.tolerance": ["1e-3", "1e-4"]},
            {"shift.significance": "nan"},
            {"columns": ["legit"]},
            {"predictions": "fraud"},
            {"segment.a b": "x"},
        ],
    )
    def test_wrong_queries(self, lasting: httpx.Client, cards: str, query: dict[str, Any]) -> None:
        problem(self.post(lasting, cards, npy(ROWS), **query), 422)

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            (b"", 400),
            (b"\x93NUMPY", 400),
            (npy(ROWS)[:-1], 400),
            (npy(ROWS) + b"x", 400),
            (npy(ROWS).replace(b"(3, 2)", b"(9, 2)"), 400),
            (npy(ROWS).replace(b"'<f8'", b"'|O' "), 422),
            (npy(np.array([[None, 1]]), allow_pickle=True), 422),
            (npy(ROWS.astype(complex)), 422),
            (npy(ROWS.astype(bool)), 422),
            (npy(ROWS.astype(np.longdouble)), 422),
            (npy(np.array([["0.5", "0.5"]])), 422),
            (npy(ROWS[0]), 422),
            (npy(ROWS[None]), 422),
            (npy(np.zeros((0, 2))), 422),
            (npy(np.zeros((2, 0))), 422),
            (npy(np.array([[np.nan, 1.0]])), 422),
            (npy(np.array([[np.inf, 1.0]])), 422),
            (npy(np.array([[2.0, -1.0]])), 422),
            (npy(np.full((1, 3), 1 / 3)), 422),
        ],
    )
    def test_wrong_bodies(
        self, lasting: httpx.Client, cards: str, body: bytes, status: int
    ) -> None:
        problem(self.post(lasting, cards, body), status)

    @pytest.mark.parametrize(
        "shape", ["(10**18, 2)", "(1000000000000, 2)", "(-3, 2)", "(3, 2, 9)", "(True, 6)", "'x'"]
    )
    def test_forged_headers(self, lasting: httpx.Client, cards: str, shape: str) -> None:
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
        padded = header.ljust(117) + "\n"
        body = b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode()
        answer = self.post(lasting, cards, body + ROWS.tobytes())
        assert answer.status_code in (400, 422)
        problem(answer, answer.status_code)


def test_only_what_is_right_is_stored(lasting: httpx.Client, cards: str, database: Path) -> None:
    before = row_counts(database)
    problem(lasting.post(f"{cards}/estimates", json={"posteriors": [[0.5, 0.6]]}), 422)
    problem(lasting.post(f"{cards}/estimates", json={"posteriors": GOOD, "method": "guess"}), 422)
    problem(lasting.post("/v1/models", json={"name": "unheard", "classes": ["a", "a"]}), 422)
    assert row_counts(database) == before
    assert lasting.post(f"{cards}/estimates", json={"posteriors": GOOD}).status_code == 201
    stored = {name: before[name] + 1 for name in ("estimates", "audit")}
    assert row_counts(database) == {**before, **stored}
