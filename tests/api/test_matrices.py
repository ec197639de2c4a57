"""Large matrices in JSON: read as the JSON parser reads them, or left to it."""

import json
import re
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.arrays import Floats
from app.formats import json_matrices
from app.formats.errors import Unparseable
from app.formats.json import decode, encode
from app.formats.json_reader import PIECE
from tests.api.sources import COUNTED, register

ROWS = np.random.default_rng(0).dirichlet([1, 1, 1], 3000)
BODY = json.dumps({"method": "em", "posteriors": ROWS.tolist(), "columns": ["a", "b", "c"]})


def lifted(text: str) -> list[Floats]:
    return list(json_matrices.lifted(text.encode()).matrices.values())


class TestWhatIsWritten:
    @pytest.mark.parametrize("shape", [(0, 2), (3,), (7, 3), (5000, 2), (2, 5000), (0,)])
    def test_is_what_python_writes(self, shape: tuple[int, ...]) -> None:
        values = np.random.default_rng(0).random(shape)
        content = {"é": None, "many": ["x"] * 5000, "none": [], "matrix": values.tolist()}
        written = encode({**content, "matrix": values})
        expected = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        assert written == expected.encode()

    def test_columns_too(self) -> None:
        values = np.random.default_rng(0).random((5000, 2))
        columns = {"a": values[:, 0], "b": values[:, 1]}
        expected = json.dumps(
            {"m": {k: v.tolist() for k, v in columns.items()}}, separators=(",", ":")
        )
        assert encode({"m": columns}) == expected.encode()

    def test_is_never_nan(self) -> None:
        with pytest.raises(ValueError, match="JSON"):
            encode({"matrix": np.array([[np.nan]])})


class TestWhatIsRead:
    @pytest.mark.parametrize("indent", [None, 1])
    @pytest.mark.parametrize("separators", [(",", ":"), (" , ", "\n:\t")])
    def test_is_bit_for_bit_what_was_sent(
        self, indent: int | None, separators: tuple[str, str]
    ) -> None:
        text = json.dumps(json.loads(BODY), indent=indent, separators=separators)
        (found,) = lifted(text)
        np.testing.assert_array_equal(found, ROWS)
        decoded = decode(text.encode())
        np.testing.assert_array_equal(decoded["posteriors"], ROWS)
        assert decoded["columns"] == ["a", "b", "c"]
        assert decoded["method"] == "em"

    @given(
        st.lists(
            st.floats(allow_nan=False, allow_infinity=False)
            | st.integers(-(2**53), 2**53)
            | st.sampled_from([0.0, -0.0, 1e-308, 5e-324, 1e22, 0.1]),
            min_size=2,
            max_size=2,
        ),
        st.integers(0, 10**6),
    )
    @settings(max_examples=150, deadline=None)
    def test_any_number_that_json_writes(self, pair: list[float], seed: int) -> None:
        rng = np.random.default_rng(seed)
        rows = [pair, *rng.normal(size=(1500, 2)).tolist()]
        rng.shuffle(rows)
        (found,) = lifted(json.dumps({"posteriors": rows}))
        np.testing.assert_array_equal(found, np.array(rows, np.float64))

    @pytest.mark.parametrize("odd", ["1234567890123456789012", "[" * 2000 + "1" + "]" * 2000])
    def test_what_simdjson_cannot_hold_is_left_to_python(self, odd: str) -> None:
        text = BODY.replace("[[", f"[[{odd}, 0.5, 0.5], [", 1)
        outer = json.dumps({"posteriors": ROWS.tolist()})[:-1] + f', "x": {{"posteriors": [[{odd}'
        assert lifted(text) == []
        assert len(lifted(outer)) == 1
        if "[" in odd:
            with pytest.raises(Unparseable):
                decode(text.encode())
        else:
            assert decode(text.encode()) == json.loads(text)

    def test_lists_within_rows_are_none(self) -> None:
        for odd in ("[[1, 1, 1], 1, 1, 1], ", "[1, 1, [1]], ", "[[1], 1, 1], ", "[1, [1, 1]], "):
            assert lifted(BODY.replace("[[", "[" + odd + "[", 1)) == []

    def test_two_of_them(self) -> None:
        text = json.dumps({"features": ROWS.tolist(), "posteriors": (ROWS * 2).tolist()})
        decoded = decode(text.encode())
        np.testing.assert_array_equal(decoded["features"], ROWS)
        np.testing.assert_array_equal(decoded["posteriors"], ROWS * 2)

    def test_small_ones_are_lists(self) -> None:
        text = json.dumps({"posteriors": ROWS[:10].tolist(), "pad": " " * 40_000})
        assert decode(text.encode())["posteriors"] == ROWS[:10].tolist()


NO_CELLS = [
    "01",
    "+1",
    "1.",
    ".5",
    "-.5",
    "1.e5",
    "1e",
    "1e+",
    "--1",
    "1-1",
    "1 2",
    "",
    " ",
    "1.2.3",
    "1e5e5",
    "1e5.5",
    "1 e5",
    "1e ",
    "1+",
    "5+1",
    "1.5.",
    "e5",
    "0x1",
    "NaN",
    "Infinity",
    "-Infinity",
    "nan",
    "1_0",
    "true",
    "null",
    '"1"',
    "[1]",
    "1]",
    "[1",
    "1,2",
    "-",
    "- 1",
    "1e 5",
    "00",
    "-01",
    "½",
    "1\x00",
    "1d5",
]
CELL = re.escape(json.dumps(ROWS[2000, 1]))


class TestWhatIsLeft:
    @pytest.mark.parametrize("cell", NO_CELLS)
    def test_what_is_no_number_is_not_lifted(self, cell: str) -> None:
        text = re.sub(CELL, lambda _: cell, BODY, count=1)
        assert lifted(text) == []
        try:
            expected = json.loads(text, parse_constant=float)
        except ValueError:
            with pytest.raises(Unparseable):
                decode(text.encode())
            return
        if cell not in ("NaN", "Infinity", "-Infinity"):
            assert decode(text.encode()) == expected

    @pytest.mark.parametrize(
        "text",
        [
            BODY.replace("]]", "]"),
            BODY.replace("]]", "]]]"),
            BODY.replace("[[", "[[["),
            BODY.replace("], [", "] [", 5),
            BODY.replace("], [", "],, [", 1),
            BODY.replace("[[", "[,[", 1),
            BODY.replace("]]", "],]"),
            BODY + "}",
            BODY[:-1],
            BODY[: len(BODY) // 2],
        ],
    )
    def test_broken_bodies_are_refused_as_ever(self, text: str) -> None:
        with pytest.raises(Unparseable):
            decode(text.encode())

    @pytest.mark.parametrize("change", ["] [", "],, [", "], [], ["])
    def test_broken_where_pieces_meet(self, change: str) -> None:
        places = [m.start() for m in re.finditer(r"\], \[", BODY)]
        near = [p for p in places if abs(p - PIECE) < 400]
        assert near
        for place in near:
            text = BODY[:place] + change + BODY[place + 4 :]
            assert lifted(text) == []

    def test_matrices_within_strings_stay_text(self) -> None:
        inner = json.dumps({"posteriors": ROWS.tolist()})
        text = json.dumps({"note": inner, "posteriors": [[1, 0]]})
        assert decode(text.encode()) == json.loads(text)
        crafted = '{"note": "' + '\\"posteriors\\": ' + json.dumps(ROWS.tolist()) + '"}'
        assert decode(crafted.encode()) == json.loads(crafted)

    def test_names_repeated_are_refused(self) -> None:
        with pytest.raises(Unparseable, match="repeated"):
            decode((BODY[:-1] + ', "posteriors": [[1]]}').encode())

    def test_in_a_list_it_stays_a_list(self) -> None:
        text = json.dumps({"x": [{"posteriors": ROWS.tolist()}]})
        np.testing.assert_array_equal(decode(text.encode())["x"][0]["posteriors"], ROWS)


class TestOverHttp:
    def test_the_same_answer_as_in_small_pieces(self, lasting: httpx.Client) -> None:
        address = register(lasting, "pieces", COUNTED)
        rows = np.random.default_rng(1).dirichlet([1, 1], 5000).tolist()
        large = lasting.post(f"{address}/shift-tests", json={"posteriors": rows}).json()
        odd = json.dumps({"posteriors": rows}).replace("]]", "],[0.5,5.e-1]]".replace(".e", ".0e"))
        small = lasting.post(
            f"{address}/shift-tests", content=odd, headers={"content-type": "application/json"}
        ).json()
        assert large["size"] == 5000
        assert small["size"] == 5001
        assert small["shift"]["statistic"] == pytest.approx(large["shift"]["statistic"], rel=0.01)

    def test_wrong_ones_name_their_rows(self, lasting: httpx.Client) -> None:
        address = register(lasting, "rows", COUNTED)
        wide = {"posteriors": ROWS.tolist()}
        answer = lasting.post(f"{address}/estimates", json=wide)
        assert answer.status_code == 422
        rows = np.random.default_rng(1).dirichlet([1, 1], 5000)
        rows[4000, 0] = 2
        answer = lasting.post(f"{address}/estimates", json={"posteriors": rows.tolist()})
        assert answer.json()["errors"][0]["row"] == 4000
        answer = lasting.post(
            f"{address}/estimates",
            content=json.dumps({"posteriors": rows.tolist()}).replace("]]", "],[1e999,0]]"),
            headers={"content-type": "application/json"},
        )
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["row"] in (4000, 5000)

    def test_where_no_matrix_belongs(self, lasting: httpx.Client) -> None:
        address = register(lasting, "elsewhere", COUNTED)
        matrix = ROWS.tolist()
        source = {"source": {"priors": {"legit": 0.5, "fraud": 0.5}}}
        places: list[dict[str, Any]] = [
            {**source, "metadata": {"posteriors": matrix}},
            {"source": {**source["source"], "metadata": {"posteriors": matrix}}},
            {"source": {"priors": {"posteriors": matrix}}},
            {"source": {"class_counts": {"features": matrix, "legit": 1, "fraud": 1}}},
            {"source": {"confusion_matrix": {"posteriors": matrix}}},
            {"source": {"validation": {"labels": ["legit"], "posteriors": matrix}}},
            {"source": {"training": {"features": matrix, "labels": ["legit"],
                                     "learner": "naive-bayes"}}},
            {"source": {"training": {"features": matrix, "labels": {"features": matrix},
                                     "learner": "naive-bayes"}}},
            {"source": {"training": {"features": [[1]], "labels": ["legit"],
                                     "learner": "naive-bayes",
                                     "parameters": {"posteriors": matrix}}}},
        ]  # fmt: skip
        for body in places:
            answer = lasting.post("/v1/models/elsewhere/versions", json=body)
            assert answer.status_code == 422, answer.text
        for more in (
            {"segment": {"posteriors": matrix}},
            {"options": {"posteriors": matrix}},
            {"options": {"prior": {"posteriors": matrix}}},
            {"labels": {"posteriors": matrix}},
            {"interval": {"features": matrix}},
            {"columns": {"features": matrix}},
            {"features": matrix},
        ):
            body = {"posteriors": [[0.5, 0.5]], **more}
            answer = lasting.post(f"{address}/estimates", json=body)
            assert answer.status_code == 422, answer.text
