"""The health check: what it answers, and that it imports no more than a bare request."""

import os
import re
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from app import health
from app.cli import cli
from tests.end_to_end.processes import free_port

ROOT = Path(__file__).parent.parent
OWN = {"app", "app.__main__", "app.health"}
READY = b"HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n" + b'{"status":"ready"}'
ENTRY = "import sys; from app.__main__ import main; main()"
"""What the installed command does."""


@contextmanager
def answering(answer: bytes, hold: float = 0.0) -> Iterator[tuple[int, list[bytes]]]:
    """A port where every connection gets these bytes, and the first lines that came there."""
    lines: list[bytes] = []
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)

        def serve() -> None:
            while not done.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                with connection:
                    lines.append(connection.recv(1 << 16).split(b"\r\n")[0])
                    done.wait(hold)
                    try:
                        connection.sendall(answer)
                    except OSError:
                        continue

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1], lines
        finally:
            done.set()
            thread.join()


def run(*words: str, code: str = ENTRY, **more: str) -> "subprocess.CompletedProcess[str]":
    environment = {k: v for k, v in os.environ.items() if k != "PRIORSHIFT_PORT"}
    return subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code, *words],
        env={**environment, **more},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def imported(done: "subprocess.CompletedProcess[str]") -> set[str]:
    return set(re.findall(r"^import time:.*\| +(\S+)$", done.stderr, re.MULTILINE))


def test_it_imports_nothing_that_a_bare_request_does_not() -> None:
    bare = "from urllib.request import urlopen; import sys; print(urlopen(sys.argv[1]).read())"
    with answering(READY) as (port, _):
        ours = run("health", "--port", str(port))
        theirs = run(f"http://127.0.0.1:{port}/readyz", code=bare)
    assert (ours.returncode, theirs.returncode) == (0, 0)
    assert "app.health" in imported(ours)
    assert imported(ours) - OWN <= imported(theirs)


def test_the_installed_command_begins_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"priorshift": "app.__main__:main"}


def test_the_command_line_loads_the_application_only_to_run_it() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "health" in done.stdout
    loaded = {name.split(".")[0] for name in imported(done)}
    assert not loaded & {"alembic", "fastapi", "models_store", "numpy", "pydantic", "sqlalchemy"}


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (READY, 0),
        (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}", 1),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 1),
        (b"HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", 1),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"\xff" * (health.MOST_BYTES * 3), 0),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort", 0),
        (b"SSH-2.0-OpenSSH_9.2\r\n", 1),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 1000 + b"\r\n", 1),
        (b"HTTP/1.1 " + b"9" * 100_000, 1),
        (b"", 1),
    ],
    ids=lambda given: str(given)[:24],
)
def test_only_200_is_well(answer: bytes, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(answer) as (port, lines):
        assert health.check(port, "/readyz") == status
    assert lines == [b"GET /readyz HTTP/1.1"]
    told = capsys.readouterr()
    assert told.out or told.err
    assert len(told.out) <= health.MOST_BYTES + 1


def test_nobody_there_and_nobody_answering_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert health.check(free_port(), "/readyz") == 1
    monkeypatch.setattr(health, "SECONDS", 0.2)
    with answering(READY, hold=30) as (port, _):
        assert health.check(port, "/readyz") == 1
    assert re.findall("no answer: (.*)", capsys.readouterr().err) == [
        "[Errno 111] Connection refused",
        "timed out",
    ]


def test_no_proxy_stands_between() -> None:
    with answering(READY) as (port, lines):
        proxies = dict.fromkeys(("http_proxy", "HTTP_PROXY", "ALL_PROXY"), "http://127.0.0.1:1")
        assert run("health", **proxies, PRIORSHIFT_PORT=str(port)).returncode == 0
    assert lines == [b"GET /readyz HTTP/1.1"]


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ([], (8000, "/readyz")),
        (["--port", "1"], (1, "/readyz")),
        (["--port=65535", "--path", "/a"], (65535, "/a")),
        (["--path=/a?b=c"], (8000, "/a?b=c")),
    ],
)
def test_health_checks_of_containers_take_the_short_way(
    words: list[str], asked: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PRIORSHIFT_PORT", raising=False)
    assert health.asked(words) == asked


WORDS = [
    *("--port", "PORT", "-1", "0", "65536", "٣", "1_0", " 80", ""),
    *("--path", "/", "/health?a=1", "x", "/ö", "/ /", "--help", "health"),
]


def joined(words: list[str]) -> list[str]:
    return [f"--port={words[0]}", *words[1:]]


words = st.lists(st.sampled_from(WORDS), max_size=4)


@settings(deadline=None, max_examples=60)
@given(words | words.filter(bool).map(joined))
def test_the_short_way_is_that_of_the_command_line(words: list[str]) -> None:
    with answering(READY) as (port, lines):
        environment = {"PRIORSHIFT_PORT": str(port)}
        given = [word.replace("PORT", str(port)) for word in words]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PRIORSHIFT_PORT", str(port))
            asked = health.asked(given)
        found = CliRunner(env=environment).invoke(cli, ["health", *given])
    if asked is None:
        # Help, a mistake told, or what the command line reads more liberally: 1_0 is 10 there.
        assert isinstance(found.exception, (SystemExit, ValueError, type(None)))
    elif asked[0] == port:
        assert found.exit_code == 0
        assert lines == [f"GET {asked[1]} HTTP/1.1".encode()]
    else:
        assert found.exit_code == 1
        assert not lines
