"""Docstrings say something, and those of results something of every field."""

import ast
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from app.estimation import evaluation, results
from app.estimation.solvers import Solution

APP = Path(__file__).parents[2] / "app"
ROOMS = ("core", "estimation", "engines")
FEWEST_WORDS = 4
RESULTS = [
    *(
        value
        for module in (results, evaluation)
        for value in vars(module).values()
        if is_dataclass(value) and value.__module__ == module.__name__
    ),
    Solution,
]


def docstrings() -> Iterator[tuple[str, str]]:
    """Where each docstring of these rooms stands, and its words."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for room in ROOMS:
        for path in sorted((APP / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                text = ast.get_docstring(node) if isinstance(node, kinds) else None
                if text is not None:
                    yield f"{path.relative_to(APP)}:{getattr(node, 'name', '')}", text


def test_none_is_of_three_words() -> None:
    assert [place for place, text in docstrings() if len(text.split()) < FEWEST_WORDS] == []


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.__name__)
def test_every_field_of_a_result_has_a_line(result: type) -> None:
    assert is_dataclass(result)
    text = result.__doc__ or ""
    assert [field.name for field in fields(result) if f"    ``{field.name}``: " not in text] == []
