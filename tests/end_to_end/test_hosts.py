"""A page of elsewhere against a server process without keys: DNS rebinding, foreign origins."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.http import scopes
from tests.end_to_end.processes import free_port, ready

SERVE = [sys.executable, "-m", "app.cli", "serve", "--log-level", "error"]
ALLOWED = ["Priors.Example.com", "10.1.2.3", "fd00::5", "app"]
DASHBOARD = "https://dashboard.example.com"
MODEL = {"name": "m", "classes": ["a", "b"], "source": {"priors": {"a": 0.5, "b": 0.5}}}


@dataclass(frozen=True)
class Answer:
    status: int
    head: str
    body: str


@dataclass(frozen=True)
class Process:
    """A running server, asked in so many words."""

    port: int

    def ask(
        self, line: str = "GET /v1/models HTTP/1.1", *headers: str, body: bytes = b""
    ) -> Answer:
        length = [f"Content-Length: {len(body)}"] if body else []
        head = "\r\n".join([line, *headers, *length, "Connection: close", "", ""])
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(head.encode("latin-1") + body)
            with connection.makefile("rb") as file:
                found = file.read().decode()
        told, _, content = found.partition("\r\n\r\n")
        return Answer(int(told.split()[1]), told, content)

    def get(self, host: str, *headers: str) -> Answer:
        return self.ask("GET /v1/models HTTP/1.1", f"Host: {host}", *headers)

    def post(self, *headers: str) -> Answer:
        own = f"Host: localhost:{self.port}", "Content-Type: application/json"
        # A name that is taken: it is read, judged and not written.
        return self.ask("POST /v1/models HTTP/1.1", *own, *headers, body=json.dumps(MODEL).encode())


@contextmanager
def serving(url: str, *words: str, **more: str) -> Iterator[Process]:
    port = free_port()
    process = subprocess.Popen(
        [*SERVE, "--port", str(port), *words],
        env={**os.environ, "PRIORSHIFT_DATABASE_URL": url, **more},
    )
    try:
        ready(f"http://127.0.0.1:{port}", process)
        yield Process(port)
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """Without keys, on loopback."""
    url = f"sqlite:///{tmp_path_factory.mktemp('hosts') / 'own.db'}"
    given = {**os.environ, "PRIORSHIFT_DATABASE_URL": url}
    subprocess.run([*SERVE[:3], "migrate"], env=given, check=True, stdout=subprocess.DEVNULL)
    named = {
        "PRIORSHIFT_ALLOWED_HOSTS": json.dumps(ALLOWED),
        "PRIORSHIFT_CORS_ORIGINS": json.dumps([DASHBOARD]),
    }
    with serving(url, **named) as process:
        assert process.post().status == 201
        yield process


def test_a_rebound_page_gets_nothing_from_any_route(local: Process) -> None:
    """Its Host, and as origin the same: for the browser all of it is one."""
    host = f"evil.example:{local.port}"
    values = {"name": "m", "version": "1", "alias": "a", "id": "0" * 32, "monitor": "m"}
    for method, path in sorted(scopes.RULES):
        address = path.format(**values, release="1", file="page.css")
        for more in ([f"Origin: http://{host}"], []):
            answer = local.ask(f"{method} {address} HTTP/1.1", f"Host: {host}", *more)
            assert answer.status == 421, (method, path, more)
            assert "PRIORSHIFT_ALLOWED_HOSTS" in answer.body
            assert '"a"' not in answer.body
    for method, address in (("GET", "/nothing"), ("TRACE", "/v1/models"), ("PUT", "/v1/models")):
        assert local.ask(f"{method} {address} HTTP/1.1", f"Host: {host}").status == 421


OWN = [
    "localhost",
    "LocalHost",
    "localhost.",
    "127.0.0.1",
    "127.9.8.7",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "priors.example.com",
    "PRIORS.EXAMPLE.COM.",
    "10.1.2.3",
    "[fd00::5]",
    "app",
]
OTHER = [
    "evil.example",
    "evil.example.",
    "localhost.evil.example",
    "localhost.localdomain",
    "127.0.0.1.evil.example",
    "evil-localhost",
    "localhost@evil.example",
    "localhost:80@evil.example",
    "evil.example#localhost",
    "evil.example/localhost",
    "localhost evil.example",
    "localhost,evil.example",
    "localhost:80:80",
    "localhost:http",
    "localhost..",
    "sub.priors.example.com",
    "10.1.2.4",
    "192.168.1.5",
    "0.0.0.0",
    "[::]",
    "[fd00::6]",
    "[::ffff:10.0.0.1]",
    "[localhost]",
    "::1",
    "[::1",
    "2130706433",
    "0x7f.1",
    "",
    ":8000",
    "*",
    "null",
    "localhost%00",
    "löcalhost",
]


@pytest.mark.parametrize("host", OWN)
def test_own_names_are_served_on_any_port(local: Process, host: str) -> None:
    for port in ("", f":{local.port}", ":1", ":"):
        assert local.get(host + port).status == 200


@pytest.mark.parametrize("host", OTHER)
def test_other_names_are_not(local: Process, host: str) -> None:
    assert local.get(host).status == 421
    assert local.get(host, f"Origin: http://{host}").status == 421


PIECES = st.sampled_from(["localhost", "127.0.0.1", "[::1]", "app", "evil.example", "::1", "10."])
CHARACTERS = st.text(st.sampled_from(".:@/#[]%,;\\ a0-_\t"), max_size=3)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(PIECES, CHARACTERS), min_size=1, max_size=4).map("".join))
def test_what_is_served_is_what_a_browser_means_by_it(local: Process, host: str) -> None:
    """By the parser of the standard library, where that finds a name at all."""
    answer = local.get(host)
    assert answer.status in (200, 421)
    if answer.status == 200:
        name = str(urlsplit(f"//{host.strip()}").hostname).removesuffix(".")
        assert name in ("localhost", "app") or ip_address(name).is_loopback


def test_the_address_of_an_absolute_form_counts(local: Process) -> None:
    evil, own = "evil.example", f"localhost:{local.port}"
    for target, host, status in (
        (f"http://{evil}/v1/models", own, 421),
        (f"http://{evil}:{local.port}/v1/models?limit=1", own, 421),
        (f"http://localhost@{evil}/v1/models", own, 421),
        (f"http://{own}/v1/models", evil, 200),
        ("http://[::1]/v1/models", evil, 200),
    ):
        assert local.ask(f"GET {target} HTTP/1.1", f"Host: {host}").status == status, target


def test_two_hosts_and_none(local: Process) -> None:
    line = "GET /v1/models HTTP/1.1"
    assert local.ask(line, "Host: localhost", "Host: evil.example").status == 421
    assert local.ask(line, "Host: evil.example", "Host: localhost").status == 421
    # No browser leaves it out; simple health checks do.
    assert local.ask("GET /livez HTTP/1.0").status == 200


def test_foreign_origins_are_refused_and_own_ones_served(local: Process) -> None:
    own = f"http://localhost:{local.port}"
    # 409: it was let in, and the name is taken.
    for origin, status in (
        (own, 409),
        (DASHBOARD, 409),
        ("http://evil.example", 403),
        (f"http://127.0.0.1:{local.port}", 403),
        ("http://localhost", 403),
        (f"http://localhost:{local.port + 1}", 403),
        (f"http://localhost:{local.port}.evil.example", 403),
        ("null", 403),
        ("", 403),
        (own.removeprefix("http://"), 403),
        (f"{DASHBOARD}.evil.example", 403),
    ):
        answer = local.post(f"Origin: {origin}")
        assert answer.status == status, origin
        read = local.get(f"localhost:{local.port}", f"Origin: {origin}")
        assert read.status == (403 if status == 403 else 200), origin
    assert local.post(f"Origin: {own}", "Origin: http://evil.example").status == 403
    assert local.post().status == 409


def test_a_browser_that_names_no_origin_says_where_a_write_comes_from(local: Process) -> None:
    for site, status in (
        ("cross-site", 403),
        ("same-site", 403),
        ("same-origin", 409),
        ("none", 409),
    ):
        assert local.post(f"Sec-Fetch-Site: {site}").status == status
        # A link on another page may lead here.
        assert local.get("localhost", f"Sec-Fetch-Site: {site}").status == 200


def test_preflights(local: Process) -> None:
    wanted = "Access-Control-Request-Method: POST"
    line, own = "OPTIONS /v1/models HTTP/1.1", f"Host: localhost:{local.port}"
    assert local.ask(line, own, f"Origin: {DASHBOARD}", wanted).status == 200
    refused = local.ask(line, own, "Origin: http://evil.example", wanted)
    assert refused.status == 400
    assert "access-control-allow-origin" not in refused.head.lower()


def test_a_person_sees_a_page_that_says_why(local: Process) -> None:
    answer = local.ask("GET / HTTP/1.1", "Host: evil.example", "Accept: text/html")
    assert answer.status == 421
    assert "<h1>This service does not know this name</h1>" in answer.body
    assert local.ask("GET / HTTP/1.1", "Host: localhost", "Accept: text/html").status == 200


def test_with_a_key_any_name_is_served_and_the_first_key_is_enough(sqlite_url: str) -> None:
    secret = {"PRIORSHIFT_KEY_SECRET": "a secret of the server's own"}
    with serving(sqlite_url, **secret) as process:
        for method in ("GET", "POST"):
            line = f"{method} /v1/api-keys HTTP/1.1"
            assert process.ask(line, "Host: evil.example").status == 421
        body = json.dumps({"name": "first", "scopes": ["admin"]}).encode()
        made = process.ask(
            "POST /v1/api-keys HTTP/1.1",
            "Host: localhost",
            "Content-Type: application/json",
            body=body,
        )
        assert made.status == 201
        key = json.loads(made.body)["key"]
        origin = "Origin: https://priors.example.com"
        assert process.get("priors.example.com", origin).status == 401
        assert process.get("priors.example.com", f"Authorization: Bearer {key}").status == 200


def test_who_listens_on_every_address_is_called_by_any_and_by_names_that_are_told(
    sqlite_url: str,
) -> None:
    """As in a container without keys: probes by address, a scrape by the service's name."""
    words = ["--host", "0.0.0.0", "--allow-anonymous", "--workers", "2"]
    with serving(sqlite_url, *words, PRIORSHIFT_ALLOWED_HOSTS='["app"]') as process:
        for _ in range(8):  # each worker knows
            for host, status in (
                ("app:8000", 200),
                ("10.244.0.17:8000", 200),
                ("[fd00::7]", 200),
                ("0.0.0.0", 200),
                ("evil.example", 421),
                ("application", 421),
            ):
                answer = process.ask("GET /metrics HTTP/1.1", f"Host: {host}")
                assert answer.status == status, host
        given = {**os.environ, "PRIORSHIFT_PORT": str(process.port)}
        assert subprocess.run([*SERVE[:3], "health"], env=given, check=False).returncode == 0


@pytest.mark.parametrize(
    "wrong", ['["app:8000"]', '["http://app"]', '["*.example.com"]', '[""]', '["a b"]', "app"]
)
def test_a_setting_that_is_no_name_is_one_line(sqlite_url: str, wrong: str) -> None:
    given = {
        **os.environ,
        "PRIORSHIFT_DATABASE_URL": sqlite_url,
        "PRIORSHIFT_ALLOWED_HOSTS": wrong,
    }
    found = subprocess.run(
        [*SERVE[:3], "keys", "list"], env=given, capture_output=True, text=True, check=False
    )
    assert found.returncode == 2
    assert "PRIORSHIFT_ALLOWED_HOSTS" in found.stderr
    assert "Traceback" not in found.stderr
