"""A name stands for one thing: no two public classes share one."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("app", "models_store")


def public_classes() -> dict[str, set[str]]:
    """Modules by the name of each public class at the top of them."""
    places: dict[str, set[str]] = defaultdict(set)
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].add(path.relative_to(ROOT).as_posix())
    return places


def test_no_two_public_classes_share_a_name() -> None:
    shared = {name: places for name, places in public_classes().items() if len(places) > 1}
    assert shared == {}
