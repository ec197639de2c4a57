"""What is installed at a caller's: the package alone, with its types, on httpx and NumPy."""

import ast
import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "priorshift_client"


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or ".")
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.stem)
def test_only_httpx_and_numpy_are_imported(path: Path) -> None:
    allowed = {"httpx", "numpy", "priorshift_client", *sys.stdlib_module_names}
    assert imported(path) <= allowed


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing is left in the tree."""
    folder = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns("build", "*.egg-info", "__pycache__", "tests")
    shutil.copytree(ROOT, folder / "python", ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*command, "--no-deps", "--no-build-isolation", "-w", folder, folder / "python"],
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    assert wheel.name == "priorshift_client-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        metadata = Parser().parsestr(
            archive.read("priorshift_client-0.1.0.dist-info/METADATA").decode()
        )
    there = {str(p.relative_to(PACKAGE.parent)) for p in PACKAGE.rglob("*.py")}
    assert set(names) == {*there, "priorshift_client/py.typed"}
    needed = metadata.get_all("Requires-Dist") or []
    assert [re.split("[<>]", need)[0] for need in needed] == ["httpcore", "httpx", "numpy"]


def test_the_wheel_works_without_the_service_s_code(wheel: Path, tmp_path: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(wheel)!r})\n"
        "import priorshift_client as p\n"
        "assert p.__file__.startswith(sys.path[0]), p.__file__\n"
        "print(p.Client('http://127.0.0.1:1'), 'app' in sys.modules, 'scipy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.strip() == "Client('http://127.0.0.1:1') False False"
