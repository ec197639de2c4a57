"""JSON read in pieces: what the standard library reads in one go, within bounds."""

import gc
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core import deadline
from app.core.errors import InvalidInput
from app.formats.errors import TooLarge, Unparseable
from app.formats.json import DECODER
from app.formats.json_reader import (
    DEEPEST,
    LONGEST_NAME,
    LONGEST_TEXT,
    MOST_MEMORY,
    MOST_NAMES,
    PIECE,
    JsonReader,
    let_go,
)

NOTHING = object()
SPACES = st.sampled_from(["", "", " ", "\n", "\t \r\n"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
    st.sampled_from(["],[", '",', "},{", "\\", '"', "\U0001f600" * 9, ", ", "a, b, c, d, e, f"]),
)
BROKEN = (
    *("", "[", "[1", "[1,", "[,1]", "[1,,2]", "[1,]", "[1 2]", "[1]]", "[1] 2", "[NaN]", "[1e]"),
    *("[tru]", "{", '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', "{,}", "{1:2}", "[--1]"),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=40,
)


@pytest.fixture(autouse=True)
def _unfrozen() -> Iterator[None]:
    yield
    gc.unfreeze()


def read(text: str | bytes, piece: int = PIECE, most_rows: int | None = None) -> Any:
    body = text if isinstance(text, bytes) else text.encode()
    return JsonReader(body, DECODER, most_rows, piece).value()


def plain(text: str) -> Any:
    try:
        found = DECODER.decode(text)
        # UnicodeEncodeError, a ValueError, for lone surrogates.
        json.dumps(found, ensure_ascii=False).encode()
        return found
    except (ValueError, Unparseable):
        return NOTHING


class TestSame:
    @given(value=VALUES, gap=SPACES, ascii=st.booleans(), piece=st.integers(1, 60))
    def test_as_in_one_go(self, value: Any, gap: str, ascii: bool, piece: int) -> None:
        separators = f"{gap},{gap}", f"{gap}:{gap}"
        text = gap + json.dumps(value, ensure_ascii=ascii, separators=separators) + gap
        found = read(text, piece)
        assert found == value
        assert json.dumps(found) == json.dumps(value)

    @given(value=VALUES, piece=st.integers(1, 60), place=st.integers(0, 200), odd=st.data())
    def test_what_is_broken_is_refused(
        self, value: Any, piece: int, place: int, odd: st.DataObject
    ) -> None:
        text = json.dumps(value)
        place %= len(text) + 1
        change = odd.draw(st.sampled_from(["", ",", "]", "[", "{", "}", '"', "e", "-", ".", "\\"]))
        text = text[:place] + change + text[place + odd.draw(st.integers(0, 2)) :]
        expected = plain(text)
        if expected is NOTHING:
            with pytest.raises(Unparseable):
                read(text, piece)
        else:
            assert json.dumps(read(text, piece)) == json.dumps(expected)

    @pytest.mark.parametrize("number", ["1.5e+300", "-0.25", "12345678901234567890", "1e5", "-1"])
    def test_numbers_across_an_edge(self, number: str) -> None:
        for before in range(40):
            text = f"[{' ' * before}{number},{number}]"
            assert read(text, 16) == [json.loads(number)] * 2

    @pytest.mark.parametrize("text", BROKEN)
    @pytest.mark.parametrize("piece", [1, 2, 7, 1000])
    def test_broken(self, text: str, piece: int) -> None:
        with pytest.raises(Unparseable):
            read(text, piece)

    @pytest.mark.parametrize("piece", [1, 2, 7, 1000])
    def test_text_is_strict(self, piece: int) -> None:
        for body in (b'["\xff"]', b'["\xed\xa0\x80"]', b'["a\\ud800"]', b'[1,["\\udfff"],2]',
                     b'{"\\ud800":1}', b'["\xe2\x82"]'):  # fmt: skip
            with pytest.raises(Unparseable):
                read(body, piece)
        assert read(b'\xef\xbb\xbf["\\ud83d\\ude00"]', piece) == ["\U0001f600"]
        with pytest.raises(Unparseable, match="repeated"):
            read('{"a":1,"a":2}', piece)


class TestBounds:
    @pytest.mark.parametrize(
        "text",
        [
            '{"' + "a" * LONGEST_TEXT * 3 + '":1}',
            '{"a":"' + "\\n" * LONGEST_TEXT * 2 + '"}',
            '{"a":"' + "\\u0000" * LONGEST_TEXT + '"}',
            '["\U0001f600' + "a" * LONGEST_TEXT * 3 + '"]',
            "[0." + "1" * LONGEST_TEXT * 3 + "]",
            '{"' + "a" * (LONGEST_NAME + 1) + '":1' + " " * PIECE + "}",
        ],
        ids=["name", "escapes", "nul", "wide", "digits", "1001"],
    )
    def test_what_is_too_long(self, text: str) -> None:
        with pytest.raises(InvalidInput) as caught:
            read(text)
        assert len(str(caught.value)) < 500

    def test_names(self) -> None:
        many = ",".join(f'"{n}":[]' for n in range(2 * MOST_NAMES))
        for text in (f"{{{many}}}", f'[{{"a":{{{many}}}}}]'):
            with pytest.raises(TooLarge, match="names"):
                read(text)

    def test_where_it_is(self) -> None:
        with pytest.raises(InvalidInput) as caught:
            read('{"a":{"b":["' + "x" * LONGEST_TEXT * 2 + '"]}}')
        assert caught.value.faults[0].pointer == "/a/b"

    def test_rows(self) -> None:
        text = '{"a":[' + "[1]," * 100_000 + "[1]]}"
        assert len(read(text, most_rows=100_001)["a"]) == 100_001
        with pytest.raises(InvalidInput, match="rows"):
            read(text, most_rows=90_000)

    @pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
    def test_depth(self, opening: str) -> None:
        with pytest.raises(Unparseable, match="deep"):
            read(opening * 300_000)
        long = opening * (DEEPEST + 1) + '"' + '","'.join(["a" * 1000] * 500)
        with pytest.raises(Unparseable):
            read(long)

    def test_memory(self) -> None:
        with pytest.raises(TooLarge, match="memory"):
            read("[" + "{}," * (MOST_MEMORY // 272 + PIECE) + "{}]")

    def test_time(self) -> None:
        deadline.begin(0)
        try:
            with pytest.raises(deadline.OutOfTime):
                read("[" + "1," * PIECE + "1]")
        finally:
            deadline.begin(float("inf"))


@pytest.mark.parametrize(
    "item", ['[0.5,"x",3]', '"a, b, c, d, e, f"', "{}", "1", '[["a],"]]', "[]"]
)
def test_others_go_on_meanwhile(item: str) -> None:
    """Pieces take the interpreter for milliseconds, not for as long as all of it takes."""
    body = ('{"features":[' + ",".join([item] * 400_000) + "]}").encode()
    took: list[float] = []

    def work() -> None:
        begin = time.thread_time()
        let_go(read(body))
        took.append(time.thread_time() - begin)

    thread = threading.Thread(target=work)
    turns = 0
    thread.start()
    while thread.is_alive():
        time.sleep(0.001)
        turns += 1
    # Python lets others have a turn every five milliseconds; a fifth of them is plenty.
    assert turns > took[0] / 0.025
