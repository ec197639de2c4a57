"""A name stands for one thing: no two public classes share one."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("app", "models_store")
SHARED = {
    "Answer",
    "Coded",
    "Held",
    "In",
    "Jobs",
    "Kind",
    "Lane",
    "Line",
    "Reader",
    "Refused",
    "Series",
    "Sources",
    "Standings",
    "TooLarge",
    "Written",
}
"""Names that two modules still have a class of, none of them in the core; only ever fewer."""


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
    assert {name: places for name, places in shared.items() if name not in SHARED} == {}


def test_the_core_shares_no_name_at_all() -> None:
    rooms = ("app/core/", "app/estimation/", "app/engines/")
    places = public_classes()
    assert [n for n in SHARED if any(place.startswith(rooms) for place in places[n])] == []
