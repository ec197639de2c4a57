"""Whether an image or a package that is pinned has a known hole, by the table in docs/security.md.

``make audit``: status 1 if so, if a pin is missing there, if a range of pyproject.toml lets a
version with a hole in, or if nobody has looked for long. It asks nobody: ``make audit-online``.
"""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
IMAGES = {
    "Dockerfile": r"^FROM ([\w./-]+):v?([\d.]+)",
    "docker-compose.yml": r"image: (\S+):v?([\d.]+)",
}
LOCKS = ("requirements.lock", "requirements-dev.lock")
MOST_DAYS = 92
"""After which the table is too old to tell."""


@dataclass(frozen=True)
class Known:
    """From which version on no hole is known; None where none mends it yet."""

    sound: Version | None
    advisories: str


@dataclass(frozen=True)
class Table:
    """What is known of images and packages, by name, and when somebody looked."""

    looked: date
    known: Mapping[str, Known]
    quiet: frozenset[str]


def table(text: str) -> Table:
    """The section "Known holes and pins"; ``ValueError`` where it cannot be read."""
    section = re.search(
        r"^## Known holes and pins\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE
    )
    looked = section and re.search(r"^Looked up on (\d{4}-\d\d-\d\d)", section[1], re.MULTILINE)
    quiet = section and re.search(r"^Nothing was found on (.*)\.$", section[1], re.MULTILINE)
    if not (section and looked and quiet):
        raise ValueError("docs/security.md: no section with a date, a table and what has no entry")
    rows = re.findall(r"^\| `(\S+)` \| ([\d.]+|none) \| (.+?) \|", section[1], re.MULTILINE)
    known = {
        name: Known(None if sound == "none" else Version(sound), advisories)
        for name, sound, advisories in rows
    }
    return Table(
        date.fromisoformat(looked[1]), known, frozenset(re.findall(r"`([^`]+)`", quiet[1]))
    )


def images(root: Path = ROOT) -> dict[str, Version]:
    """The images that the container files name, by name."""
    return {
        name: Version(version)
        for file, pattern in IMAGES.items()
        for name, version in re.findall(pattern, (root / file).read_text(), re.MULTILINE)
    }


def locked(file: str, root: Path = ROOT) -> dict[str, Version]:
    """The packages of a lock, by their canonical names."""
    pins = re.findall(r"^([\w.-]+)==(\S+)$", (root / file).read_text(), re.MULTILINE)
    return {canonicalize_name(name): Version(version) for name, version in pins}


def ranges(root: Path = ROOT) -> dict[str, list[Requirement]]:
    """What pyproject.toml requires: ``run`` with every feature, and ``dev`` besides."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    run = [*project["dependencies"], *extras["arrow"], *extras["distributed"]]
    return {
        "run": [Requirement(line) for line in run],
        "dev": list(map(Requirement, extras["dev"])),
    }


def findings(holes: Table, root: Path = ROOT) -> Iterator[str]:
    """What is wrong, a line each."""
    run, dev = (locked(file, root) for file in LOCKS)
    for name, version in sorted({*images(root).items(), *run.items(), *dev.items()}):
        known = holes.known.get(name)
        if known is None and name not in holes.quiet:
            yield f"{name} {version}: not in the table; look for its holes"
        if known and known.sound and version < known.sound:
            yield f"{name} {version}: {known.advisories}; take {known.sound} or later"
    limits = ranges(root)
    for where, packages in (("run", run), ("dev", {k: v for k, v in dev.items() if k not in run})):
        for name in packages:
            known = holes.known.get(name)
            if known and known.sound and _let_in(limits[where], name, known.sound):
                yield f"pyproject.toml: let {name} begin at {known.sound}; {known.advisories}"


def _let_in(requirements: list[Requirement], name: str, sound: Version) -> bool:
    """Whether none of them keeps versions below ``sound`` out."""
    floors = [
        Version(part.version)
        for requirement in requirements
        if canonicalize_name(requirement.name) == name
        for part in requirement.specifier
        if part.operator in (">=", "~=", "==")
    ]
    return not floors or max(floors) < sound


def main() -> int:
    """Print what is wrong; the exit status."""
    holes = table((ROOT / "docs" / "security.md").read_text())
    wrong = list(findings(holes))
    for name, known in holes.known.items():
        if known.sound is None:
            print(f"open, accepted: {name}: {known.advisories}")
    days = (datetime.now(UTC).date() - holes.looked).days
    if days > MOST_DAYS:
        wrong.append(f"docs/security.md: nobody has looked for {days} days")
    pins = len({**images(), **locked(LOCKS[0]), **locked(LOCKS[1])})
    print("\n".join(wrong) or f"{pins} pins, no known hole as of {holes.looked}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
