"""The examples of our pages, run as written; ``python -m tests.readme`` rewrites their answers."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import SecretStr

from app.main import create_app
from app.settings import Settings
from models_store import schema
from models_store.engine import connect
from tests.patience import patience

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = (README, ROOT / "docs" / "clients.md")
CLIENT = ROOT / "clients" / "python" / "src"
BASE = "http://127.0.0.1:8000"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
LONGEST = 120.0
"""Seconds of an example."""
VARYING = {"id", "created_at", "updated_at", "digest", "next_cursor", "instance"}


@dataclass(frozen=True)
class Example:
    """A command of a page and the answer that is printed under it."""

    language: str
    command: str
    answer: str | None
    span: tuple[int, int]


def examples(text: str) -> list[Example]:
    """curl commands and Python programs, each with the block after it if that is an answer."""
    blocks = list(BLOCK.finditer(text))
    found = []
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        language, command = block.groups()
        if language != "python" and not command.startswith("curl"):
            continue
        follows = after is not None and text[block.end() : after.start()].strip() == ""
        if after is not None and follows and after.group(1) in ("json", "text"):
            found.append(Example(language, command, after.group(2), after.span(2)))
        else:
            found.append(Example(language, command, None, (0, 0)))
    return found


def configured(url: str, folder: Path) -> Settings:
    """Of the service that the examples call from ``folder``; webhooks need a secret."""
    return Settings(
        database_url=url,
        data_roots=[str(folder)],
        output_root=str(folder),
        key_secret=SecretStr("a secret of the pages' own service"),
    )


def run(example: Example, base: str, folder: Path) -> str:
    """What the example prints, against a service at ``base``."""
    command = example.command.replace(BASE, base)
    if example.language == "python":
        argv = [sys.executable, "-c", command]
    else:
        bash = shutil.which("bash")
        assert bash is not None
        argv = [bash, "-euo", "pipefail", "-c", command]
    environment = {**os.environ, "PYTHONPATH": str(CLIENT)}
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env=environment,
        timeout=patience(LONGEST),
    )
    return done.stdout


def same(expected: Any, found: Any, key: str = "") -> bool:
    """Equal but for identities, times and the last digits."""
    if key in VARYING:
        return type(expected) is type(found)
    if isinstance(expected, dict) and isinstance(found, dict):
        return list(expected) == list(found) and all(
            same(expected[k], found[k], k) for k in expected
        )
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(same, expected, found))
    if isinstance(expected, float) and isinstance(found, int | float):
        return bool(np.isclose(expected, found, rtol=1e-5, atol=1e-9))
    return bool(expected == found)


def rewrite(page: Path) -> None:
    """Put what the examples print now into a page."""
    from tests.conftest import served

    text = page.read_text()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/readme.db"
        engine = connect(url)
        schema.migrate(engine)
        engine.dispose()
        answers = []
        with served(create_app(configured(url, Path(folder)))) as client:
            base = str(client.base_url).rstrip("/")
            for example in examples(text):
                printed = run(example, base, Path(folder)).replace(base, BASE)
                answers.append((example, printed))
    for example, printed in reversed(answers):
        if example.answer is not None:
            start, end = example.span
            text = text[:start] + shown(printed) + text[end:]
    page.write_text(text)


def shown(printed: str) -> str:
    """JSON indented for a reader, short lists and objects on one line; other text as it is."""
    try:
        value = json.loads(printed)
    except ValueError:
        return printed.rstrip("\n") + "\n"
    return _pretty(value, 0) + "\n"


def _pretty(value: Any, indent: int) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + indent <= 110 or not isinstance(value, dict | list) or not value:
        return flat
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        parts = [f"{json.dumps(k)}: {_pretty(v, indent + 2)}" for k, v in value.items()]
        return "{\n" + ",\n".join(inner + p for p in parts) + "\n" + " " * indent + "}"
    items = [inner + _pretty(item, indent + 2) for item in value]
    return "[\n" + ",\n".join(items) + "\n" + " " * indent + "]"


if __name__ == "__main__":
    for path in PAGES:
        rewrite(path)
