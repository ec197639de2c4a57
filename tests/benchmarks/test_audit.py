"""The table of known holes: it covers every pin, and tells when one is below it."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from benchmarks.audit import LOCKS, ROOT, Known, findings, images, locked, ranges, table

TEXT = (ROOT / "docs" / "security.md").read_text()
TABLE = table(TEXT)
PACKAGES = {**locked(LOCKS[0]), **locked(LOCKS[1])}


def test_every_pin_is_in_the_table_and_sound() -> None:
    assert list(findings(TABLE)) == []


def test_the_table_names_nothing_else() -> None:
    pins = {*images(), *PACKAGES}
    assert set(TABLE.known) <= pins
    assert TABLE.quiet <= pins
    assert not TABLE.quiet & set(TABLE.known)
    rows = re.findall(r"^\| `.*\| (\d{4}-\d\d-\d\d) \|$", TEXT, re.MULTILINE)
    assert len(rows) == len(TABLE.known)
    assert max(rows) <= TABLE.looked.isoformat()


def test_every_lock_and_image_is_read() -> None:
    lines = "\n".join((ROOT / file).read_text() for file in LOCKS)
    assert len(PACKAGES) == len(set(re.findall(r"^([\w.-]+)==", lines, re.MULTILINE)))
    named = re.findall(r"image: (\S+):", (ROOT / "docker-compose.yml").read_text())
    assert set(images()) == {"python", *named}


def test_the_locks_are_within_the_ranges() -> None:
    for requirement in [*ranges()["run"], *ranges()["dev"]]:
        version = PACKAGES[canonicalize_name(requirement.name)]
        assert version in requirement.specifier, requirement


def test_what_is_open_is_not_reached() -> None:
    assert {name for name, known in TABLE.known.items() if known.sound is None} == {"dask"}
    for path in [*ROOT.glob("app/**/*.py"), *ROOT.glob("models_store/**/*.py")]:
        assert "from_npy_stack" not in path.read_text(), path


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for file in ("Dockerfile", "docker-compose.yml", "pyproject.toml", *LOCKS):
        shutil.copy(ROOT / file, tmp_path)
    return tmp_path


def edited(root: Path, file: str, change: Callable[[str], str]) -> list[str]:
    text = (root / file).read_text()
    (root / file).write_text(change(text))
    assert (root / file).read_text() != text
    return list(findings(TABLE, root))


def lower(version: Version) -> str:
    """One that is below it."""
    return f"{version}.dev0"


@pytest.mark.parametrize("name", [name for name, known in TABLE.known.items() if known.sound])
def test_a_version_below_is_told(name: str, copy: Path) -> None:
    sound = TABLE.known[name].sound
    assert sound is not None
    if name in PACKAGES:
        file = LOCKS[0] if name in locked(LOCKS[0]) else LOCKS[1]

        def change(text: str) -> str:
            return "\n".join(
                f"{name}=={lower(sound)}"
                if canonicalize_name(line.partition("==")[0]) == name
                else line
                for line in text.splitlines()
            )

        told = edited(copy, file, change)
        assert len(told) == 1
        assert told[0].startswith(f"{name} {Version(lower(sound))}: ")
    else:
        file = "Dockerfile" if name == "python" else "docker-compose.yml"
        told = edited(
            copy, file, lambda text: re.sub(rf"({name}:v?)[\d.]+", r"\g<1>1.0", text, count=1)
        )
        assert len(told) == 1
        assert told[0].startswith(f"{name} 1.0: ")


@pytest.mark.parametrize("name", [name for name in TABLE.known if name in PACKAGES])
def test_a_range_that_lets_holes_in_is_told(name: str, copy: Path) -> None:
    written: dict[str, str] = {
        canonicalize_name(Requirement(text).name): text
        for text in re.findall(
            r'"([\w.-]+(?:\[\w+\])?>=[^"]+)"', (copy / "pyproject.toml").read_text()
        )
    }
    told = edited(
        copy,
        "pyproject.toml",
        lambda text: text.replace(written[name], Requirement(written[name]).name),
    )
    expected = TABLE.known[name].sound is not None
    assert [f"let {name} begin" in line for line in told] == [True] * expected


def test_what_nobody_looked_at_is_told() -> None:
    bare = replace(TABLE, quiet=TABLE.quiet - {"click"})
    assert list(findings(bare)) == [
        f"click {PACKAGES['click']}: not in the table; look for its holes"
    ]


def test_a_later_hole_is_told() -> None:
    later = {**TABLE.known, "starlette": Known(Version("99"), "CVE-0000-1")}
    told = list(findings(replace(TABLE, known=later)))
    assert [line.partition(" ")[0] for line in told] == ["starlette", "pyproject.toml:"]
    assert all("CVE-0000-1" in line for line in told)


@pytest.mark.parametrize("gone", ["Looked up on", "Nothing was found", "## Known holes"])
def test_a_table_that_cannot_be_read_is_told(gone: str) -> None:
    with pytest.raises(ValueError, match="no section with a date"):
        table(TEXT.replace(gone, ""))
