"""Answers compressed for whoever asks, equal to the plain ones."""

import gzip
import json

import httpx
import numpy as np
import pytest
import zstandard

from app.http.compression import chosen
from tests.api.sources import COUNTED, register

ROWS = np.random.default_rng(0).dirichlet([1, 1], 20_000)


def inflated(encoding: str, content: bytes) -> bytes:
    if encoding == "gzip":
        return gzip.decompress(content)
    return zstandard.ZstdDecompressor().decompress(content, 1 << 30)


@pytest.fixture(scope="module")
def address(lasting: httpx.Client) -> str:
    return register(lasting, "compressed", COUNTED)


def raw(client: httpx.Client, url: str, encoding: str, accept: str, rows: int) -> httpx.Response:
    """The answer, its body as it came."""
    body = json.dumps({"posteriors": ROWS[:rows].tolist()}).encode()
    headers = {
        "accept-encoding": encoding,
        "accept": accept,
        "content-type": "application/json",
    }
    with client.stream("POST", url, content=body, headers=headers) as answer:
        answer._content = b"".join(answer.iter_raw())
        return answer


@pytest.mark.parametrize("accept", ["application/json", "text/csv", "application/x-ndjson"])
@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_the_same_rows_in_less(
    lasting: httpx.Client, address: str, accept: str, encoding: str
) -> None:
    url = f"{address}/posteriors"
    plain = raw(lasting, url, "identity", accept, len(ROWS))
    packed = raw(lasting, url, encoding, accept, len(ROWS))
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == encoding
    assert inflated(encoding, packed.content) == plain.content
    assert len(packed.content) == int(packed.headers["content-length"])
    assert len(packed.content) < 0.7 * len(plain.content)
    assert "Accept-Encoding" in plain.headers["vary"]
    assert "Accept-Encoding" in packed.headers["vary"]
    assert packed.headers["x-request-id"]


@pytest.mark.parametrize("accept", ["application/x-npy", "application/vnd.apache.arrow.stream"])
def test_numbers_in_binary_are_left_as_they_are(
    lasting: httpx.Client, address: str, accept: str
) -> None:
    answer = raw(lasting, f"{address}/posteriors", "gzip", accept, len(ROWS))
    assert "content-encoding" not in answer.headers


def test_so_are_short_answers_and_health(lasting: httpx.Client, address: str) -> None:
    assert (
        "content-encoding"
        not in raw(lasting, f"{address}/posteriors", "gzip", "application/json", 2).headers
    )
    answer = lasting.get("/livez", headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in answer.headers


def test_problems_are_compressed_too(lasting: httpx.Client, address: str) -> None:
    wrong = {"posteriors": [[0.5, 0.6]] * 100}
    headers = {"accept-encoding": "gzip"}
    answer = lasting.post(f"{address}/estimates", json=wrong, headers=headers)
    assert answer.status_code == 422
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.json()["error_count"] == 100


def test_kept_answers_are_replayed_in_the_encoding_that_is_asked_for(
    lasting: httpx.Client, address: str
) -> None:
    body = {"posteriors": ROWS[:50].tolist()}
    answers = [
        lasting.post(
            f"{address}/estimates",
            json=body,
            headers={"accept-encoding": encoding, "idempotency-key": "compressed"},
        )
        for encoding in ("gzip", "identity", "zstd")
    ]
    assert [a.headers.get("content-encoding") for a in answers] == ["gzip", None, "zstd"]
    assert answers[0].json() == answers[1].json() == answers[2].json()


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", None),
        ("identity", None),
        ("gzip", "gzip"),
        ("GZIP", "gzip"),
        ("zstd", "zstd"),
        ("gzip, deflate, zstd", "zstd"),
        ("gzip, zstd;q=0.5", "gzip"),
        ("*", "zstd"),
        ("*;q=0.5, zstd;q=0", "gzip"),
        ("gzip;q=0", None),
        ("gzip;q=nan", None),
        ("gzip;q=0.5, identity;q=0.8", None),
        ("br, deflate", None),
        (";;,,q=1", None),
    ],
)
def test_the_choice(header: str, expected: str | None) -> None:
    assert chosen(header) == expected
