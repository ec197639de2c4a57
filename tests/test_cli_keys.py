"""Keys from the command line, and where the service refuses to listen."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.access.gate import new_key
from models_store.engine import connect
from models_store.store import Store
from tests.end_to_end.processes import caller, free_port, ready
from tests.patience import patience

PRIORSHIFT = [sys.executable, "-m", "app.cli"]


def environment(url: str, **more: str) -> dict[str, str]:
    return {**os.environ, "PRIORSHIFT_DATABASE_URL": url, **more}


def run(given: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*PRIORSHIFT, *words],
        env=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(60),
    )


def test_roots_of_keys_from_the_command_line(sqlite_url: str) -> None:
    given = environment(sqlite_url, PRIORSHIFT_KEY_SECRET="0123456789abcdef0123456789abcdef")
    for words, shown in (
        ([], "*"),
        (["--model", "cards"], "cards  roots: none"),
        (["--model", "cards", "--root", "lake", "--root", "day"], "cards  roots: lake,day"),
        (["--root", "lake"], "*  roots: lake"),
        (["--model", "cards", "--all-roots"], "cards"),
    ):
        made = run(given, "keys", "create", "--scope", "estimate", *words)
        assert made.returncode == 0, made.stderr
        listed = run(given, "keys", "list").stdout.splitlines()[0]
        assert listed.endswith(f"estimate  {shown}"), words
    both = run(given, "keys", "create", "--scope", "read", "--root", "a", "--all-roots")
    assert both.returncode == 2


def test_the_first_key_comes_from_the_command_line(sqlite_url: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("0123456789abcdef0123456789abcdef\n")
    given = environment(sqlite_url, PRIORSHIFT_KEY_SECRET_FILE=str(secret))
    refused = run(given, "serve", "--host", "0.0.0.0", "--port", str(free_port()))
    assert refused.returncode == 2
    assert "--allow-anonymous" in refused.stderr
    made = run(given, "keys", "create", "--scope", "admin", "--name", "ops", "--days", "1")
    assert made.returncode == 0, made.stderr
    key = made.stdout.strip()
    assert len(key) == 43
    listed = run(given, "keys", "list").stdout
    assert f"{key[:8]}…  ops  admin  *" in listed
    assert key not in listed
    port = free_port()
    process = subprocess.Popen(
        [*PRIORSHIFT, "serve", "--host", "0.0.0.0", "--port", str(port)],
        env=given,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    base = f"http://127.0.0.1:{port}"
    try:
        ready(base, process)
        headers = {"Authorization": f"Bearer {key}"}
        with caller(base) as client:
            assert client.get("/v1/models").status_code == 401
            assert client.get("/v1/models", headers=headers).status_code == 200
            entries = client.get("/v1/audit", headers=headers).json()["items"]
            made_by = [(entry["action"], entry["key_name"]) for entry in entries]
            assert made_by == [("keys create", "command-line")]
            assert run(given, "keys", "revoke", listed.split()[0]).returncode == 0
            client.get("/livez")
    finally:
        process.terminate()
        process.wait(timeout=patience(30))
    assert "revoked" in run(given, "keys", "list").stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["keys", "create", "--scope", "write"], "scopes are read, estimate, register, admin"),
        (["keys", "create", "--scope", "admin"], "PRIORSHIFT_KEY_SECRET"),
        (
            ["keys", "create", "--scope", "read", "--scope", "admin", "--model", "cards"],
            "--model does not go with the scope admin",
        ),
        (["keys", "revoke", "nothing"], "there is no API key"),
    ],
)
def test_mistakes_are_one_line(sqlite_url: str, words: list[str], told: str) -> None:
    secret = {} if words[-1] == "admin" else {"PRIORSHIFT_KEY_SECRET": "0123456789abcdef"}
    found = run(environment(sqlite_url, **secret), *words)
    assert found.returncode == 2
    assert told in " ".join(found.stderr.split())
    assert "Traceback" not in found.stderr


def test_names_from_before_do_not_control_a_terminal(sqlite_url: str) -> None:
    """What was kept before there were rules for names is shown, not obeyed."""
    given = environment(sqlite_url, PRIORSHIFT_KEY_SECRET="0123456789abcdef0123456789abcdef")
    for bad in ("\x1b[2Jred", "\u202eder", "a\u200bb"):
        refused = run(given, "keys", "create", "--scope", "read", "--name", bad)
        assert refused.returncode == 2
        assert "leave it out" in " ".join(refused.stderr.split())
        assert not set("\x1b\u202e\u200b") & set(refused.stderr)
        store = Store(connect(sqlite_url))
        with store.write() as unit:
            unit.keys.add(new_key(b"s" * 16, bad, ["read"], None, None)[1])
        store.close()
    listed = run(given, "keys", "list").stdout
    assert not set("\x1b\u202e\u200b") & set(listed)
    assert len(listed.splitlines()) == 3
