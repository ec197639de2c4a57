"""What every table of results must carry: the command, the commit, the versions."""

import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from itertools import pairwise


def heading(title: str, packages: Sequence[str] = ("numpy", "scipy", "scikit-learn")) -> str:
    """The first lines of a table of results."""
    command = " ".join(["python", "-m", f"benchmarks.{title}", *_arguments()])
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return (
        f"- command: `{command}`\n"
        f"- commit: {described.stdout.strip() or 'unknown'}\n"
        f"- versions: Python {platform.python_version()}, {versions}\n"
    )


def _arguments() -> list[str]:
    """As given, but for the folder of data, which is another one elsewhere."""
    words = sys.argv[1:]
    return ["DIR" if before == "--data" else word for before, word in pairwise(["", *words])]


def table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
