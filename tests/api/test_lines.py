"""Plain lines of NDJSON: what is read in pieces is what the strict reader reads, or left to it."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.arrays import Floats
from app.core.errors import InvalidInput
from app.formats import ndjson, ndjson_lines
from app.formats.errors import Unparseable
from app.formats.json_reader import PIECE

NAMES = ("a", 'b"{,', "c\\ é", "d%b")
ROWS = np.random.default_rng(0).dirichlet(np.ones(len(NAMES)), 60)


def body(rows: Floats = ROWS, separators: tuple[str, str] = (",", ":"), end: str = "\n") -> bytes:
    written = (
        json.dumps(dict(zip(NAMES, row, strict=True)), separators=separators)
        for row in rows.tolist()
    )
    return end.join(written).encode()


def strict(content: bytes) -> dict[str, Floats] | None:
    """What the strict reader makes of it; None for anything but numbers everywhere."""
    try:
        frame = ndjson._decoded(content, 10_000, 100)
    except (Unparseable, InvalidInput):
        return None
    columns = {}
    for name, column in frame.columns.items():
        found = column.numbers()
        if found is None or len(found.missing) or len(found.wrong):
            return None
        columns[name] = found.values
    return columns


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\t", " :\t")])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_many_rows_bit_for_bit(separators: tuple[str, str], end: str) -> None:
    rows = np.random.default_rng(1).dirichlet(np.ones(len(NAMES)), 4 * PIECE // 100)
    found = ndjson_lines.columns(body(rows, separators, end))
    assert found is not None
    assert tuple(found) == NAMES
    np.testing.assert_array_equal(np.column_stack(list(found.values())), rows)


def test_written_lines_give_the_rows_again() -> None:
    rows = np.random.default_rng(1).dirichlet(np.ones(len(NAMES)), 12_000)
    written = b"".join(ndjson.encode(NAMES, rows))
    assert written.endswith(b"}\n")
    read = [json.loads(line) for line in written.splitlines()]
    assert read == [dict(zip(NAMES, row, strict=True)) for row in rows.tolist()]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.5", "null"),
        ("0.5", "NaN"),
        ("0.5", '"0.5"'),
        ("0.5", "[0.5]"),
        ("0.5", "01"),
        ("0.5", ""),
        ("0.5", "0.5 0.5"),
        ('{"x":0.5,"y":0.5}', '{"y":0.5,"x":0.5}'),
        ('{"x":0.5,"y":0.5}', '{"x":0.5,"x":0.5}'),
        ('{"x":0.5,"y":0.5}', '{"x":0.5}'),
        ('{"x":0.5,"y":0.5}', '{0.5"x":,"y":0.5}'),
        ('{"x":0.5,"y":0.5}', '0.5{"x":,"y":0.5}'),
        ('{"x":0.5,"y":0.5}', '{"x":,"y":0.5}0.5'),
        ('{"x":0.5,"y":0.5}', '{"x":0.5,"y":0.5}{"x":0.5,"y":0.5}'),
        ('{"x":0.5,"y":0.5}', '{"x":0.5,\n"y":0.5}'),
        ('{"x":0.5,"y":0.5}', "\x000.5\x010.5}"),
        ('{"x":0.5,"y":0.5}', "[0.5,0.5]"),
        ('{"x":0.5,"y":0.5}', "0.5\n0.5"),
    ],
)
@pytest.mark.parametrize("place", [0, 500, 999])
def test_one_odd_line_leaves_all_to_the_strict_reader(old: str, new: str, place: int) -> None:
    written = ['{"x":0.25,"y":0.75}'] * 1000
    written[place] = '{"x":0.5,"y":0.5}'.replace(old, new, 1)
    assert ndjson_lines.columns("\n".join(written).encode()) is None


@given(
    st.lists(
        st.tuples(
            st.integers(0, len(body()) - 1),
            st.integers(0, 3),
            st.sampled_from([b"", b"\x00", b"\x01", *(bytes([c]) for c in b'{}[],:"\n 09.e-\\')]),
        ),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=400, deadline=None)
def test_whatever_is_changed_both_readers_agree(changes: list[tuple[int, int, bytes]]) -> None:
    content = body()
    for place, removed, inserted in changes:
        content = content[:place] + inserted + content[place + removed :]
    found = ndjson_lines.columns(content)
    if found is None:
        return
    expected = strict(content)
    assert expected is not None
    assert list(found) == list(expected)
    for name, column in found.items():
        np.testing.assert_array_equal(column, expected[name])


def test_too_many_rows_are_refused() -> None:
    with pytest.raises(InvalidInput, match="more than 50 rows"):
        ndjson.decode(body(), 50, 100)
