"""Nothing that a caller sends comes back at length: names, texts, headers, addresses; any route."""

import io
import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from app.core.errors import LONGEST_MESSAGE, LONGEST_POINTER, Fault, Faults, pointer
from app.http.problems import MOST_BYTES
from app.http.scopes import RULES
from app.main import create_app
from app.schemas.requests import MOST_NAMES, In
from app.settings import Settings
from tests.api.sources import COUNTED, register
from tests.conftest import served

JSON = "application/json"
ODD = ("a", "/", "~", "\x01", '"', "\u00e9", "\U0001f600")
MADE_OF_OBJECTS = re.compile(r"<[\w.]+ object at 0x")


def posted(path: str) -> bool:
    return ("POST", path) in RULES


def shapes(shape: type[In] = In) -> Iterator[type[In]]:
    for inner in shape.__subclasses__():
        yield inner
        yield from shapes(inner)


def require_short(answer: httpx.Response) -> None:
    assert 400 <= answer.status_code < 500, answer.text[:300]
    assert len(answer.content) <= MOST_BYTES
    assert len(str(answer.headers)) < 5000
    assert not MADE_OF_OBJECTS.search(answer.text)
    problem = answer.json()
    assert len(problem["detail"]) <= LONGEST_POINTER + LONGEST_MESSAGE
    for error in problem.get("errors", []):
        assert len(error["pointer"]) <= LONGEST_POINTER
        assert len(error["message"]) <= LONGEST_MESSAGE


@pytest.fixture(scope="module")
def there(lasting: httpx.Client) -> httpx.Client:
    register(lasting, "echoes", COUNTED)
    return lasting


def address(path: str, **others: str) -> str:
    names = {"name": "echoes", "version": "1", **others}
    return re.sub(r"\{(\w+)\}", lambda match: names.get(match[1], "0" * 32), path)


WRITES = sorted({(m, p) for m, p in RULES if m in ("POST", "PUT", "PATCH") and p[:4] == "/v1/"})


@pytest.mark.parametrize(("method", "path"), WRITES)
class TestBodies:
    def test_long_names_and_texts(self, there: httpx.Client, method: str, path: str) -> None:
        many = {letter * 900 + str(n): letter * 50_000 for n in range(4) for letter in ODD}
        inner: list[Any] = [{letter * 990: 1} for letter in ODD]
        inner += [many, [list(many)], "\x01" * 100_000]
        fields = {"name": "x" * 60_000, "segment": many, "method": "\x01" * 100_000}
        fields |= {"classes": list(many), "source": {**many, "priors": many}, "posteriors": many}
        fields |= {"predicted_counts": many, "predictions": list(many.values()), "columns": many}
        fields |= {"options": {"prior": many, "seed": "9" * 9000}, "target_priors": many}
        for body in (many, {"a" * 1001: 1}, *({name: value} for name, value in fields.items())):
            require_short(there.request(method, address(path), json=body))
        for value in inner:
            for name in ("source", "metadata", "posteriors", "x", "dataset", "window"):
                answer = there.request(method, address(path), json={name: value})
                require_short(answer)

    def test_long_queries_and_headers(self, there: httpx.Client, method: str, path: str) -> None:
        for letter in ("a", "%00", "%2F", "%F0%9F%98%80"):
            query = "&".join(f"{letter * (2500 // len(letter))}{n}=1" for n in range(20))
            answer = there.request(method, f"{address(path)}?{query}", json={})
            require_short(answer)
        for header in ("content-type", "content-encoding", "idempotency-key", "x-request-id"):
            answer = there.request(
                method, address(path), json={"b": 1}, headers={header: "x" * 9999}
            )
            require_short(answer)


@pytest.mark.parametrize("path", sorted({p for _, p in RULES if "{" in p and p[:4] == "/v1/"}))
def test_long_addresses(there: httpx.Client, path: str) -> None:
    method = next(m for m, p in RULES if p == path)
    for letter in ("a", "%00", "%F0%9F%98%80", "@"):
        long = letter * (9000 // len(letter))
        for name in re.findall(r"\{(\w+)\}", path):
            answer = there.request(method, address(path, **{name: long}), json={})
            require_short(answer)


def test_a_browser_is_not_sent_to_a_long_address(sqlite_url: str) -> None:
    with served(create_app(Settings.model_validate({"database_url": sqlite_url}))) as client:
        answer = client.get("/?a=" + "%22" * 9000, headers={"accept": "text/html"})
        assert len(str(answer.headers)) < 5000


def tables(name: str) -> Iterator[tuple[str, bytes]]:
    yield "text/csv", f'"{name}","{name}2"\n0.5,0.5\n'.encode()
    yield "text/csv", f'a,b\n0.5,"{name}"\n'.encode()
    yield "text/csv", f'a,b\n"{name}",{name},{name}\n'.encode()
    yield "application/x-ndjson", json.dumps({name: 0.5, name + "2": "x"}).encode()
    yield "application/x-ndjson", (json.dumps({"legit": name}) + '\n{"legit":1}').encode()
    for kind in (pa.list_(pa.string()), pa.struct([(name, pa.int8())]), pa.string()):
        table = pa.table({name: pa.nulls(2, kind), "fraud": pa.nulls(2, kind)})
        out = io.BytesIO()
        with pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
        yield "application/vnd.apache.arrow.stream", out.getvalue()
        out = io.BytesIO()
        pq.write_table(table, out)
        yield "application/vnd.apache.parquet", out.getvalue()


@pytest.mark.parametrize("letter", ODD)
def test_tables(there: httpx.Client, letter: str) -> None:
    name = letter.replace('"', "'") * (40_000 // len(letter))
    for media_type, body in (*tables(name), *tables(name[:900])):
        for query in ({}, {"predictions": name[:900]}, {"labels": name[:900]}):
            answer = there.post(
                "/v1/models/echoes/versions/1/estimates",
                content=body,
                params=query,
                headers={"content-type": media_type},
            )
            require_short(answer)


def headers() -> Iterator[str]:
    yield from ("__import__('os')", "{'descr': f(1), 'fortran_order': False, 'shape': (1, 2)}")
    yield "{'descr': '" + "x" * 9000 + "', 'fortran_order': False, 'shape': (1, 2)}"
    yield "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9," * 4000 + ")}"
    names = [(f"{'n' * 90}{n}", "<f8") for n in range(80)]
    yield f"{{'descr': {names}, 'fortran_order': False, 'shape': (1, 2)}}"
    yield "(" * 500
    yield "{" + "'a': lambda: 0, " * 500 + "}"


@pytest.mark.parametrize("header", list(headers()), ids=range(7))
def test_npy(there: httpx.Client, header: str) -> None:
    text = header.encode() + b"\n"
    body = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    kind = {"content-type": "application/x-npy"}
    answer = there.post("/v1/models/echoes/versions/1/estimates", content=body, headers=kind)
    require_short(answer)
    assert len(answer.text) < 1000


@pytest.mark.parametrize("shape", sorted(set(shapes()), key=str), ids=lambda shape: shape.__name__)
def test_no_shape_looks_at_each_of_very_many_items(shape: type[In]) -> None:
    many = 3 * MOST_NAMES
    wrong: tuple[Any, ...] = (
        [None] * many, ["x" * 300] * many, [{}] * many, [[1, "x"]] * many, [-1.5] * many,
        {str(n): None for n in range(many)}, {"A" * 900 + str(n): -1 for n in range(many)},
    )  # fmt: skip
    for name in shape.model_fields:
        for value in wrong:
            with pytest.raises(ValidationError) as caught:
                shape.model_validate({name: value, "unknown": 1})
            assert caught.value.error_count() <= MOST_NAMES + len(shape.model_fields)


class TestFaults:
    def test_are_cut(self) -> None:
        fault = Fault("/" + "a" * 5000, "b" * 5000)
        assert len(fault.pointer) == LONGEST_POINTER
        assert len(fault.message) == LONGEST_MESSAGE
        assert pointer("a" * 200, "/" * 1000) == "/" + "a" * 200 + "/" + "~1" * 199 + "…"

    def test_all_are_counted_and_few_are_kept(self) -> None:
        faults = Faults()
        faults.add("/a", "first")
        for row in faults.some(np.arange(5, 1000)):
            faults.add(f"/{row}", "is wrong", row)
        faults.add("/b", "last")
        error = faults.error()
        assert error.count == 997
        assert [fault.row for fault in error.faults] == [None, *range(5, 24)]
