"""Row filters against SQLite on the same rows, and what is refused of them."""

import math
import sqlite3
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import InvalidInput
from app.datasets import filters
from app.datasets.conditions import Conditions

AT = "/dataset/filter"
TEXTS = ["", "BE", "NL", "it's", 'a "b"', "é", "10", "null", "or"]
COLUMNS = {"i": pa.int64(), "f": pa.float64(), "s": pa.string(), "b": pa.bool_(), "and": pa.int8()}


def mask(text: str, table: pa.Table) -> list[bool]:
    node = filters.parse(text, AT)
    found = Conditions(
        {n: c.type for n, c in zip(table.column_names, table.columns, strict=True)},
        table.column,
        AT,
    ).met(node)
    return [bool(x) for x in found.to_pylist()]


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


floats = st.integers(-24, 24).map(lambda n: n / 8)
numbers = (
    st.integers(-3, 3).map(str)
    | floats.map(str)
    | st.sampled_from(["1e3", "-300", "128", "1e30", "-1e30", "+2", ".5", "2.", "0.1"])
)
literals = {
    "i": numbers,
    "f": numbers,
    "and": numbers,
    "s": st.sampled_from(TEXTS).map(quoted),
    "b": st.sampled_from(["true", "false", "TRUE"]),
}
ORDERED = ["=", "!=", "<>", "<", "<=", ">", ">="]


@st.composite
def leaves(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(list(literals)))
    column = '"and"' if name == "and" else draw(st.sampled_from([name, f'"{name}"']))
    match draw(st.integers(0, 4)):
        case 0:
            return f"{column} is {draw(st.sampled_from(['', 'not ', 'NOT ']))}null"
        case 1:
            listed = draw(st.lists(literals[name], min_size=1, max_size=3))
            return (
                f"{column} {draw(st.sampled_from(['in', 'not in', 'NOT IN']))} ({','.join(listed)})"
            )
        case _:
            operator = draw(st.sampled_from(ORDERED[:3] if name == "b" else ORDERED))
            return f"{column}{draw(st.sampled_from(['', ' ']))}{operator} {draw(literals[name])}"


texts = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        inner.map("({})".format),
        inner.map("not {}".format),
        st.tuples(inner, st.sampled_from([" and ", " or ", " AND "]), inner).map("".join),
    ),
    max_leaves=8,
)
rows = st.lists(
    st.tuples(
        st.none() | st.integers(-3, 3),
        st.none() | floats,
        st.none() | st.sampled_from(TEXTS),
        st.none() | st.booleans(),
        st.none() | st.integers(-128, 127),
    ),
    min_size=1,
    max_size=12,
)


def tabled(given_rows: list[Any]) -> pa.Table:
    cells = [list(column) for column in zip(*given_rows, strict=True)]
    columns = zip(COLUMNS.items(), cells, strict=True)
    return pa.table({name: pa.array(column, kind) for (name, kind), column in columns})


@given(texts, rows)
def test_filters_choose_the_rows_that_sqlite_chooses(text: str, given_rows: list[Any]) -> None:
    with sqlite3.connect(":memory:") as base:
        base.execute('create table t (i integer, f real, s text, b boolean, "and" integer)')
        base.executemany("insert into t values (?, ?, ?, ?, ?)", given_rows)
        chosen = {row for (row,) in base.execute(f"select rowid - 1 from t where {text}")}
    base.close()
    columns = [list(column) for column in zip(*given_rows, strict=True)]
    table = pa.table(
        {n: pa.array(c, t) for (n, t), c in zip(COLUMNS.items(), columns, strict=True)}
    )
    assert {k for k, met in enumerate(mask(text, table)) if met} == chosen


@given(st.text(st.sampled_from("abi=<>!'\"(),.109e-+ \n\x00andorNOTnull;é\ud800"), max_size=30))
def test_whatever_is_written_is_a_filter_or_an_error_with_a_place(text: str) -> None:
    table = pa.table({"a": [1], "b": ["x"], "i": [1.5]})
    try:
        mask(text, table)
        return
    except InvalidInput as error:
        fault = error.faults[0]
    assert fault.pointer == AT
    assert fault.message.startswith("at character ")
    fault.message.encode()


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("", 1, "must be a column"),
        ("i", 2, "must be =, !=, <, <=, >, >=, in or is"),
        ("i = ", 5, "must be a number"),
        ("i == 1", 4, "must be a number"),
        ("1 = i", 1, "must be a column"),
        ("i = j", 5, "must be a number, 'text' in single quotes"),
        ("i = null", 5, "write: is null"),
        ("i in (1, null)", 10, "write: is null"),
        ("i = 1 2", 7, "must end here"),
        ("i = 1; drop table t", 6, "';' is not understood"),
        ("i = 1 and", 10, "must be a column"),
        ("(i = 1", 7, "must be )"),
        ("i = 1)", 6, "must end here"),
        ("i in ()", 7, "must be a number"),
        ("i in 1", 6, "must be ("),
        ("i is 1", 6, "must be null"),
        ("s = 'a", 5, "a quote that is not closed"),
        ('"s = 1', 1, "a quote that is not closed"),
        ('"" = 1', 1, "is no column"),
        ("j = 1", 1, "is no column; there are i, f, s, b, and"),
        ("s = 1", 1, "is of type string; compare it with text"),
        ("i = '1'", 1, "is of type int64; compare it with a number"),
        ("i = true", 1, "compare it with a number"),
        ("b = 1", 1, "compare it with true or false"),
        ("b < true", 1, "compare it by = or !="),
        ("i = 1e400", 5, "beyond 1e300"),
        ("i = " + "1" * 70, 5, "more than 60 characters"),
        ("i = 0x10", 5, "is not understood"),
        ("i = 1.2.3", 5, "is not understood"),
        ("__import__('os')", 11, "must be ="),
        ("i = 1 and " * 3 + "pc.field(1)", 33, "is not understood"),
        ("(" * 40 + "i = 1" + ")" * 40, 34, "nested more than 32 deep"),
        ("i in (" + "1," * 1000 + "1)", 2007, "more than 1000 values"),
    ],
)
def test_errors_name_the_place(text: str, place: int, said: str) -> None:
    table = pa.table({n: pa.array([], t) for n, t in COLUMNS.items()})
    with pytest.raises(InvalidInput) as caught:
        mask(text, table)
    message = caught.value.faults[0].message
    assert message.startswith(f"at character {place}:")
    assert said in message


def test_the_text_is_bounded_and_many_nots_are_not_deep() -> None:
    with pytest.raises(InvalidInput, match="longer than 4096"):
        filters.parse("i = 1 or " * 1000 + "i = 1", AT)
    table = pa.table({"i": [1, 2, None]})
    assert mask("not " * 1001 + "i = 1", table) == [False, True, False]
    assert mask(" or ".join(["i = 1"] * 400), table) == [True, False, False]


@pytest.mark.parametrize(
    ("kind", "values", "test", "chosen"),
    [
        (pa.float32(), [0.1, 0.2, math.nan, None], "x <= 0.1", [0]),
        (pa.float32(), [0.1, 0.2, math.nan, None], "not x <= 0.1", [1, 2]),
        (pa.float64(), [0.1, math.inf, math.nan, None], "x != 0.1", [1, 2]),
        (pa.float64(), [0.1, math.inf, math.nan, None], "not x = 0.1", [1, 2]),
        (pa.float64(), [0.1, math.nan, None], "x is null", [2]),
        (pa.uint8(), [0, 200, None], "x > -1", [0, 1]),
        (pa.uint8(), [0, 200, None], "not x < 256", []),
        (pa.uint64(), [0, 2**64 - 1, None], "x >= 18446744073709551615", [1]),
        (pa.int64(), [2**62, 2**62 + 1], "x = 4611686018427387905", [1]),
        (pa.decimal128(9, 2), [Decimal("1.10"), Decimal("2.00"), None], "x > 1.1", [1]),
        (pa.decimal128(9, 2), [Decimal("1.10"), Decimal("2.00"), None], "x in (2, 3)", [1]),
        (pa.date32(), [date(2026, 1, 31), None], "x >= '2026-01-31'", [0]),
        (pa.timestamp("ms"), [datetime(2026, 1, 31, 1), None], "x > '2026-01-31'", [0]),
        (
            pa.timestamp("us", "Europe/Brussels"),
            [datetime(2026, 1, 31, 1, tzinfo=UTC), None],
            "x = '2026-01-31T02:00:00+01:00' and x = '2026-01-31T01:00:00'",
            [0],
        ),
        (pa.dictionary(pa.int8(), pa.string()), ["BE", "NL", None], "x != 'BE'", [1]),
        (pa.dictionary(pa.int8(), pa.string()), ["BE", "NL", None], "x not in ('BE')", [1]),
        (pa.large_string(), ["BE", "NL", None], "x < 'C'", [0]),
        (pa.null(), [None, None], "x = 1 or not x = 'a' or x not in (1)", []),
        (pa.null(), [None, None], "x is null", [0, 1]),
        (pa.list_(pa.int8()), [[1], None], "x is not null", [0]),
    ],
)
def test_types_of_columns(kind: Any, values: list[Any], test: str, chosen: list[int]) -> None:
    table = pa.table({"x": pa.array(values, kind)})
    assert [k for k, met in enumerate(mask(test, table)) if met] == chosen


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (pa.date32(), "x = '31.1.2026'"),
        (pa.date32(), "x = 20260131"),
        (pa.timestamp("us"), "x = '2026-01-31T00:00:00Z'"),
        (pa.timestamp("s"), "x = '2026-01-31T00:00:00.5'"),
        (pa.timestamp("ns"), "x = '9000-01-01'"),
        (pa.decimal128(3, 2), "x = 1000"),
        (pa.list_(pa.int8()), "x = 1"),
        (pa.binary(), "x = 'a'"),
        (pa.string(), "x = '\ud800'"),
    ],
)
def test_values_that_do_not_fit_a_column_are_refused(kind: Any, test: str) -> None:
    with pytest.raises(InvalidInput, match="at character 1: 'x'"):
        mask(test, pa.table({"x": pa.array([], kind)}))
