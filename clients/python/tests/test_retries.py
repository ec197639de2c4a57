import asyncio
import gzip
import json
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import numpy as np
import pytest

from clients.python.tests.servers import hanging_up, scripted
from priorshift_client import (
    AsyncClient,
    Busy,
    Client,
    Problem,
    Retries,
    Source,
    Training,
    TransportError,
    Unavailable,
    UnexpectedAnswer,
)
from priorshift_client.calls import Answer, Call, nothing
from tests.api.sources import CLASSES
from tests.end_to_end.processes import free_port

READY = (200, {"Content-Type": "application/json"}, b'{"status": "ready"}')
SOON = Retries(most=3, first=0.001, longest=0.01)
ROWS = np.array([[0.9, 0.1], [0.2, 0.8]])


def refusal(status: int, **headers: str) -> tuple[int, dict[str, str], bytes]:
    content = {"type": "urn:x", "title": "No", "status": status, "detail": "later", "instance": ""}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return (
        status,
        {"Content-Type": "application/problem+json", **named},
        json.dumps(content).encode(),
    )


class TestPauses:
    get: Call[None] = Call("GET", "/", nothing, repeatable=True)

    def pause(self, status: int = 503, attempt: int = 0, after: str = "") -> float | None:
        policy = Retries(most=3, first=0.5, longest=8.0, chance=random.Random(0))
        headers = {"retry-after": after} if after else {}
        return policy.pause(self.get, Answer(status, headers, b""), attempt)

    def test_they_double_with_jitter(self) -> None:
        for attempt, least in enumerate([0.5, 1.0, 2.0]):
            pause = self.pause(attempt=attempt)
            assert pause is not None
            assert least <= pause < 2 * least
        assert self.pause(attempt=3) is None

    def test_retry_after_is_waited_out_up_to_a_cap(self) -> None:
        for value, least, most in [("2", 2.0, 2.5), ("900", 8.0, 8.0), ("soon", 0.5, 1.0)]:
            pause = self.pause(after=value)
            assert pause is not None
            assert least <= pause <= most

    def test_retry_after_may_be_a_date(self) -> None:
        date = format_datetime(datetime.now(UTC) + timedelta(seconds=5), usegmt=True)
        pause = self.pause(after=date)
        assert pause is not None
        assert 3.5 < pause < 5.6

    @pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 409, 413, 422, 500, 502])
    def test_other_answers_are_final(self, status: int) -> None:
        assert self.pause(status) is None

    @pytest.mark.parametrize("outcome", [Answer(503, {}, b""), TransportError("gone")])
    def test_what_may_not_be_repeated_is_not(self, outcome: Answer | TransportError) -> None:
        put: Call[None] = Call("PUT", "/", nothing)
        assert Retries().pause(put, outcome, 0) is None


class TestAgainstAServerThatRefusesFirst:
    @pytest.mark.parametrize("status", [429, 503])
    def test_it_is_asked_again_after_its_time(self, status: int) -> None:
        with (
            scripted(refusal(status, Retry_After="1"), READY) as server,
            Client(server.base) as client,
        ):
            began = time.monotonic()
            assert client.health() == "ready"
            assert time.monotonic() - began >= 1.0
            assert len(server.seen) == 2

    def test_and_by_the_asynchronous_client(self) -> None:
        async def ask(base: str) -> tuple[str, float]:
            async with AsyncClient(base) as client:
                began = time.monotonic()
                return await client.health(), time.monotonic() - began

        with scripted(refusal(503, Retry_After="1"), READY) as server:
            status, took = asyncio.run(ask(server.base))
            assert status == "ready"
            assert took >= 1.0

    @pytest.mark.parametrize(("status", "kind"), [(429, Busy), (503, Unavailable)])
    def test_it_is_told_when_patience_ends(self, status: int, kind: type[Problem]) -> None:
        with scripted(refusal(status)) as server, Client(server.base, retries=SOON) as client:
            with pytest.raises(kind, match="later"):
                client.health()
            assert len(server.seen) == 4

    @pytest.mark.parametrize("status", [400, 404, 409, 422, 500])
    def test_other_problems_are_told_at_once(self, status: int) -> None:
        with scripted(refusal(status)) as server, Client(server.base, retries=SOON) as client:
            with pytest.raises(Problem) as raised:
                client.health()
            assert raised.value.status == status
            assert len(server.seen) == 1

    @pytest.mark.parametrize("operation", ["put", "patch", "delete", "key"])
    def test_what_cannot_be_repeated_is_sent_once(self, operation: str) -> None:
        with scripted(refusal(503)) as server, Client(server.base, retries=SOON) as client:
            calls: dict[str, Any] = {
                "put": lambda: client.aliases.put("m", "a", 1),
                "patch": lambda: client.models.describe("m", "d"),
                "delete": lambda: client.models.delete("m"),
                "key": lambda: client.keys.create("k", ["read"]),
            }
            with pytest.raises(Unavailable):
                calls[operation]()
            assert len(server.seen) == 1
            assert "idempotency-key" not in server.seen[0][2]

    def test_every_attempt_carries_the_same_key(self) -> None:
        with scripted(refusal(503)) as server, Client(server.base, retries=SOON) as client:
            for _ in range(2):
                with pytest.raises(Unavailable):
                    client.estimate("m", ROWS)
            keys = [headers["idempotency-key"] for _, _, headers, _ in server.seen]
            assert len(keys) == 8
            assert len(set(keys[:4])) == len(set(keys[4:])) == 1
            assert keys[0] != keys[4]

    def test_what_writes_nothing_carries_none_and_is_repeated(self) -> None:
        with scripted(refusal(503)) as server, Client(server.base, retries=SOON) as client:
            with pytest.raises(Unavailable):
                client.estimate("m", ROWS, keep=False)
            assert len(server.seen) == 4
            assert all("idempotency-key" not in headers for _, _, headers, _ in server.seen)

    def test_bodies_are_compressed_on_request_only(self) -> None:
        for compress in (None, "gzip"):
            with (
                scripted(refusal(422)) as server,
                Client(server.base, compress=compress) as client,
            ):
                with pytest.raises(Problem):
                    client.estimate("m", ROWS)
                _, path, headers, body = server.seen[0]
                assert path == "/v1/models/m/versions/latest/estimates?method=auto"
                assert headers.get("content-encoding") == compress
                plain = gzip.decompress(body) if compress else body
                assert plain.startswith(b"\x93NUMPY")


class TestAnswersOfOthers:
    @pytest.mark.parametrize(
        "answer",
        [
            (200, {}, b"<html>"),
            (200, {}, b"[]"),
            (200, {}, b"{}"),
            (204, {}, b""),
            (301, {"Location": "http://127.0.0.1:1/"}, b""),
            (200, {"Content-Encoding": "gzip"}, b"not gzip"),
        ],
    )
    def test_they_are_not_taken_for_the_service_s(
        self, answer: tuple[int, dict[str, str], bytes]
    ) -> None:
        with (
            scripted(answer) as server,
            Client(server.base, retries=0) as client,
            pytest.raises((UnexpectedAnswer, TransportError)),
        ):
            client.health()

    def test_problems_may_come_as_anything(self) -> None:
        with scripted((502, {}, b"<h1>Bad Gateway</h1>")) as server, Client(server.base) as client:
            with pytest.raises(Problem, match="Bad Gateway") as raised:
                client.health()
            assert raised.value.status == 502
        with scripted((404, {}, b"[1]")) as server, Client(server.base) as client:
            with pytest.raises(Problem) as raised:
                client.health()
            assert raised.value.title == "Not Found"

    def test_an_array_cut_short(self) -> None:
        answer = (200, {"Content-Type": "application/x-npy"}, b"\x93NUMPY\x01\x00")
        with (
            scripted(answer) as server,
            Client(server.base) as client,
            pytest.raises(UnexpectedAnswer),
        ):
            client.posteriors("m", ROWS)


class TestTimeouts:
    @pytest.fixture
    def slow(self) -> Iterator[str]:
        """Answers after a second."""
        with scripted(READY, delay=1.0) as server:
            yield server.base

    def test_an_answer_that_does_not_come(self, slow: str) -> None:
        with Client(slow, timeout=0.1, retries=0) as client, pytest.raises(TransportError):
            client.health()

    def test_trainings_are_waited_for(self, slow: str) -> None:
        training = Training([[1.0], [2.0]], ["legit", "fraud"], "logistic-regression")
        with (
            Client(slow, timeout=0.1, retries=0) as client,
            pytest.raises(UnexpectedAnswer),
        ):
            client.versions.register("m", Source(training=training))


class TestTransport:
    def test_nobody_listens(self) -> None:
        with (
            Client(f"http://127.0.0.1:{free_port()}", retries=SOON) as client,
            pytest.raises(TransportError, match="GET /readyz"),
        ):
            client.health()

    def test_a_line_that_is_cut_writes_once(self, base: str, client: Client) -> None:
        client.models.create("line", CLASSES, Source(priors={"legit": 0.9, "fraud": 0.1}))
        port = httpx.URL(base).port
        assert port is not None
        with hanging_up(port, times=2) as line, Client(line, retries=SOON) as shaky:
            found = shaky.estimate("line", ROWS, method="em")
        assert [kept.id for kept in client.history("line")] == [found.id]

    def test_and_asynchronously(self, base: str, client: Client) -> None:
        client.models.create("aline", CLASSES, Source(priors={"legit": 0.9, "fraud": 0.1}))
        port = httpx.URL(base).port
        assert port is not None

        async def ask(line: str) -> str | None:
            async with AsyncClient(line, retries=SOON) as shaky:
                return (await shaky.estimate("aline", ROWS, method="em")).id

        with hanging_up(port, times=2) as line:
            id = asyncio.run(ask(line))
        assert [kept.id for kept in client.history("aline")] == [id]

    def test_a_key_of_the_caller_s_own(self, client: Client) -> None:
        client.models.create("own", CLASSES, Source(priors={"legit": 0.9, "fraud": 0.1}))
        first = client.estimate("own", ROWS, idempotency_key="night-1")
        assert client.estimate("own", ROWS, idempotency_key="night-1").id == first.id
        with pytest.raises(Problem) as raised:
            client.estimate("own", ROWS[:1], idempotency_key="night-1")
        assert raised.value.type.endswith("idempotency-conflict")
        with pytest.raises(ValueError, match="plain characters"):
            client.estimate("own", ROWS, idempotency_key="a\nb")
