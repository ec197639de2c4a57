"""The description changes when somebody means it to: clients are written against it."""

import json
from collections.abc import Iterator
from typing import Any

from tests.api.description import AGREED, described


def differences(agreed: Any, found: Any, place: str = "") -> Iterator[str]:
    """Where the two differ; parameters and alternatives have no order."""
    if isinstance(agreed, dict) and isinstance(found, dict):
        for name in sorted(agreed.keys() | found.keys()):
            if name not in found:
                yield f"{place}/{name} is gone"
            elif name not in agreed:
                yield f"{place}/{name} is new"
            else:
                yield from differences(agreed[name], found[name], f"{place}/{name}")
    elif isinstance(agreed, list) and isinstance(found, list):
        known, others = (
            [json.dumps(v, sort_keys=True) for v in values] for values in (agreed, found)
        )
        yield from (f"{place} lacks {value[:200]}" for value in sorted(set(known) - set(others)))
        yield from (f"{place} has {value[:200]}" for value in sorted(set(others) - set(known)))
    elif agreed != found:
        yield f"{place}: {agreed!r:.200} became {found!r:.200}"


def test_the_description_is_the_agreed_one() -> None:
    agreed = json.loads(AGREED.read_text(encoding="utf-8"))
    found = list(differences(agreed, described()))
    assert found == [], "if it is meant: python -m tests.api.description"


def test_differences_are_seen() -> None:
    assert list(differences({"a": [1, {"b": 2}]}, {"a": [{"b": 2}, 1]})) == []
    assert list(differences({"a": 1, "b": 2}, {"a": 2, "c": 3})) == [
        "/a: 1 became 2",
        "/b is gone",
        "/c is new",
    ]
    assert list(differences({"a": [1]}, {"a": [2]})) == ["/a lacks 1", "/a has 2"]
