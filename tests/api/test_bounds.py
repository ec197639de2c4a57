"""Limits of size, time and number, and what a caller hears beyond them."""

import gzip
import io
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from typing import Any

import httpx
import numpy as np
import pytest
import zstandard

from app.main import create_app
from app.operations import server
from app.settings import Settings
from tests.api.sources import COUNTED, register, validation
from tests.conftest import served
from tests.patience import patience, until

BATCH = {"posteriors": [[0.9, 0.1], [0.3, 0.7]]}
JSON = {"content-type": "application/json"}


@contextmanager
def limited(url: str, **limits: Any) -> Iterator[httpx.Client]:
    """A service with other limits."""
    settings = Settings.model_validate({"database_url": url, **limits})
    with served(create_app(settings)) as client:
        yield client


def packed(encoding: str, content: bytes) -> bytes:
    return gzip.compress(content) if encoding == "gzip" else zstandard.compress(content)


def post(client: httpx.Client, address: str, content: bytes, encoding: str) -> httpx.Response:
    headers = {**JSON, "content-encoding": encoding}
    return client.post(f"{address}/shift-tests", content=content, headers=headers)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
class TestCompressedBodies:
    def test_say_the_same(self, lasting: httpx.Client, encoding: str) -> None:
        address = register(lasting, f"same-{encoding}", COUNTED)
        content = json.dumps(BATCH).encode()
        plain = lasting.post(f"{address}/shift-tests", json=BATCH).json()
        assert post(lasting, address, packed(encoding, content), encoding).json() == plain
        halves = packed(encoding, content[:20]) + packed(encoding, content[20:])
        assert post(lasting, address, halves, encoding).json() == plain
        buffer = io.BytesIO()
        np.save(buffer, np.array(BATCH["posteriors"]))
        headers = {"content-type": "application/x-npy", "content-encoding": encoding}
        body = packed(encoding, buffer.getvalue())
        answer = lasting.post(f"{address}/shift-tests", content=body, headers=headers)
        assert answer.json() == plain

    def test_broken_ones_are_400(self, lasting: httpx.Client, encoding: str) -> None:
        address = register(lasting, f"broken-{encoding}", COUNTED)
        content = packed(encoding, json.dumps(BATCH).encode())
        for broken in (b"", b"{}", content[:-3], content + b"more", content[5:]):
            answer = post(lasting, address, broken, encoding)
            assert answer.status_code == 400, broken

    def test_endless_empty_parts_cost_little(self, lasting: httpx.Client, encoding: str) -> None:
        address = register(lasting, f"empty-{encoding}", COUNTED)
        empty = packed(encoding, b"")
        content = empty * (900_000 // len(empty)) + packed(encoding, json.dumps(BATCH).encode())
        start = time.monotonic()
        assert post(lasting, address, content, encoding).status_code in (200, 400)
        assert time.monotonic() - start < patience(3.0)

    def test_bombs_are_413(self, sqlite_url: str, encoding: str) -> None:
        bomb = packed(encoding, b" " * 200_000_000)
        assert len(bomb) < 250_000
        with limited(sqlite_url, max_inflated_bytes=1_000_000) as client:
            address = register(client, "bomb", COUNTED)
            answer = post(client, address, bomb, encoding)
            assert answer.status_code == 413
            assert "inflates" in answer.json()["detail"]


def test_zstd_that_asks_for_a_huge_window_is_400(lasting: httpx.Client) -> None:
    address = register(lasting, "window", COUNTED)
    parameters = zstandard.ZstdCompressionParameters.from_level(
        3, window_log=27, write_content_size=False
    )
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    content = stream.compress(json.dumps(BATCH).encode() + b" " * 100) + stream.flush()
    assert post(lasting, address, content, "zstd").status_code == 400


class TestSizes:
    def test_rows(self, sqlite_url: str) -> None:
        with limited(sqlite_url, max_rows=20) as client:
            address = register(client, "rows", COUNTED)
            many: list[tuple[str, Any]] = [
                ("posteriors", [[0.5, 0.5]] * 21),
                ("predictions", ["legit"] * 21),
            ]
            for name, rows in many:
                answer = client.post(f"{address}/estimates", json={name: rows})
                assert answer.status_code == 422
                assert answer.json()["errors"][0]["pointer"] == f"/{name}"
            source = {"source": {"validation": validation(21)}}
            answer = client.post("/v1/models/rows/versions", json=source)
            assert answer.status_code == 422
            assert answer.json()["errors"][0]["pointer"] == "/source/validation/labels"

    def test_bodies_held_at_once(self, sqlite_url: str) -> None:
        with limited(sqlite_url, max_held_bytes=2_000) as client:
            address = register(client, "held", COUNTED)
            large = {"posteriors": [[0.5, 0.5]] * 500}
            answer = client.post(f"{address}/estimates", json=large)
            assert answer.status_code == 429
            assert answer.headers["retry-after"] == "1"
            assert client.post(f"{address}/estimates", json=BATCH).status_code == 201


class TestTime:
    def test_a_long_computation_is_ended(self, sqlite_url: str) -> None:
        # Likelihood ratios of .5 and 1.5 in equal parts: EM crawls towards a share of zero.
        odds = np.tile([0.5, 1.5], 100_000) * (0.1 / 0.9)
        rows = np.column_stack([1 / (1 + odds), odds / (1 + odds)])
        content = io.BytesIO()
        np.save(content, rows)
        with limited(sqlite_url, request_seconds=0.2) as client:
            address = register(client, "long", COUNTED)
            answer = client.post(
                f"{address}/estimates?method=em&options.tolerance=1e-300&keep=true",
                content=content.getvalue(),
                headers={"content-type": "application/x-npy"},
            )
            assert answer.status_code == 503, answer.text
            assert answer.json()["type"].endswith("out-of-time")
            assert "PRIORSHIFT_REQUEST_SECONDS" in answer.json()["detail"]
            assert client.get("/v1/estimates").json()["items"] == []
            until(lambda: client.post(f"{address}/estimates", json=BATCH).status_code == 201)

    def test_a_registration_too(self, sqlite_url: str) -> None:
        with limited(sqlite_url, request_seconds=1e-6) as client:
            body = {
                "name": "m",
                "classes": ["legit", "fraud"],
                "source": {"validation": validation()},
            }
            assert client.post("/v1/models", json=body).status_code == 503
            assert client.get("/v1/models").json()["items"] == []

    def test_slow_bodies_are_408(self, sqlite_url: str) -> None:
        with limited(sqlite_url, body_seconds=patience(0.3)) as client:
            head = (
                "POST /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                "Content-Length: 1000\r\n\r\n{"
            )
            assert raw(client, head).startswith(b"HTTP/1.1 408")

    def test_slow_headers_are_cut_off(
        self, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(server, "HEADER_SECONDS", patience(0.3))
        with limited(sqlite_url) as client:
            assert raw(client, "GET /livez HTTP/1.1\r\nHost:") == b""
            assert raw(client, "") == b""
            twice = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGET /livez HTTP/1.1\r\n"
            answered = raw(client, twice)
            assert answered.count(b"HTTP/1.1 200") == 1

    def test_what_follows_an_answer_is_cut_off_too(
        self, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(server, "LINGER_SECONDS", patience(0.3))
        body = "POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n"
        with limited(sqlite_url) as client:
            for head in ("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", body):
                assert dripped(client, head) < patience(3.0)

    def test_answers_that_nobody_reads_are_dropped(
        self, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(server, "READ_SECONDS", patience(0.3))
        with limited(sqlite_url) as client:
            assert unread(client, register(client, "unread", COUNTED))

    def test_so_are_the_slowest_where_too_much_waits(
        self, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(server, "MOST_UNREAD_BYTES", 10_000_000)
        with limited(sqlite_url) as client:
            address = register(client, "slowest", COUNTED)
            with asked(client, address) as first, asked(client, address):
                assert len(drained(first)) < ANSWER
            with asked(client, address) as only:
                assert len(drained(only)) > ANSWER

    def test_endless_headers_are_cut_off(self, sqlite_url: str) -> None:
        with limited(sqlite_url) as client:
            for headers in ("X-A: b\r\n" * 20_000, f"X-A: {'b' * 200_000}"):
                said = raw(client, f"GET /livez HTTP/1.1\r\n{headers}")
                assert said == b"" or said.startswith(b"HTTP/1.1 400")
            some = "X-A: b\r\n" * 190
            said = raw(client, f"GET /livez HTTP/1.1\r\n{some}Connection: close\r\n\r\n")
            assert said.startswith(b"HTTP/1.1 200")

    def test_the_rest_of_a_refused_body_is_no_part_of_the_next_headers(
        self, sqlite_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # So little that both come in one piece.
        monkeypatch.setattr(server, "MOST_HEADER_BYTES", 1000)
        rest = 10_000
        refused = f"POST /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Length: {rest}\r\n\r\n"
        with limited(sqlite_url, max_body_bytes=1024) as client:
            for _ in range(5):
                with connected(client) as connection:
                    connection.sendall(refused.encode())
                    assert status(connection) == 413
                    connection.sendall(b" " * rest + b"GET /livez HTTP/1.1\r\nHost: localhost\r\n")
                    time.sleep(0.05)
                    connection.sendall(b"\r\n")
                    assert status(connection) == 200


def status(connection: socket.socket) -> int:
    """Of the next answer, which is read to its end, in however many parts it comes."""
    answer = HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer.status


ANSWER = 13_000_000
"""Less than the bytes of an answer of 400,000 rows, more than what the kernel keeps of it."""


@contextmanager
def asked(client: httpx.Client, address: str) -> Iterator[socket.socket]:
    """A connection on which a large answer is due, which has begun to arrive."""
    rows = np.random.default_rng(0).dirichlet([1, 1], 400_000)
    buffer = io.BytesIO()
    np.save(buffer, rows)
    head = (
        f"POST {address}/posteriors HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/x-npy\r\nContent-Length: {len(buffer.getvalue())}\r\n\r\n"
    )
    with connected(client) as connection:
        connection.sendall(head.encode() + buffer.getvalue())
        connection.recv(1)
        yield connection


def unread(client: httpx.Client, address: str) -> bool:
    """Whether the server gives up on a large answer that is read after a second only."""
    with asked(client, address) as connection:
        time.sleep(patience(1.0))
        return len(drained(connection)) < ANSWER


def drained(connection: socket.socket) -> bytes:
    """What comes until a second of silence, or the end."""
    connection.settimeout(patience(1.0))
    said = b""
    try:
        while part := connection.recv(1 << 20):
            said += part
    except (ConnectionError, TimeoutError):
        pass
    return said


def dripped(client: httpx.Client, head: str) -> float:
    """Seconds until the server hangs up on somebody who sends an empty line now and then."""
    start = time.monotonic()
    with connected(client) as connection:
        try:
            connection.sendall(head.encode())
            while time.monotonic() < start + patience(3.0):
                time.sleep(0.05)
                connection.sendall(b"\r\n")
        except ConnectionError:
            pass
    return time.monotonic() - start


def connected(client: httpx.Client) -> socket.socket:
    place = client.base_url.host, client.base_url.port
    return socket.create_connection(place, patience(60))


def raw(client: httpx.Client, head: str) -> bytes:
    """What the server says to these bytes until it hangs up."""
    said = b""
    with connected(client) as connection:
        try:
            connection.sendall(head.encode())
            while part := connection.recv(65_536):
                said += part
        except ConnectionError:
            pass
    return said


class TestQueue:
    def test_too_many_at_once_are_429(self, sqlite_url: str) -> None:
        rows = np.random.default_rng(0).dirichlet([1, 1], 100_000).tolist()
        content = json.dumps(
            {"posteriors": rows, "method": "em", "options": {"tolerance": 1e-300}}
        ).encode()
        with limited(sqlite_url, large_slots=1, queue=1, request_seconds=patience(2.0)) as client:
            address = register(client, "queue", COUNTED)
            statuses: list[int] = []

            def ask() -> None:
                with httpx.Client(base_url=client.base_url, timeout=patience(60)) as own:
                    answer = own.post(f"{address}/estimates", content=content, headers=JSON)
                    statuses.append(answer.status_code)

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            time.sleep(0.5)
            # Small ones go on meanwhile.
            assert client.post(f"{address}/estimates", json=BATCH).status_code == 201
            for thread in threads:
                thread.join()
            assert statuses.count(429) == 2
            assert set(statuses) <= {429, 201, 503}

    def test_slow_readers_keep_no_slot(self, sqlite_url: str) -> None:
        with limited(sqlite_url, large_slots=1, queue=0, large_body_bytes=0) as client:
            address = register(client, "readers", COUNTED)
            with asked(client, address), asked(client, address):
                assert client.post(f"{address}/estimates", json=BATCH).status_code == 201

    def test_slots_come_back_after_mistakes(self, sqlite_url: str) -> None:
        with limited(sqlite_url, small_slots=1, queue=0) as client:
            address = register(client, "mistakes", COUNTED)
            for _ in range(5):
                wrong = client.post(f"{address}/estimates", json={"posteriors": [[2, 2]]})
                assert wrong.status_code == 422
                assert client.post(f"{address}/estimates", content=b"{").status_code == 415
            assert client.post(f"{address}/estimates", json=BATCH).status_code == 201
