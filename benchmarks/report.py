"""What every table of results must carry: the command, the commit, the versions."""

import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version


def heading(title: str, packages: Sequence[str] = ("numpy", "scipy", "scikit-learn")) -> str:
    """The first lines of a table of results."""
    command = " ".join(["python", "-m", f"benchmarks.{title}", *_anywhere(sys.argv[1:])])
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return (
        f"- command: `{command}`\n"
        f"- commit: {found.stdout.strip() or 'unknown'}\n"
        f"- versions: Python {platform.python_version()}, {versions}\n"
    )


def _anywhere(arguments: Sequence[str]) -> list[str]:
    """Without the place of the data, which is another one on every machine."""
    before = ["", *arguments]
    return [
        "DIR" if name == "--data" else given for name, given in zip(before, arguments, strict=False)
    ]


def table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
