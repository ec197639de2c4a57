"""Names in the environment, and the first start on a database that is not there."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.engine import make_url

from app.cli import cli, main
from app.settings import OF_COMMANDS, PREFIX, Misnamed, Settings, require_names
from models_store import schema
from models_store.engine import connect
from models_store.store import Store
from tests.end_to_end.processes import free_port, ready

ROOT = Path(__file__).parent.parent
PRIORSHIFT = [sys.executable, "-m", "app.cli"]
SECRET = "hunter2hunter2hunter2"
KNOWN = sorted([*map(str.upper, Settings.model_fields), *OF_COMMANDS])
WRITTEN = (
    "README.md", "Dockerfile", "docker-compose.yml", "Makefile", ".ci/*", "docs/**/*.md",
    "deploy/**/*.*", "app/**/*.py", "models_store/**/*.py", "benchmarks/**/*.py", "tests/**/*.py",
    "clients/**/*.md", "clients/**/*.py",
)  # fmt: skip


def clean(**more: str) -> dict[str, str]:
    """This environment without settings of the service."""
    return {k: v for k, v in os.environ.items() if not k.startswith(PREFIX)} | more


Run = Callable[..., tuple[object, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command within this process: its status, and what it printed."""

    def command(given: dict[str, str], *words: str) -> tuple[object, str, str]:
        for name in set(os.environ) - set(given):
            monkeypatch.delenv(name)
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("sys.argv", ["priorshift", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        return ended.value.code, shown.out, shown.err

    return command


def test_every_name_that_is_written_down_is_known() -> None:
    found: dict[str, Path] = {}
    for pattern in WRITTEN:
        for path in ROOT.glob(pattern):
            if path != Path(__file__) and path.is_file() and ".venv" not in path.parts:
                names = re.findall(rf"{PREFIX}([A-Za-z0-9_]*[A-Za-z0-9])\b", path.read_text())
                found |= dict.fromkeys(names, path)
    assert len(found) > len(Settings.model_fields)
    assert {name: path for name, path in found.items() if name not in KNOWN} == {}


def test_every_option_that_the_environment_sets_is_known() -> None:
    def options(group: Any) -> set[str]:
        if hasattr(group, "commands"):
            return set().union(*map(options, group.commands.values()))
        return {str(parameter.envvar) for parameter in group.params if parameter.envvar}

    assert options(typer.main.get_command(cli)) == {PREFIX + name for name in OF_COMMANDS}


@given(st.sampled_from(KNOWN), st.integers(0, 40), st.sampled_from(["", "X", "_"]))
def test_a_slip_is_refused_with_what_was_meant(name: str, place: int, instead: str) -> None:
    at = place % len(name)
    wrong = name[:at] + instead + name[at + 1 :]
    for case in (str.upper, str.lower):
        require_names({case(PREFIX + name): "x"})
        if wrong not in KNOWN and len(name) > 4:
            with pytest.raises(Misnamed) as refused:
                require_names({case(PREFIX + wrong): SECRET, "PATH": "/bin", "OTHER": "x"})
            (message,) = refused.value.messages
            assert message.startswith(case(PREFIX + wrong))
            assert "did you mean PRIORSHIFT_" in message
            assert SECRET not in message


LINKS = {
    "SERVICE_HOST": "10.0.0.1", "SERVICE_PORT": "80", "SERVICE_PORT_HTTP": "80",
    "PORT_80_TCP": "tcp://10.0.0.1:80", "PORT_80_TCP_PROTO": "tcp", "PORT_80_TCP_PORT": "80",
    "PORT_80_TCP_ADDR": "10.0.0.1",
}  # fmt: skip
"""What Kubernetes sets for a Service, after its name; and ``PORT``."""


def test_what_kubernetes_sets_is_no_slip() -> None:
    require_names({f"{PREFIX}{name}": value for name, value in LINKS.items()})
    other = {f"{PREFIX}API_{name}": value for name, value in LINKS.items()}
    require_names({**other, f"{PREFIX}API_PORT": "tcp://10.0.0.1:80"})
    with pytest.raises(Misnamed, match="enableServiceLinks: false"):
        require_names({f"{PREFIX}PORT": "tcp://10.0.0.1:80"})
    with pytest.raises(Misnamed, match="did you mean PRIORSHIFT_PORT"):
        require_names({f"{PREFIX}A_PORT": "80"})


@pytest.mark.parametrize("words", [["serve"], ["history", "cards"], ["keys", "list"], ["migrate"]])
def test_no_command_starts_with_a_name_that_means_nothing(
    run: Run, tmp_path: Path, words: list[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    wrong = {"PRIORSHIFT_KEY_SECRETS": SECRET, "PRIORSHIFT_ULR": SECRET}
    status, out, error = run(clean(PRIORSHIFT_DATABASE_URL=url, **wrong), *words)
    assert (status, out) == (2, "")
    assert error.splitlines() == [
        "priorshift: PRIORSHIFT_KEY_SECRETS is no setting of this release; "
        "did you mean PRIORSHIFT_KEY_SECRET?",
        "priorshift: PRIORSHIFT_ULR is no setting of this release; did you mean PRIORSHIFT_URL?",
    ]
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize(
    "given",
    [
        {"PRIORSHIFT_KEY": f"{SECRET}\n"},
        {"PRIORSHIFT_KEY": f"{SECRET}é"},
        {"PRIORSHIFT_URL": f"http://me:{SECRET}@127.0.0.1:1"},
        {"PRIORSHIFT_URL": f"{SECRET}"},
        {"PRIORSHIFT_URL": f"http://me:{SECRET}@127.0.0.1:port"},
    ],
)
def test_what_opens_a_service_is_not_printed(run: Run, given: dict[str, str]) -> None:
    status, out, error = run(clean(**given), "history", "cards")
    assert status in (1, 2)
    assert len(error.splitlines()) == 1
    assert SECRET not in out + error


def test_the_first_start_makes_the_database(tmp_path: Path) -> None:
    port, url = free_port(), f"sqlite:///{tmp_path / 'new.db'}"
    process = subprocess.Popen(
        [*PRIORSHIFT, "serve", "--port", str(port)],
        env=clean(PRIORSHIFT_DATABASE_URL=url),
        stderr=subprocess.PIPE,
    )
    try:
        ready(f"http://127.0.0.1:{port}", process)
        body = {"name": "cards", "classes": ["a", "b"]}
        made = httpx.post(f"http://127.0.0.1:{port}/v1/models", json=body)
        assert made.status_code == 201
    finally:
        process.terminate()
        error = process.communicate(timeout=60)[1].decode()
    assert error.count("database created") == 1
    engine = connect(url)
    assert not schema.create(engine)
    with Store(engine).read() as unit:
        assert unit.models.get("cards").classes == ("a", "b")
    engine.dispose()


def test_an_older_database_is_left_to_whoever_migrates(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'old.db'}"
    engine = connect(url)
    schema.migrate(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    status, _, error = run(clean(PRIORSHIFT_DATABASE_URL=url), "serve", "--port", "0")
    assert status == 2
    assert "type priorshift migrate" in error
    assert schema.current(engine) == "0001"
    engine.dispose()


def test_an_empty_server_database_is_left_to_whoever_migrates(postgresql: str) -> None:
    empty = f"empty{uuid4().hex}"
    engine = connect(postgresql).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {empty}")
        there = make_url(postgresql).set(database=empty).render_as_string(hide_password=False)
        other = connect(there)
        assert not schema.create(other)
        assert schema.current(other) is None
        other.dispose()
        connection.exec_driver_sql(f"DROP DATABASE {empty}")
    engine.dispose()
