"""Whatever names and answers hold, every command shows it as words: no markup, no codes."""

import json
import logging
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

from app import logs
from app.cli import cli, main
from app.console.terminal import plain
from app.main import create_app
from app.settings import Settings
from tests.conftest import served
from tests.console.names import NAMES, unseen
from tests.jobs.places import over

HALF = "\ud83d"
"""Half of a pair, which JSON can hold and no encoding."""
PLAIN = [f"class {k:02}" for k in range(len(NAMES))]
LABEL = "tru[/nope]th"
HOSTILE = " ".join(NAMES)
TEXTS = {"message", "reason", "detail", "model", "method", "path", "output", "code", "pointer"}
COLOURS = re.compile(r"\x1b\[([0-9;]*m|\?25[lh]|[0-9]*[AK])|\r")
"""What Rich itself sends to a terminal."""


@dataclass
class Place:
    """A service on a folder of files, another whose answers are hostile, and its database."""

    folder: Path
    database: Path
    client: httpx.Client
    port: int
    job: str


def mangled(found: Any) -> Any:
    """An answer with something at the end of every text that is meant for people."""
    if isinstance(found, list):
        return [mangled(item) for item in found]
    if not isinstance(found, dict):
        return found
    return {
        name: f"{item} {HOSTILE}{HALF}"
        if name in TEXTS and isinstance(item, str)
        else mangled(item)
        for name, item in found.items()
    }


@contextmanager
def between(client: httpx.Client) -> Iterator[int]:
    """The port of a server that answers what a service does, mangled."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            kept = {k: self.headers[k] for k in ("Content-Type", "Accept") if k in self.headers}
            if self.path.endswith("/events"):
                status, body = 404, b"{}"
            else:
                found = client.request(self.command, self.path, content=content, headers=kept)
                status, body = found.status_code, found.content
                if "json" in found.headers["content-type"]:
                    body = json.dumps(mangled({**found.json(), "note": HOSTILE + HALF})).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Nowhere."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def rows(folder: Path) -> None:
    """Rows of one class for each name, with their labels and a column of groups."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, len(NAMES), 600)
    scores = rng.dirichlet(np.ones(len(NAMES)), 600) + 2 * np.eye(len(NAMES))[labels]
    scores /= scores.sum(axis=1, keepdims=True)
    columns = {name: scores[:, k] for k, name in enumerate(NAMES)}
    truth = [NAMES[k] for k in labels]
    pq.write_table(pa.table({**columns, LABEL: truth}), folder / "rows.parquet")
    groups = [NAMES[k % 2 * 2] for k in range(600)]
    pq.write_table(pa.table({**columns, "group": groups}), folder / "grouped.parquet")


def rename(database: Path) -> None:
    """Give the classes the names that a release without rules for names would have kept."""
    with closing(sqlite3.connect(database)) as connection, connection:
        for table, column in (("models", "classes"), ("versions", "derived")):
            for key, text in connection.execute(f"SELECT id, {column} FROM {table}").fetchall():
                for name, plain_name in zip(NAMES, PLAIN, strict=True):
                    text = text.replace(json.dumps(plain_name), json.dumps(name))
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE id = ?", (text, key))


@pytest.fixture(scope="module")
def place(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("hostile")
    database = folder / "priors.db"
    database.write_bytes(sqlite_template.read_bytes())
    rows(folder)
    roots = {"data_roots": [str(folder)], "output_root": str(folder)}
    settings = Settings.model_validate({"database_url": f"sqlite:///{database}", **roots})
    with served(create_app(settings)) as client:
        matrix = (np.eye(len(NAMES)) * 40 + 1).tolist()
        source = {"class_counts": dict.fromkeys(PLAIN, 50), "confusion_matrix": matrix}
        model = {"name": "named", "classes": PLAIN, "source": source}
        client.post("/v1/models", json=model).raise_for_status()
    rename(database)
    with served(create_app(settings)) as client, between(client) as port:
        body = {"posteriors": np.full((9, len(NAMES)), 1 / len(NAMES)).tolist()}
        address = "/v1/models/named/versions/1/estimates"
        client.post(address, json=body).raise_for_status()
        asked = {
            "kind": "estimate",
            "model": "named",
            "dataset": {"path": "grouped.parquet"},
            "group_by": ["group"],
            "method": "acc-qp",
        }
        made = client.post("/v1/jobs", json=asked).json()
        assert over(client, made["id"])["state"] == "done"
        yield Place(folder, database, client, port, made["id"])


Words = list[str]
Case = Callable[[Place], list[Words]]


ROWS = ("--dataset", "grouped.parquet", "--model", "named")


def job_estimate(place: Place) -> list[Words]:
    words = ["job", "estimate", *ROWS]
    there = [*words, "--method", "acc-qp", "--group-by", "group"]
    return [
        *([*there, *more] for more in ([], ["--detach"], ["--json"])),
        [*there, "--local"],
        [*words, "--filter", HOSTILE],
        [*words, "--column", f"{HOSTILE}=x"],
    ]


def file(place: Place, name: str) -> str:
    return str(place.folder / name)


CASES: dict[str, Case] = {
    "migrate": lambda place: [["migrate"], ["migrate", HOSTILE]],
    "serve": lambda place: [
        ["serve", "--host", HOSTILE, "--port", "0"],
        ["serve", "--log-level", HOSTILE, "--port", "0"],
    ],
    "backup": lambda place: [
        ["backup", file(place, "copy\x1b]0;owned\x07[unknown].db")],
        ["backup", file(place, "copy\x1b]0;owned\x07[unknown].db")],
        ["backup", "/none/[/nope]"],
    ],
    "restore": lambda place: [["restore", HOSTILE], ["restore", file(place, "rows.parquet")]],
    "register": lambda place: [
        ["register", "fresh", file(place, "rows.parquet"), "--label", LABEL],
        ["register", "named", file(place, "rows.parquet"), "--label", HOSTILE],
        ["register", HOSTILE, HOSTILE, "--label", HOSTILE],
    ],
    "estimate": lambda place: [
        ["estimate", "named", file(place, "rows.parquet")],
        ["estimate", "named", file(place, "rows.parquet"), "--json"],
        ["estimate", "named", file(place, "rows.parquet"), "--local"],
        ["estimate", "named", file(place, "rows.parquet"), "--method", HOSTILE],
        ["estimate", "named", file(place, "rows.parquet"), "--out", "/none/[/nope].csv"],
        ["estimate", "named", HOSTILE],
        ["estimate", "named", "x.csv", f"--{HOSTILE}"],
    ],
    "history": lambda place: [
        *(["history", "named", *more] for more in ([], ["--local"], ["--json"])),
        ["history", HOSTILE],
    ],
    "compare": lambda place: [
        *(["compare", "named", file(place, "rows.parquet"), *m] for m in ([], ["--local"])),
        ["compare", "named", HOSTILE],
    ],
    "job estimate": job_estimate,
    "job adjust": lambda place: [
        ["job", "adjust", *ROWS, "--output", "adjusted", "--method", HOSTILE],
    ],
    "job register": lambda place: [
        ["job", "register", *ROWS, "--label", HOSTILE],
        ["job", "register", *ROWS, "--label", "group", "--local"],
    ],
    "job list": lambda place: [
        *(["job", "list", *more] for more in ([], ["--local"])),
        ["job", "list", "--state", HOSTILE],
    ],
    "job show": lambda place: [
        *(["job", "show", place.job, *more] for more in ([], ["--local"], ["--json"])),
        ["job", "show", HOSTILE],
    ],
    "job follow": lambda place: [["job", "follow", place.job], ["job", "follow", HOSTILE]],
    "job resume": lambda place: [["job", "resume", place.job], ["job", "resume", HOSTILE]],
    "job cancel": lambda place: [["job", "cancel", place.job], ["job", "cancel", HOSTILE]],
    "keys create": lambda place: [
        ["keys", "create", "--scope", "admin", "--name", HOSTILE],
        ["keys", "create", "--scope", HOSTILE],
    ],
    "keys list": lambda place: [["keys", "create", "--scope", "read", "--name", HOSTILE],
                                ["keys", "list"]],
    "keys revoke": lambda place: [["keys", "revoke", HOSTILE]],
    "health": lambda place: [["health", "--port", str(place.port)], ["health", "--port", HOSTILE]],
    "demo": lambda place: [["demo", "--port", str(place.port)], ["demo", HOSTILE]],
}  # fmt: skip
SHOWN = {
    "estimate", "history", "compare", "job estimate", "job show", "job follow", "job resume",
}  # fmt: skip
"""Commands that must show every name; what registers names or makes keys refuses some of them."""


def commands() -> list[str]:
    """Every command that there is."""

    def below(group: Any, path: Words) -> Iterator[str]:
        for name, command in group.commands.items():
            here = [*path, name]
            if hasattr(command, "commands"):
                yield from below(command, here)
            else:
                yield " ".join(here)

    return list(below(typer.main.get_command(cli), []))


@pytest.fixture
def environment(place: Place, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("PRIORSHIFT_DATABASE_URL", f"sqlite:///{place.database}")
    monkeypatch.setenv("PRIORSHIFT_DATA_ROOTS", json.dumps([str(place.folder)]))
    monkeypatch.setenv("PRIORSHIFT_OUTPUT_ROOT", str(place.folder))
    monkeypatch.setenv("PRIORSHIFT_URL", f"http://127.0.0.1:{place.port}")
    secret = place.folder / "secret"
    secret.write_text("s" * 40)
    monkeypatch.setenv("PRIORSHIFT_KEY_SECRET_FILE", str(secret))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    return monkeypatch


@pytest.fixture(autouse=True)
def logging_restored() -> Iterator[None]:
    """As it was: ``serve`` sends logs to a stream that ends with its test."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    levels = {name: logging.getLogger(name).level for name in (logs.OWN, logs.SERVER)}
    yield
    root.handlers = handlers
    root.setLevel(level)
    for name, own in levels.items():
        logging.getLogger(name).setLevel(own)
    logging.captureWarnings(False)


def test_every_command_has_a_case() -> None:
    assert sorted(CASES) == sorted(commands())


@pytest.mark.parametrize("terminal", [False, True], ids=["file", "terminal"])
@pytest.mark.parametrize("command", CASES)
def test_every_command_shows_words_only(
    place: Place,
    environment: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    terminal: bool,
) -> None:
    environment.setenv("COLUMNS", "2000" if terminal else "70")
    if terminal:
        environment.setenv("TERM", "xterm")
        environment.setenv("FORCE_COLOR", "1")
    told = ""
    for words in CASES[command](place):
        environment.setattr("sys.argv", ["priorshift", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        found = capsys.readouterr()
        out, err = (COLOURS.sub("", t) if terminal else t for t in found)
        assert ended.value.code in (0, 1, 2, 3), words
        assert not unseen(out + err), words
        if "--json" in words:
            assert json.loads(out)
        told += out
    if terminal and command in SHOWN:
        assert [name for name in NAMES if plain(name) not in told] == []
    forget_keys(place)


def forget_keys(place: Place) -> None:
    """Leave the service open to all."""
    import sqlite3

    with sqlite3.connect(place.database) as database:
        database.execute("DELETE FROM api_keys")
    database.close()
