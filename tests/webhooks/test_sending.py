"""One attempt, against receivers that behave and receivers that do not."""

import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from app.webhooks import sending
from app.webhooks.addresses import Allowed
from app.webhooks.sending import Outcome, Sender
from app.webhooks.urls import parse
from tests.patience import patience
from tests.webhooks.receivers import raw, receiving
from tests.webhooks.test_addresses import resolving

LOCAL = Allowed.of(["127.0.0.1", "hooks.internal", "other.internal"])
CERTIFICATES = ssl.create_default_context()
BODY = b'{"type":"webhook.test"}'


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "SECONDS", patience(0.5))


def post(
    url: str, allowed: Allowed = LOCAL, certificates: ssl.SSLContext = CERTIFICATES
) -> Outcome:
    return Sender(allowed, certificates).post(parse(url), {"webhook-id": "msg_1"}, BODY)


def test_what_is_sent_arrives_as_it_is() -> None:
    with receiving(lambda received: (202, {"Retry-After": "7"})) as receiver:
        outcome = post(f"{receiver.base}/a/b?c=%20d")
    assert (outcome.status, outcome.error, outcome.retry_after) == (202, None, "7")
    (got,) = receiver.got
    assert got.path == "/a/b?c=%20d"
    assert got.body == BODY
    assert got.headers == {
        "host": f"127.0.0.1:{receiver.port}",
        "webhook-id": "msg_1",
        "content-length": str(len(BODY)),
    }


def test_redirects_are_not_followed() -> None:
    with receiving(lambda received: (302, {"Location": "http://169.254.169.254/"})) as receiver:
        assert post(receiver.base).status == 302
    assert len(receiver.got) == 1


def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as receiver, receiving() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.base)
        assert post(receiver.base).status == 204
    assert proxy.got == []


def test_one_that_does_not_answer_is_left(brief: None) -> None:
    def hang(connection: socket.socket) -> None:
        while connection.recv(65536):
            pass

    with raw(hang) as base:
        assert post(base).error == "timeout"


def test_one_that_drips_its_headers_is_left(brief: None) -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            connection.sendall(b"X: y\r\n")
            time.sleep(0.05)

    with raw(drip) as base:
        began = time.monotonic()
        assert post(base).error == "timeout"
        assert time.monotonic() - began < patience(5)


@pytest.mark.parametrize("pause", [0.0, 0.05])
def test_an_answer_without_end_is_not_read(brief: None, pause: float) -> None:
    sent = 0

    def flood(connection: socket.socket) -> None:
        nonlocal sent
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            sent += connection.send(b"x" * (1024 if pause else 65536))
            time.sleep(pause)

    with raw(flood) as base:
        outcome = post(base)
    assert (outcome.status, outcome.error) == (200, None)
    assert sent < 50_000_000


def test_what_is_not_http(brief: None) -> None:
    def greet(connection: socket.socket) -> None:
        connection.sendall(b"220 mail.example ESMTP\r\n\r\n")
        while connection.recv(65536):
            pass

    with raw(greet) as base:
        assert post(base).error == "not HTTP"
    with raw(lambda connection: None) as base:
        assert post(base).error in ("not HTTP", "connection lost")
    assert post(base).error == "cannot connect"


def test_endless_headers_are_not_collected(brief: None) -> None:
    def flood(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            connection.sendall(b"y" * 65536)

    with raw(flood) as base:
        assert post(base).error in ("not HTTP", "timeout")


class TestNames:
    def test_the_address_that_was_checked_is_the_one_that_is_used(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A name that means another address the second time is not asked a second time."""
        answers = iter([["127.0.0.1"], ["169.254.169.254"]])
        names = {"127.0.0.1": ["127.0.0.1"]}
        with receiving() as receiver:
            asked = resolving(
                monkeypatch, lambda host: names[host] if host in names else next(answers)
            )
            assert post(f"http://hooks.internal:{receiver.port}/").status == 204
            assert asked.count("hooks.internal") == 1
            assert receiver.got[0].headers["host"] == f"hooks.internal:{receiver.port}"
            refused = post(f"http://hooks.internal:{receiver.port}/")
        assert refused.error is not None
        assert refused.error.startswith("refused:")

    def test_one_that_leads_inside_by_now_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with receiving() as receiver:
            resolving(monkeypatch, lambda host: ["127.0.0.1"])
            refused = post(f"https://hooks.example.com:{receiver.port}/", Allowed())
        assert (refused.status, receiver.got) == (None, [])
        assert "refused" in str(refused.error)

    def test_http_is_refused_when_the_operator_takes_the_host_back(self) -> None:
        with receiving() as receiver:
            assert "refused" in str(post(receiver.base, Allowed()).error)
        assert receiver.got == []

    def test_the_next_address_is_tried(self, monkeypatch: pytest.MonkeyPatch) -> None:
        allowed = Allowed.of(["hooks.internal"])
        with receiving() as receiver:
            resolving(
                monkeypatch,
                lambda host: [host] if host[0] == "1" else ["127.0.0.2", "127.0.0.1"],
            )
            assert post(f"http://hooks.internal:{receiver.port}/", allowed).status == 204

    def test_a_name_that_nobody_knows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def unknown(host: str) -> list[str]:
            raise socket.gaierror

        resolving(monkeypatch, unknown)
        assert post("https://hooks.internal/").error == "host unknown"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of hooks.internal, with its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl here")
    folder = tmp_path_factory.mktemp("tls")
    key, path, both = folder / "key.pem", folder / "certificate.pem", folder / "both.pem"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-keyout", str(key), "-out", str(path), "-days", "2"),
            *("-subj", "/CN=hooks.internal", "-addext", "subjectAltName=DNS:hooks.internal"),
        ],
        check=True,
        capture_output=True,
    )
    both.write_text(key.read_text() + path.read_text())
    return both


class TestTls:
    def test_the_name_is_verified_though_the_address_is_dialled(
        self, certificate: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        trusted = ssl.create_default_context(cafile=str(certificate))
        with receiving(certificate=str(certificate)) as receiver:
            resolving(monkeypatch, lambda host: ["127.0.0.1"])
            hooks = f"https://hooks.internal:{receiver.port}/"
            assert post(hooks, certificates=trusted).status == 204
            other = f"https://other.internal:{receiver.port}/"
            assert str(post(other, certificates=trusted).error).startswith("TLS")
            assert str(post(hooks).error).startswith("TLS")
        assert len(receiver.got) == 1
