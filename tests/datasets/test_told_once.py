"""What is wrong with many rows, or many files, is told once, with a count."""

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import InvalidInput
from app.datasets import columns
from tests.datasets.test_dataset import CLASSES, read, resolved, said, table, write


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.5, None, float("nan"), -0.5, 0.7, float("inf")]),
            st.sampled_from(["BE", "NL", None]),
            st.sampled_from(["legit", "fraud", "Fraud", "", None]),
        ),
        min_size=1,
        max_size=60,
    )
)
def test_each_kind_of_wrong_row_is_told_once_and_counted(rows: list[Any]) -> None:
    legit, country, label = zip(*rows, strict=True) if rows else ((), (), ())
    batch = pa.RecordBatch.from_pydict(
        {
            "legit": pa.array(legit, pa.float64()),
            "fraud": pa.array([0.5] * len(rows), pa.float64()),
            "country": pa.array(country, pa.string()),
            "label": pa.array(label, pa.string()),
        }
    )
    wrong = columns.Wrong(len(rows))
    matrix = columns.posteriors(batch, CLASSES, wrong)
    columns.labels(batch.column("label"), CLASSES, wrong)
    columns.group_column(batch.column("country"), "country", wrong, "")
    columns.checked(matrix, wrong)

    def kind(row: Any) -> str | None:
        """What is wrong first with a row, in the order in which rows are looked at."""
        if row[0] is None:
            return "column legit is missing"
        if row[2] not in CLASSES:
            return f"{'null' if row[2] is None else repr(row[2])} is not a label"
        if row[1] is None:
            return "column country is missing"
        if not math.isfinite(row[0]):
            return "holds a NaN or an infinity"
        if row[0] < 0:
            return "holds a negative number"
        return None if row[0] == 0.5 else "sums to 1.2"

    kinds = [kind(row) for row in rows]
    told = wrong.first()
    assert len(told) == len(set(kinds) - {None})
    assert wrong.count == sum(kind is not None for kind in kinds)
    for row, message in told:
        expected = kinds[row]
        assert expected is not None
        assert message.startswith(expected)
        assert kinds.index(expected) == row
        others = kinds.count(expected) - 1
        assert (f"; and {others} more like it, at least" in message) == (others > 0)


def test_rows_of_no_partition_are_one_fault(tmp_path: Path) -> None:
    for k, country in enumerate(("BE", "__HIVE_DEFAULT_PARTITION__", "NL")):
        path = tmp_path / "scores" / f"home country={country}" / "a.parquet"
        write(path, table(5000, k).drop_columns("country"), row_group_size=500)
    asked: dict[str, Any] = {"group_by": ("home country",)}
    with pytest.raises(InvalidInput) as caught:
        read(resolved(tmp_path, "scores/", **asked))
    (message,) = said(caught.value)
    assert message.count("every row needs a group") == 1
    assert "more like it, at least" in message
    advice = message.split("by the filter: ")[1].split(";")[0]
    _, pieces, counts = read(resolved(tmp_path, "scores/", filter=advice, **asked))
    assert (counts.rows, counts.skipped_rows) == (10000, 0)
    assert {name for piece in pieces for name in piece.names} == {("BE",), ("NL",)}
    _, _, counts = read(resolved(tmp_path, "scores/", on_error="skip", **asked))
    assert (counts.rows, counts.skipped_rows, counts.skipped_files) == (10000, 5000, 0)


def test_one_thing_that_is_wrong_with_many_files_is_told_once(tmp_path: Path) -> None:
    for k in range(30):
        rows = table(3) if k == 7 else table(3).drop_columns("fraud" if k % 2 else "legit")
        write(tmp_path / f"{k:02}.parquet", rows)
    with pytest.raises(InvalidInput) as caught:
        resolved(tmp_path, "*.parquet")
    assert said(caught.value) == [
        "00.parquet: has no column 'legit'; and 14 more files like it",
        "01.parquet: has no column 'fraud'; and 13 more files like it",
    ]
    assert caught.value.count == 2
