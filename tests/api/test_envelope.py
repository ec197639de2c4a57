"""What every answer carries, whoever gives it."""

import asyncio
import re
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import httpx
import pytest
from pydantic import ValidationError
from starlette.types import Message, Receive, Scope, Send

from app.http.middleware import Envelope, LastResort
from app.main import create_app
from app.metrics import Metrics
from app.settings import Settings
from models_store.models import Models
from tests.api.test_access import bearer, guarded_settings
from tests.conftest import served

PAGE = "https://dashboard.example.com"
STRICT = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
}


def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the list of models fail as nobody expected."""

    def fail(*given: object) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(Models, "list", fail)


def everyone(client: httpx.Client) -> Iterator[tuple[int, httpx.Response]]:
    """An answer of every part that answers, with the status that it should have."""
    ask = client.request
    json = {"content-type": "application/json"}
    yield 200, ask("GET", "/livez")
    yield 200, ask("GET", "/version")
    yield 200, ask("GET", "/openapi.json")
    yield 404, ask("GET", "/nothing")
    yield 404, ask("GET", "/v1/models/none")
    yield 405, ask("DELETE", "/v1/models")
    yield 405, ask("OPTIONS", "/v1/models")
    yield 400, ask("POST", "/v1/models", content=b"{", headers=json)
    yield 413, ask("POST", "/v1/models", content=b" " * 1_000_001, headers=json)
    yield 415, ask("POST", "/v1/models", content=b"{}")
    yield 422, ask("POST", "/v1/models", json={})
    yield 500, ask("GET", "/v1/models")


class TestRequestId:
    def test_every_answer_has_one_and_problems_name_it(
        self, lasting: httpx.Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broken(monkeypatch)
        seen = set()
        for status, answer in everyone(lasting):
            assert answer.status_code == status
            name = answer.headers["x-request-id"]
            assert re.fullmatch("[0-9a-f]{32}", name)
            seen.add(name)
            if status >= 400:
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.json()["instance"] == f"urn:priorshift:request:{name}"
        assert len(seen) == 12

    def test_refusals_at_the_door_have_one(self, sqlite_url: str, tmp_path: Path) -> None:
        with served(create_app(guarded_settings(sqlite_url, tmp_path))) as client:
            for headers in ({}, bearer("w" * 43)):
                answer = client.get("/v1/models", headers={**headers, "X-Request-Id": "mine"})
                assert answer.status_code == 401
                assert answer.headers["x-request-id"] == "mine"
                assert answer.json()["instance"] == "urn:priorshift:request:mine"

    @pytest.mark.parametrize("name", ["a", "A1._-", "x" * 64])
    def test_the_callers_own_is_kept(self, lasting: httpx.Client, name: str) -> None:
        answer = lasting.get("/livez", headers={"X-Request-Id": name})
        assert answer.headers["x-request-id"] == name

    @pytest.mark.parametrize("name", ["", "x" * 65, "a b", "<script>", "a/b", "ä"])
    def test_what_could_do_harm_is_not(self, lasting: httpx.Client, name: str) -> None:
        answer = lasting.get("/livez", headers={b"X-Request-Id": name.encode()})
        assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-request-id"])


class TestUnexpected:
    def test_nothing_of_it_gets_out(
        self, lasting: httpx.Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broken(monkeypatch)
        answer = lasting.get("/v1/models")
        assert answer.status_code == 500
        assert answer.json()["type"] == "urn:priorshift:problem:internal-error"
        for inside in ("secret", "Traceback", "RuntimeError", ".py"):
            assert inside not in answer.text

    def test_an_answer_that_had_begun_is_broken_off(self) -> None:
        sent: list[Message] = []

        async def begin_and_fail(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            raise RuntimeError

        async def receive() -> Message:
            return {"type": "http.request"}

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
        asyncio.run(Envelope(LastResort(begin_and_fail), Metrics())(scope, receive, send))
        assert [message["type"] for message in sent] == ["http.response.start"]


class TestHeaders:
    def test_every_answer_is_closed_to_browsers(
        self, lasting: httpx.Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broken(monkeypatch)
        for _, answer in everyone(lasting):
            assert STRICT.items() <= answer.headers.items()
            assert not [name for name in answer.headers if name.startswith("access-control")]

    @pytest.mark.parametrize("path", ["/docs", "/redoc"])
    def test_a_page_may_load_what_it_names_and_no_more(
        self, lasting: httpx.Client, path: str
    ) -> None:
        page = lasting.get(path)
        assert page.headers["x-frame-options"] == "DENY"
        parts = page.headers["content-security-policy"].split("; ")
        policy = {name: sources for name, *sources in (part.split() for part in parts)}
        assert policy["default-src"] == policy["frame-ancestors"] == ["'none'"]
        named = re.findall(r'(?:src|href)="([^"]+)"', page.text)
        assert named
        for address in named:
            assert address.startswith("/static/")
            assert lasting.get(address).status_code == 200
        assert policy["style-src"] == ["'self'", "'unsafe-inline'"]
        assert policy["script-src"][0] == "'self'"
        own = re.findall(r"<script>(.*?)</script>", page.text, re.DOTALL)
        digests = [b64encode(sha256(script.encode()).digest()).decode() for script in own]
        assert policy["script-src"][1:] == [f"'sha256-{digest}'" for digest in digests]


class TestCors:
    @pytest.fixture
    def shared(self, sqlite_url: str, tmp_path: Path) -> Iterator[httpx.Client]:
        """A service with keys that lets one page in."""
        settings = guarded_settings(sqlite_url, tmp_path)
        with served(create_app(settings.model_copy(update={"cors_origins": [PAGE]}))) as client:
            yield client

    def preflight(self, client: httpx.Client, **change: str) -> httpx.Response:
        headers = {
            "Origin": PAGE,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
            **change,
        }
        return client.options("/v1/models", headers=headers)

    def test_a_preflight_needs_no_key(self, shared: httpx.Client) -> None:
        answer = self.preflight(shared)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert "Idempotency-Key" in answer.headers["access-control-allow-headers"]
        assert "access-control-allow-credentials" not in answer.headers
        assert answer.headers["x-request-id"]
        assert STRICT.items() <= answer.headers.items()

    @pytest.mark.parametrize(
        "change",
        [
            {"Origin": "https://elsewhere.example.com"},
            {"Origin": f"{PAGE}.elsewhere.example.com"},
            {"Origin": "null"},
            {"Access-Control-Request-Method": "TRACE"},
            {"Access-Control-Request-Headers": "cookie"},
        ],
    )
    def test_others_are_refused(self, shared: httpx.Client, change: dict[str, str]) -> None:
        answer = self.preflight(shared, **change)
        assert answer.status_code == 400
        if "Origin" in change:
            assert "access-control-allow-origin" not in answer.headers

    def test_a_page_reads_answers_refusals_and_failures(
        self, shared: httpx.Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        own = {"Origin": PAGE}
        admin = bearer("x" * 40)
        answers = [shared.get("/v1/models", headers={**own, **admin})]
        answers.append(shared.get("/v1/models", headers=own))
        broken(monkeypatch)
        answers.append(shared.get("/v1/models", headers={**own, **admin}))
        assert [answer.status_code for answer in answers] == [200, 401, 500]
        for answer in answers:
            assert answer.headers["access-control-allow-origin"] == PAGE
            assert "X-Request-Id" in answer.headers["access-control-expose-headers"]
        other = {**admin, "Origin": "https://elsewhere.example.com"}
        answer = shared.get("/v1/models", headers=other)
        assert "access-control-allow-origin" not in answer.headers

    @pytest.mark.parametrize(
        "origin",
        ["*", "dashboard.example.com", f"{PAGE}/", f"{PAGE}/page", "https://*.com", "null"],
    )
    def test_only_exact_origins_are_taken(self, origin: str) -> None:
        with pytest.raises(ValidationError, match="cors_origins"):
            Settings.model_validate({"cors_origins": [origin]})

    def test_as_a_list_in_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PRIORSHIFT_CORS_ORIGINS", f'["{PAGE}", "http://localhost:3000"]')
        assert Settings().cors_origins == [PAGE, "http://localhost:3000"]
