"""Posteriors as lists by class: in any order, checked by name, answered in kind."""

import json
from typing import Any, ClassVar

import httpx
import numpy as np
import pytest

from app.formats import json as wire_json
from app.formats import json_matrices
from app.formats.errors import Unparseable
from app.formats.json_reader import LONGEST_TEXT
from tests.api.sources import CLASSES, COUNTED, register, scores, validation

ROWS = scores(np.random.default_rng(3), 300, 0.5)[1]
BY_NAME = {"fraud": ROWS[:, 1].tolist(), "legit": ROWS[:, 0].tolist()}


def test_the_same_version_and_estimate(lasting: httpx.Client) -> None:
    given = validation()
    rows = np.array(given["posteriors"])
    address = register(lasting, "same", {"validation": given})
    by_name = {"fraud": rows[:, 1].tolist(), "legit": rows[:, 0].tolist()}
    source = {"source": {"validation": {**given, "posteriors": by_name}}}
    assert lasting.post("/v1/models/same/versions", json=source).status_code == 200
    answers = [
        lasting.post(
            f"{address}/estimates", json={"posteriors": p, "include": ["posteriors"]}
        ).json()
        for p in (ROWS.tolist(), BY_NAME)
    ]
    assert answers[0]["prevalence"] == answers[1]["prevalence"]
    assert list(answers[1]["posteriors"]) == CLASSES
    columns = np.column_stack([answers[1]["posteriors"][name] for name in CLASSES])
    np.testing.assert_array_equal(columns, answers[0]["posteriors"])
    adjusted = lasting.post(f"{address}/posteriors", json={"posteriors": BY_NAME}).json()
    assert len(adjusted["posteriors"]["legit"]) == 300


@pytest.mark.parametrize(
    ("posteriors", "place"),
    [
        ({"legit": [0.5]}, "/posteriors/fraud"),
        ({"legit": [0.5], "fraud": [0.5], "other": [0]}, "/posteriors/other"),
        ({"legit": [0.5], "fraud": [0.5, 0.5]}, "/posteriors/fraud"),
        ({"legit": [], "fraud": []}, "/posteriors/legit"),
        ({"legit": [0.5, "0.5"], "fraud": [0.5, 0.5]}, "/posteriors/legit/1"),
        ({"legit": [0.5, None], "fraud": [0.5, 0.5]}, "/posteriors/legit/1"),
        ({"legit": [0.5, True], "fraud": [0.5, 0.5]}, "/posteriors/legit/1"),
        ({"legit": 0.5, "fraud": 0.5}, "/posteriors/legit"),
        ({"legit": [0.5, 0.9], "fraud": [0.5, 0.5]}, "/posteriors/1"),
        ({"legit": [10**400], "fraud": [0.5]}, "/posteriors/legit/0"),
    ],
)
def test_what_is_wrong_is_named(lasting: httpx.Client, posteriors: Any, place: str) -> None:
    if lasting.get("/v1/models/wrong").status_code == 404:
        register(lasting, "wrong", COUNTED)
    answer = lasting.post("/v1/models/wrong/versions/1/estimates", json={"posteriors": posteriors})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == place


def test_an_order_makes_no_sense(lasting: httpx.Client) -> None:
    address = register(lasting, "order", COUNTED)
    body = {"posteriors": BY_NAME, "columns": CLASSES}
    answer = lasting.post(f"{address}/estimates", json=body)
    assert answer.json()["errors"][0]["pointer"] == "/columns"


MANY = np.random.default_rng(5).dirichlet([1, 1, 1], 20_000)
NAMES = ["a", 'b"]', "c\\"]


def text_of(columns: dict[str, Any], **layout: Any) -> bytes:
    return json.dumps({"method": "em", "posteriors": columns, "include": []}, **layout).encode()


class TestLargeColumns:
    """They are read in pieces, and then as if they had not been."""

    COLUMNS: ClassVar = dict(zip(NAMES, MANY.T.tolist(), strict=True))

    @pytest.mark.parametrize(
        "layout", [{}, {"indent": 1}, {"separators": (",", ":")}, {"separators": (" ,\t", " : ")}]
    )
    def test_are_bit_for_bit_what_was_sent(self, layout: dict[str, Any]) -> None:
        body = text_of(self.COLUMNS, **layout)
        found = json_matrices.lifted(body).matrices
        assert len(found) == len(NAMES)
        decoded = wire_json.decode(body)
        assert decoded["method"] == "em"
        assert list(decoded["posteriors"]) == NAMES
        for name, column in zip(NAMES, MANY.T, strict=True):
            assert isinstance(decoded["posteriors"][name], np.ndarray)
            np.testing.assert_array_equal(decoded["posteriors"][name], column)

    @pytest.mark.parametrize(
        "odd", ["null", "true", '"0.5"', "NaN", "01", "[0.5]", "{}", "", "1.5.", "0.5 0.5", "+1"]
    )
    @pytest.mark.parametrize("place", [0, 9_000, -1])
    def test_what_is_no_number_is_told_as_in_small_ones(self, odd: str, place: int) -> None:
        column = [*map(str, self.COLUMNS["a"])]
        column[place] = odd
        body = text_of({"a": "here", "b": self.COLUMNS["a"]})
        body = body.replace(b'"here"', f"[{', '.join(column)}]".encode())
        assert len(json_matrices.lifted(body).matrices) <= 1
        try:
            expected = json.loads(body, parse_constant=lambda name: 1 / 0)
        except (ValueError, ZeroDivisionError):
            with pytest.raises(Unparseable):
                wire_json.decode(body)
            return
        assert wire_json.decode(body)["posteriors"]["a"] == expected["posteriors"]["a"]

    def test_a_repeated_name_is_refused(self) -> None:
        body = text_of({"a": self.COLUMNS["a"], "z": self.COLUMNS["a"]})
        with pytest.raises(Unparseable, match="repeated"):
            wire_json.decode(body.replace(b'"z"', b'"a"'))

    def test_text_that_looks_like_columns_stays_text(self) -> None:
        numbers = json.dumps(self.COLUMNS["a"][:4000])
        assert json_matrices.LARGE < len(numbers) < LONGEST_TEXT
        content = {"note": f'"posteriors": {{"a": {numbers}}}', "x": f'\\"posteriors": {numbers}'}
        body = json.dumps(content).encode()
        assert wire_json.decode(body) == content

    def test_estimates_are_the_same(self, lasting: httpx.Client) -> None:
        rows = MANY[:, :2] / MANY[:, :2].sum(axis=1, keepdims=True)
        address = register(lasting, "large", COUNTED)
        columns = dict(zip(CLASSES, rows.T.tolist(), strict=True))
        answers = [
            lasting.post(f"{address}/posteriors", json={"posteriors": given}).json()
            for given in (rows.tolist(), columns)
        ]
        by_name = answers[1]["posteriors"]
        np.testing.assert_array_equal(
            np.column_stack([by_name[name] for name in CLASSES]), answers[0]["posteriors"]
        )

    def test_columns_of_other_lengths_are_named(self, lasting: httpx.Client) -> None:
        address = register(lasting, "uneven", COUNTED)
        column = self.COLUMNS["a"]
        columns = {CLASSES[0]: column, CLASSES[1]: column[:-1]}
        answer = lasting.post(f"{address}/estimates", json={"posteriors": columns})
        assert answer.status_code == 422
        assert "19999 rows" in answer.json()["errors"][0]["message"]
