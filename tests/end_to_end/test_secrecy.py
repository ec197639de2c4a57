"""Nothing that a caller sends, and no password, is in any log."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from models_store.engine import connect
from tests.api.trained import rows
from tests.end_to_end.processes import free_port
from tests.end_to_end.values import (
    ADMIN,
    FEATURE,
    IDEMPOTENCY,
    LABEL,
    LEVEL,
    MARKS,
    PASSWORD,
    POSTERIOR,
    SECRET,
    SEGMENT,
)
from tests.patience import Deadline, patience

CLASSES = [LABEL, "other"]
BATCH: dict[str, Any] = {
    "posteriors": [[POSTERIOR, 1 - POSTERIOR]] * 60,
    "columns": CLASSES,
    "segment": {"planted": SEGMENT},
}
BASE = "/v1/models/planted"
FAULTY = "tests.end_to_end.faulty"


@dataclass(frozen=True)
class Told:
    """A service's output, once it has ended."""

    port: int
    path: Path

    def text(self) -> str:
        return self.path.read_text()

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text().splitlines()]


@contextmanager
def service(module: str, url: str, folder: Path) -> Iterator[Told]:
    """A process that tells all it can."""
    key = folder / "admin-key"
    key.write_text(ADMIN)
    told = Told(free_port(), folder / "output")
    environment = {
        **os.environ,
        "PRIORSHIFT_DATABASE_URL": url,
        "PRIORSHIFT_KEY_SECRET": SECRET,
        "PRIORSHIFT_ADMIN_KEY_FILE": str(key),
        "PRIORSHIFT_MAX_BODY_BYTES": "100000",
    }
    command = [sys.executable, "-m", module, "serve", "--port", str(told.port)]
    with told.path.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--log-level", "debug"], env=environment, stdout=output, stderr=output
        )
    try:
        listening(told.port, process)
        yield told
    finally:
        process.terminate()
        process.wait(timeout=patience(30))


def listening(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = Deadline(60)
    while not deadline.over():
        assert process.poll() is None, "the server ended"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the server did not start")


def trap(url: str) -> None:
    """Let the database refuse entries of the trail, in words that quote the row where it can."""
    statement = "ALTER TABLE audit ADD CONSTRAINT trap CHECK (false) NOT VALID"
    if url.startswith("sqlite"):
        statement = (
            "CREATE TRIGGER trap BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'trap'); END"
        )
    administer(url, statement)


def administer(url: str, statement: str) -> None:
    engine = connect(url)
    with engine.begin() as connection:
        connection.execute(sa.text(statement))
    engine.dispose()


def raw(port: int, sent: bytes) -> None:
    """What no client library sends; the connection ends before an answer is read."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(patience(1))
        with suppress(ConnectionError):
            connection.sendall(sent)
            connection.recv(10)


def successes(client: httpx.Client) -> str:
    """Requests that work; the key that they made."""
    features, labels = rows(60, CLASSES)
    features[0] = [FEATURE, LEVEL]
    training = {
        "features": features,
        "labels": labels,
        "feature_names": ["planted-amount", "planted-country"],
        "categorical": ["planted-country"],
        "learner": "logistic-regression",
    }
    source = {"validation": {"labels": labels, "posteriors": BATCH["posteriors"]}}
    model = {"name": "planted", "classes": CLASSES, "description": "planted", "source": source}
    retry = {"Idempotency-Key": IDEMPOTENCY}
    post = client.post
    made = post("/v1/api-keys", json={"name": "planted", "scopes": ["read", "estimate"]})
    answers = [
        made,
        post("/v1/models", json=model),
        post(f"{BASE}/versions", json={"source": {"training": training}}),
        post(f"{BASE}/versions/1/estimates", json=BATCH, headers=retry),
        post(f"{BASE}/versions/1/estimates", json=BATCH, headers=retry),
        post(f"{BASE}/versions/2/estimates", json={"features": features}),
        client.get(f"/v1/estimates?segment.planted={SEGMENT}"),
    ]
    assert [answer.status_code for answer in answers] == [201, 201, 201, 201, 201, 201, 200], [
        answer.text[:300] for answer in answers
    ]
    key: str = made.json()["key"]
    return key


def failures(client: httpx.Client, key: str) -> Iterator[tuple[int, httpx.Response]]:
    """Requests that are refused, each with its status."""
    estimates = f"{BASE}/versions/1/estimates"
    post = client.post
    retry = {"Idempotency-Key": IDEMPOTENCY}
    kind = {"Content-Type": "application/json"}
    mine = {"Authorization": f"Bearer {key}"}
    yield 409, post(estimates, json={**BATCH, "method": "mle"}, headers=retry)
    yield 422, post(estimates, json={**BATCH, "posteriors": [[POSTERIOR, POSTERIOR]]})
    yield 422, post(estimates, json={**BATCH, "columns": ["planted", LABEL]})
    yield 409, post(estimates, json={"features": [[FEATURE, LEVEL]]})
    yield 422, post(f"{BASE}/versions/2/estimates", json={"features": [[LEVEL, FEATURE]]})
    yield 400, post(estimates, content=f'{{"planted": {POSTERIOR}'.encode(), headers=kind)
    yield 400, post(estimates, content=b"planted", headers={"Content-Type": "application/x-npy"})
    yield 415, post(estimates, content=b"planted", headers={"Content-Type": "text/planted"})
    yield 413, post(estimates, content=LABEL.encode() * 20_000, headers=kind)
    yield 409, post("/v1/models", json={"name": "planted", "classes": CLASSES})
    yield 404, client.get("/planted?planted=planted")
    yield 405, client.delete("/v1/models?planted=planted")
    yield 422, client.get(f"{BASE}?planted=planted")
    yield 404, client.get(f"/v1/models/{LABEL}", headers={"X-Request-Id": "planted/"})
    yield 403, client.delete(BASE, headers=mine)
    yield 401, client.get(BASE, headers={"Authorization": "Bearer planted-wrong"})
    yield 401, client.get(BASE, headers={"Authorization": "Basic cGxhbnRlZA=="})


@pytest.fixture
def secret_url(database_url: str) -> Iterator[str]:
    """A database whose address holds a password where it can."""
    url = make_url(database_url)
    if url.get_backend_name() == "postgresql":
        url = url.set(password=PASSWORD)
    yield url.render_as_string(hide_password=False)
    if url.get_backend_name() == "postgresql":
        administer(database_url, "ALTER TABLE audit DROP CONSTRAINT IF EXISTS trap")


def test_no_log_holds_what_was_sent(secret_url: str, tmp_path: Path) -> None:
    with service(FAULTY, secret_url, tmp_path) as told:
        admin = {"Authorization": f"Bearer {ADMIN}"}
        base = f"http://127.0.0.1:{told.port}"
        with httpx.Client(base_url=base, headers=admin, timeout=patience(60)) as client:
            key = successes(client)
            for status, answer in failures(client, key):
                assert answer.status_code == status, answer.text
            estimates = f"{BASE}/versions/1/estimates"
            inside = client.post(estimates, json={**BATCH, "method": "em"})
            trap(secret_url)
            database = client.post(estimates, json=BATCH)
        head = f"GET {BASE}?planted HTTP/1.1\r\nHost: planted\r\nAuthorization: Bearer {ADMIN}\r\n"
        socketed = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        raw(told.port, f"{head}{socketed}Sec-WebSocket-Key: cGxhbnRlZA==\r\n\r\n".encode())
        raw(told.port, f"planted {LABEL} HTTP/planted\r\n\r\n".encode())
        raw(told.port, f"{head}Planted: {'planted' * 20_000}\r\n\r\n".encode())
    for answer in (inside, database):
        assert answer.status_code == 500
        assert "server" not in answer.headers
        assert not [mark for mark in (*MARKS, "Traceback", ".py") if mark in answer.text]
    text, lines = told.text(), told.lines()
    assert not [mark for mark in (*MARKS, key) if mark in text.lower()]
    failed = [line for line in lines if line["event"] == "unexpected error"]
    named = [line["request_id"] for line in failed]
    assert named == [answer.headers["x-request-id"] for answer in (inside, database)]
    assert "KeyError\n" in failed[0]["exception"]
    assert failed[0]["exception"].endswith("RuntimeError")
    assert "sqlalchemy.exc.IntegrityError" in failed[1]["exception"]
    requests = [line for line in lines if line["event"] == "request"]
    assert len(requests) > 25
    assert {line["route"] for line in requests} >= {
        None,
        "/v1/models/{name}",
        "/v1/models/{name}/versions/{version}/estimates",
    }
    assert {line["event"] for line in lines} >= {"started", "stopped"}


def test_an_unreachable_database_is_logged_without_its_password(tmp_path: Path) -> None:
    url = f"postgresql://planted:{PASSWORD}@127.0.0.1:1/planted"
    with service("app.cli", url, tmp_path) as told:
        for path, headers in (("/readyz", {}), ("/v1/models", {"Authorization": "Bearer planted"})):
            answer = httpx.get(
                f"http://127.0.0.1:{told.port}{path}", headers=headers, timeout=patience(30)
            )
            assert answer.status_code == 503
            assert "planted" not in answer.text
    assert "planted" not in told.text()
    told_of = [line for line in told.lines() if line["event"] == "request"]
    assert [line["level"] for line in told_of] == ["warning", "warning"]
    assert [line["problem"] for line in told_of] == ["not-ready", "unavailable"]


WRONG_URLS = [
    f"postgresql://me:{PASSWORD}/@:x/y",
    f"postgresql://me:{PASSWORD}@host:{PASSWORD}/y",
    f"mysql://me:{PASSWORD}@host/y",
    PASSWORD,
]
NOBODY_ANSWERS = f"postgresql://me:{PASSWORD}@127.0.0.1:1/y"
"""A server waits for such a database."""


@pytest.mark.parametrize(
    ("command", "url"),
    [
        ("migrate", NOBODY_ANSWERS),
        *((command, url) for command in ("migrate", "serve") for url in WRONG_URLS),
    ],
)
def test_a_wrong_address_is_told_without_its_password(command: str, url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", command],
        env={**os.environ, "PRIORSHIFT_DATABASE_URL": url, "PRIORSHIFT_HOST": "0.0.0.0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(60),
    )
    assert done.returncode != 0
    assert PASSWORD not in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["MAX_CLASSES", "LOG_FORMAT", "CORS_ORIGINS"])
def test_a_wrong_setting_is_told_without_the_others(name: str) -> None:
    given = {f"PRIORSHIFT_{name}": "planted", "PRIORSHIFT_KEY_SECRET": SECRET}
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "serve"],
        env={**os.environ, **given, "PRIORSHIFT_DATABASE_URL": f"postgresql://a:{PASSWORD}@b/c"},
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(60),
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"priorshift: PRIORSHIFT_{name}")
    assert len(done.stderr.splitlines()) == 1
    assert "planted" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
