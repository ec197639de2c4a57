"""Data sets as partitions: every format, what is malformed in them, groups, filters, bounds."""

import gzip
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from app.core.arrays import probability_rows
from app.core.errors import InvalidInput
from app.datasets import plan
from app.datasets.arrow import ExtraMissing
from app.datasets.dataset import Asked, Resolved, resolve
from app.datasets.partition import Counts, FilePiece
from app.datasets.reading import source
from app.datasets.roots import Roots
from tests.patience import until

CLASSES = ("legit", "fraud")


def table(n: int, seed: int = 0, kind: Any = np.float64) -> pa.Table:
    rng = np.random.default_rng(seed)
    fraud = rng.beta(0.5, 5, n).astype(kind)
    return pa.table(
        {
            "id": np.arange(n),
            "legit": (1 - fraud).astype(kind),
            "fraud": fraud,
            "country": rng.choice(["BE", "NL", "FR"], n),
            "amount": np.round(rng.gamma(2, 20, n), 2),
            "label": rng.choice(CLASSES, n),
        }
    )


def write(path: Path, rows: pa.Table, **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(rows, path, **options)
    elif path.suffix in (".arrow", ".feather"):
        with pa.ipc.new_file(path, rows.schema) as writer:
            writer.write_table(rows, max_chunksize=options.get("row_group_size"))
    elif path.suffix == ".gz":
        with gzip.open(path, "wb") as file:
            pa_csv.write_csv(rows, file)
    else:
        pa_csv.write_csv(rows, path)


def resolved(root: Path, path: str, **asked: Any) -> Resolved:
    return resolve(Roots.of([str(root)]), Asked(path, **asked), CLASSES)


def read(found: Resolved) -> tuple[np.ndarray[Any, Any], list[FilePiece], Counts]:
    parts = pickle.loads(pickle.dumps(found.partitions))
    pieces = [piece for part in parts for piece in part.pieces()]
    counts = found.skipped
    for piece in pieces:
        counts = counts.plus(piece)
        assert piece.posteriors.flags.forc
    rows = [p.posteriors for p in pieces] or [np.empty((0, len(CLASSES)))]
    return np.concatenate(rows), pieces, counts


def matrix(rows: pa.Table, names: Sequence[str] = CLASSES) -> np.ndarray[Any, Any]:
    return np.column_stack([rows.column(name).to_numpy() for name in names])


def said(error: InvalidInput) -> list[str]:
    return [fault.message for fault in error.faults]


@pytest.mark.parametrize(
    "name", ["a.parquet", "a.arrow", "a.feather", "a.csv", "a.csv.gz", "s.arrow"]
)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_every_format_gives_the_rows_that_were_written(
    tmp_path: Path, name: str, kind: Any
) -> None:
    rows = table(5000, kind=kind)
    if name == "s.arrow":
        with pa.ipc.new_stream(tmp_path / name, rows.schema) as writer:
            writer.write_table(rows, max_chunksize=700)
    else:
        write(tmp_path / name, rows, row_group_size=700)
    found = resolved(tmp_path, name, label="label", group_by=("country",))
    values, pieces, counts = read(found)
    text = "csv" in name
    assert values.dtype == (np.float64 if text else kind)
    assert found.single == (values.dtype == np.float32)
    np.testing.assert_allclose(values, matrix(rows), rtol=0, atol=1e-6 if text else 1e-7)
    countries = [p.names[g][0] for p in pieces for g in p.groups]  # type: ignore[union-attr]
    assert countries == rows.column("country").to_pylist()
    labels = [CLASSES[k] for p in pieces for k in p.labels]  # type: ignore[union-attr]
    assert labels == rows.column("label").to_pylist()
    assert counts.rows == 5000
    assert found.rows == (5000 if "parquet" in name else None)


def test_rows_are_rescaled_as_those_of_a_request_are(tmp_path: Path) -> None:
    values = matrix(table(1000))
    values[3] *= 1 + 5e-7
    values[7] *= 1 + 5e-4
    write(tmp_path / "a.parquet", pa.table(dict(zip(CLASSES, values.T, strict=True))))
    got, _, counts = read(resolved(tmp_path, "a.parquet"))
    expected = probability_rows(values, "")
    np.testing.assert_array_equal(got, expected.values)
    assert counts.renormalised == expected.renormalised == 1


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.float16(), [0.25, 1.0]),
        (pa.int8(), [0, 1]),
        (pa.uint64(), [0, 1]),
        (pa.decimal128(5, 3), [Decimal("0.125"), Decimal("1")]),
    ],
)
def test_types_of_posteriors(tmp_path: Path, kind: Any, values: list[Any]) -> None:
    other = [1 - v for v in values]
    write(
        tmp_path / "a.parquet",
        pa.table({n: pa.array(v, kind) for n, v in zip(CLASSES, (other, values), strict=True)}),
    )
    got, _, _ = read(resolved(tmp_path, "a.parquet"))
    np.testing.assert_array_equal(got[:, 1], np.array(values, np.float64))


def test_files_are_read_without_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(1000)
    write(tmp_path / "a.parquet", rows)
    partition = resolved(tmp_path, "a.parquet").partitions[0]
    with partition.opened() as opened, source(opened) as file:
        assert isinstance(file, pa.OSFile)
        assert file.read() == (tmp_path / "a.parquet").read_bytes()

    def missing(path: str) -> pa.OSFile:
        raise FileNotFoundError(path)

    monkeypatch.setattr(pa, "OSFile", missing)
    with partition.opened() as opened, source(opened) as file:
        assert isinstance(file, pa.PythonFile)
    np.testing.assert_array_equal(next(partition.pieces()).posteriors, matrix(rows))


def opened_below(folder: Path) -> list[str]:
    """Files of a folder that this process has open."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        # The list itself was one of them.
        with suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return [name for name in found if name.startswith(str(folder))]


def test_read_files_are_closed(tmp_path: Path) -> None:
    for name in ("a.parquet", "a.arrow", "a.csv"):
        write(tmp_path / name, table(1000))
    found = resolved(tmp_path, "a.*")
    with found.partitions[0].opened():
        assert len(opened_below(tmp_path)) == 1
    read(found)
    # pyarrow's own threads may hold a file for a moment after its last row.
    until(lambda: not opened_below(tmp_path), what="a file stays open")


def test_columns_are_mapped_by_class_and_projected(tmp_path: Path) -> None:
    rows = table(10).rename_columns(["id", "p.0", "p 1", "country", "amount", "label"])
    write(tmp_path / "a.parquet", rows)
    found = resolved(tmp_path, "a.parquet", columns={"legit": "p.0", "fraud": "p 1"})
    np.testing.assert_array_equal(read(found)[0], matrix(rows, ("p.0", "p 1")))
    assert [name for name, _ in found.partitions[0].types] == ["p 1", "p.0"]


def test_partitions_are_row_groups_of_bounded_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table(5000)
    write(tmp_path / "a.parquet", rows, row_group_size=300)
    write(tmp_path / "b.parquet", rows.slice(0, 0))
    monkeypatch.setattr(plan, "PARTITION_ROWS", 1000)
    found = resolved(tmp_path, "*.parquet")
    assert [sum(filter(None, p.rows)) for p in found.partitions] == [900] * 5 + [500, 0]
    assert found.partitions[1].name == "a.parquet, row groups 3 to 5"
    assert found.partitions[-1].name == "b.parquet"
    assert list(found.partitions[-1].pieces()) == []
    np.testing.assert_allclose(read(found)[0], matrix(rows), atol=1e-15)
    again = resolved(tmp_path, "*.parquet")
    assert again.digest == found.digest
    assert resolved(tmp_path, "*.parquet", filter="id > 1").digest != found.digest


def test_folders_give_columns_to_filter_and_group_by(tmp_path: Path) -> None:
    for country in ("BE", "NL", "a%20b", "__HIVE_DEFAULT_PARTITION__"):
        for month in (1, 12):
            path = tmp_path / "scores" / f"country={country}" / f"month={month}" / "a.parquet"
            write(path, table(50, month).drop_columns("country"))
    found = resolved(
        tmp_path,
        "scores/",
        filter="month = 12 and country is not null",
        group_by=("country", "month"),
    )
    assert [p.file.path for p in found.partitions] == [
        f"scores/country={c}/month=12/a.parquet" for c in ("BE", "NL", "a%20b")
    ]
    _, pieces, _ = read(found)
    assert [p.names for p in pieces] == [((c, "12"),) for c in ("BE", "NL", "a b")]
    both = "country = 'BE' and amount > 30 or month != 1 and not country in ('BE', 'NL')"
    _, pieces, counts = read(resolved(tmp_path, "scores/", filter=both))
    expected = sum((np.asarray(table(50, month).column("amount")) > 30).sum() for month in (1, 12))
    assert counts.rows == expected + 50
    with pytest.raises(InvalidInput, match="country is missing; every row needs a group"):
        read(resolved(tmp_path, "scores/", group_by=("country",)))
    with pytest.raises(InvalidInput, match="passes no file"):
        resolved(tmp_path, "scores/", filter="month = 2")
    with pytest.raises(InvalidInput, match="compare it with a number"):
        resolved(tmp_path, "scores/", filter="month = 'May'")


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.csv"])
def test_filters_choose_rows_before_they_are_checked(tmp_path: Path, name: str) -> None:
    rows = table(3000)
    values = np.asarray(rows.column("fraud")).copy()
    values[::7] = 7.0
    rows = rows.set_column(2, "fraud", pa.array(values))
    write(tmp_path / name, rows, row_group_size=500)
    wrong = np.zeros(3000, bool)
    wrong[::7] = True
    got, _, counts = read(resolved(tmp_path, name, filter="fraud <= 1 and country = 'BE'"))
    chosen = ~wrong & (np.asarray(rows.column("country")) == "BE")
    np.testing.assert_allclose(got, matrix(rows)[chosen], atol=1e-6)
    assert counts.skipped_rows == 0


def test_a_filter_may_leave_few_rows_or_none(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", table(1000), row_group_size=100)
    found = resolved(tmp_path, "a.parquet", filter="id >= 350 and id < 360 or id = 999")
    expected = matrix(table(1000))[[*range(350, 360), 999]]
    np.testing.assert_allclose(read(found)[0], expected, atol=1e-15)
    assert read(resolved(tmp_path, "a.parquet", filter="id < 0"))[2].rows == 0


def test_groups_of_several_types(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "legit": [0.5] * 4,
            "fraud": [0.5] * 4,
            "n": pa.array([1, 2, 1, 1], pa.int16()),
            "day": [date(2026, 1, 31)] * 3 + [date(2026, 2, 1)],
            "new": [True, True, True, False],
            "d": pa.array(["x", "y", "x", "x"]).dictionary_encode(),
        }
    )
    write(tmp_path / "a.parquet", rows)
    _, pieces, _ = read(resolved(tmp_path, "a.parquet", group_by=("n", "day", "new", "d")))
    assert pieces[0].groups is not None
    assert [pieces[0].names[g] for g in pieces[0].groups] == [
        ("1", "2026-01-31", "true", "x"),
        ("2", "2026-01-31", "true", "y"),
        ("1", "2026-01-31", "true", "x"),
        ("1", "2026-02-01", "false", "x"),
    ]
    many = pa.table({"legit": np.ones(2000), "fraud": np.zeros(2000), "n": np.arange(2000)})
    write(tmp_path / "b.parquet", many)
    with pytest.raises(InvalidInput, match="more than 1,000 groups"):
        read(resolved(tmp_path, "b.parquet", group_by=("n",)))
    _, pieces, _ = read(resolved(tmp_path, "b.parquet", group_by=("n",), filter="n < 1000"))
    assert len(pieces[0].names) == 1000


BAD_ROWS = {
    17: (np.nan, 0.5, "holds a NaN or an infinity"),
    18: (-0.5, 1.5, "holds a negative number"),
    650: (0.5, 0.6, "sums to 1.1, not to 1"),
    651: (np.inf, 0.0, "holds a NaN or an infinity"),
}


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.csv"])
def test_rows_that_are_no_probabilities_are_named_or_left_out(tmp_path: Path, name: str) -> None:
    rows = table(1000)
    values = matrix(rows)
    for row, (legit, fraud, _) in BAD_ROWS.items():
        values[row] = legit, fraud
    rows = rows.set_column(1, "legit", pa.array(values[:, 0])).set_column(
        2, "fraud", pa.array(values[:, 1])
    )
    write(tmp_path / name, rows, row_group_size=600)
    unit = {"a.parquet": "row group", "a.arrow": "record batch"}.get(name)
    messages = [
        f"{name}, {f'{unit} {row // 600}, row {row % 600}' if unit else f'row {row}'}: {message}"
        for row, (_, _, message) in BAD_ROWS.items()
    ]
    if name != "a.arrow":
        # The last is like the first, and told with it where they are read together.
        messages = [f"{messages[0]}; send finite probabilities; and 1 more like it", *messages[1:3]]
    with pytest.raises(InvalidInput) as caught:
        read(resolved(tmp_path, name))
    assert caught.value.faults[0].pointer == "/dataset"
    for told, message in zip(said(caught.value), messages, strict=False):
        assert told.startswith(message)
    got, _, counts = read(resolved(tmp_path, name, on_error="skip"))
    right = np.setdiff1d(np.arange(1000), list(BAD_ROWS))
    np.testing.assert_allclose(got, matrix(rows)[right], atol=1e-6)
    assert (counts.rows, counts.skipped_rows, counts.skipped_files) == (996, 4, 0)
    assert len(counts.messages) == len(messages)
    assert all(t.startswith(m) for t, m in zip(counts.messages, messages, strict=True))


def test_missing_numbers_labels_and_groups_are_named_or_left_out(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "legit": [0.5, None, 0.5, 0.5, 0.5, 0.5],
            "fraud": [0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
            "label": ["legit", "legit", "Fraud", None, "fraud", "fraud"],
            "country": ["BE", "BE", "BE", "BE", None, "NL"],
        }
    )
    write(tmp_path / "a.parquet", rows)
    asked: dict[str, Any] = {"label": "label", "group_by": ("country",)}
    messages = (
        "a.parquet, row group 0, row 1: column legit is missing; every row needs a number",
        "a.parquet, row group 0, row 2: 'Fraud' is not a label of the model",
        "a.parquet, row group 0, row 3: null is not a label of the model",
        "a.parquet, row group 0, row 4: column country is missing; every row needs a group; "
        "leave such rows out by the filter: country is not null",
    )
    with pytest.raises(InvalidInput) as caught:
        read(resolved(tmp_path, "a.parquet", **asked))
    assert tuple(said(caught.value)) == messages
    assert caught.value.count == 4
    _, pieces, counts = read(resolved(tmp_path, "a.parquet", on_error="skip", **asked))
    assert counts.messages == messages
    assert pieces[0].labels is not None
    assert pieces[0].labels.tolist() == [0, 1]
    assert pieces[0].names == (("BE",), ("NL",))


def test_a_wrong_column_is_known_before_any_row_is_read(tmp_path: Path) -> None:
    good = table(100)
    write(tmp_path / "a.parquet", good)
    write(tmp_path / "b.parquet", good.drop_columns("fraud"))
    write(tmp_path / "c.parquet", good.set_column(2, "fraud", good.column("country")))
    write(tmp_path / "d.parquet", good.set_column(5, "label", good.column("id")))
    (tmp_path / "e.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    (tmp_path / "f.parquet").write_bytes(b"")
    messages = [
        "b.parquet: has no column 'fraud'",
        "c.parquet: column 'fraud' is of type string; send numbers",
        "d.parquet: column 'label' is of type int64; labels are strings",
        "e.parquet: cannot be read: Parquet magic bytes not found",
        "f.parquet: cannot be read: Parquet file size is 0 bytes",
    ]
    with pytest.raises(InvalidInput) as caught:
        resolved(tmp_path, "*.parquet", label="label")
    told = said(caught.value)
    assert all(t.startswith(m) for t, m in zip(told, messages, strict=True))
    got, _, counts = read(resolved(tmp_path, "*.parquet", label="label", on_error="skip"))
    assert len(got) == 100
    assert (counts.skipped_rows, counts.skipped_files) == (300, 5)
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(InvalidInput):
        resolved(tmp_path, "*.parquet", label="label", on_error="skip")


def spoiled(path: Path, group: int) -> None:
    """Damage the bytes of one row group's column."""
    chunk = pq.ParquetFile(path).metadata.row_group(group).column(2)
    content = bytearray(path.read_bytes())
    start = chunk.data_page_offset + 40
    content[start : start + 200] = bytes(byte ^ 0xA5 for byte in content[start : start + 200])
    path.write_bytes(content)


@pytest.mark.parametrize("size", [50_000, 200_000])
def test_a_broken_row_group_is_named_or_left_out_with_its_rows(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.parquet"
    rows = table(3 * size)
    write(path, rows, row_group_size=size, write_page_checksum=True, use_dictionary=False)
    spoiled(path, 1)
    with pytest.raises(InvalidInput, match=r"a.parquet, row group 1: cannot be read: "):
        read(resolved(tmp_path, "a.parquet"))
    got, _, counts = read(resolved(tmp_path, "a.parquet", on_error="skip"))
    assert counts.rows + counts.skipped_rows == 3 * size
    assert counts.skipped_rows <= size
    assert counts.messages[0].startswith("a.parquet, row group 1: cannot be read: ")
    np.testing.assert_array_equal(got[:size], matrix(rows)[:size])
    np.testing.assert_array_equal(got[-size:], matrix(rows)[-size:])


@pytest.mark.parametrize("name", ["a.arrow", "s.arrow", "a.csv.gz"])
def test_truncated_files_of_other_formats(tmp_path: Path, name: str) -> None:
    rows = table(300_000)
    if name == "s.arrow":
        with pa.ipc.new_stream(tmp_path / name, rows.schema) as writer:
            writer.write_table(rows, max_chunksize=50_000)
    else:
        write(tmp_path / name, rows, row_group_size=50_000)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) * 2 // 3])
    write(tmp_path / f"0{name}", rows.slice(0, 10))
    with pytest.raises(InvalidInput, match=rf"{name}.*: cannot be read: "):
        read(resolved(tmp_path, f"*{name}"))
    _, _, counts = read(resolved(tmp_path, f"*{name}", on_error="skip"))
    assert counts.skipped_files == 1
    assert 10 <= counts.rows < 300_000


def test_csv_cells_and_rows_that_are_none(tmp_path: Path) -> None:
    good = [f"{1 - k / 400:.4f},{k / 400:.4f},BE,{k}" for k in range(200_000 // 1000)] * 1000
    lines = list(good)
    lines[5] = "0.5,abc,BE,1"
    lines[150_000] = "0.5,0.5,BE"
    lines[150_001] = "0.5,0.5,BE,1,2"
    lines[150_002] = "0.7,0.5,BE,1"
    lines[199_999] = "0.5,,BE,1"
    content = "legit,fraud,country,amount\n" + "\n".join(lines) + "\n"
    (tmp_path / "a.csv").write_text(content)
    bad = [5, 150_000, 150_001, 150_002, 199_999]
    messages = [
        "a.csv, row 5: column fraud holds 'abc', not of type double",
        "a.csv, row 150000: has 3 values, the header has 4",
        "a.csv, row 150001: has 5 values, the header has 4",
        "a.csv, row 150002: sums to 1.2, not to 1",
        "a.csv, row 199999: column fraud is missing; every row needs a number",
    ]
    with pytest.raises(InvalidInput) as caught:
        read(resolved(tmp_path, "a.csv"))
    assert messages[0] in said(caught.value)
    found = resolved(tmp_path, "a.csv", on_error="skip", group_by=("country",))
    got, _, counts = read(found)
    assert sorted(m.split(";")[0] for m in counts.messages) == sorted(
        m.split(";")[0] for m in messages
    )
    right = np.setdiff1d(np.arange(200_000), bad)
    expected = np.array([[float(x) for x in good[k].split(",")[:2]] for k in right])
    np.testing.assert_array_equal(got, expected)
    assert (counts.skipped_rows, counts.skipped_files) == (5, 0)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_mark_of_the_byte_order_is_no_part_of_a_name(tmp_path: Path, pack: Any) -> None:
    name = "a.csv" if pack is bytes else "a.csv.gz"
    content = b"\xef\xbb\xbflegit,fraud\n0.5,0.5\n1\n0.4,0.6\n"
    (tmp_path / name).write_bytes(pack(content))
    got, _, counts = read(resolved(tmp_path, name, on_error="skip"))
    assert got.tolist() == [[0.5, 0.5], [0.4, 0.6]]
    assert counts.messages == (f"{name}, row 1: has 1 values, the header has 2",)


def test_text_that_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(
        b"legit,fraud,country\n0.5,0.5,BE\n0.5,0.5,\xff\n0.5,0.5,\xc3\xa9\n"
    )
    column = pa.array([b"BE", b"\xff", b"\xc3\xa9"]).view(pa.string())
    write(
        tmp_path / "a.parquet",
        pa.table({"legit": [0.5] * 3, "fraud": [0.5] * 3, "country": column}),
    )
    for name, place in (("a.csv", "a.csv"), ("a.parquet", "a.parquet, row group 0")):
        asked: dict[str, Any] = {"group_by": ("country",)}
        with pytest.raises(InvalidInput) as caught:
            read(resolved(tmp_path, name, **asked))
        message = f"{place}, row 1: column country holds text that is not UTF-8"
        assert said(caught.value) == [message]
        _, pieces, counts = read(resolved(tmp_path, name, on_error="skip", **asked))
        assert counts.messages == (message,)
        assert sorted(n for p in pieces for (n,) in p.names) == ["BE", "é"]
    content = "legit,fraud,é\n0.5,0.5,ü\n0.5,0.5,".encode() + b"\xff,1\n0.5,0.5,\xff\n0.4,0.6,x\n"
    (tmp_path / "c.csv").write_bytes(content)
    got, pieces, counts = read(resolved(tmp_path, "c.csv", on_error="skip", group_by=("é",)))
    assert got.tolist() == [[0.5, 0.5], [0.4, 0.6]]
    assert pieces[0].names == (("ü",), ("x",))
    assert counts.messages == (
        "c.csv, row 2: column é holds text that is not UTF-8",
        "c.csv, row 1: has 4 values, the header has 3",
    )
    (tmp_path / "b.csv").write_bytes(b"legit,fraud,\xff\n0.5,0.5,1\n")
    with pytest.raises(InvalidInput, match=r"b.csv: cannot be read: "):
        resolved(tmp_path, "b.csv")


def test_a_file_that_changes_after_the_look_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", table(100))
    found = resolved(tmp_path, "a.parquet")
    write(tmp_path / "a.parquet", table(200))
    with pytest.raises(InvalidInput, match="has changed since it was listed"):
        read(found)
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        read(found)


@pytest.mark.parametrize(
    ("asked", "pointer", "message"),
    [
        ({"columns": {"Fraud": "p1"}}, "/dataset/columns", "'Fraud' is no class of the model"),
        ({"columns": {"fraud": "legit"}}, "/dataset/columns", "names column 'legit' twice"),
        ({"group_by": ("country", "country")}, "/dataset/group_by", "twice"),
        ({"group_by": tuple("abcde")}, "/dataset/group_by", "more than 4 columns"),
        ({"group_by": ("amount",)}, "/dataset", "group by text or whole numbers"),
        ({"group_by": ("town",)}, "/dataset", "has no column 'town'"),
        ({"filter": "town = 1"}, "/dataset", "has no column 'town'"),
        ({"filter": "country = 1"}, "/dataset/filter", "a.parquet: at character 1"),
        ({"filter": "country ="}, "/dataset/filter", "at character 10"),
        ({"label": "amount"}, "/dataset", "labels are strings"),
    ],
)
def test_what_is_asked_for_is_checked(
    tmp_path: Path, asked: dict[str, Any], pointer: str, message: str
) -> None:
    write(tmp_path / "a.parquet", table(10))
    with pytest.raises(InvalidInput) as caught:
        resolved(tmp_path, "a.parquet", **asked)
    assert caught.value.faults[0].pointer == pointer
    assert message in caught.value.faults[0].message


@pytest.mark.parametrize(
    "name", ["a.parquet", "p.parquet", "a.arrow", "s.arrow", "a.csv", "a.csv.gz"]
)
def test_damaged_bytes_are_errors_with_a_file_or_left_out(tmp_path: Path, name: str) -> None:
    rows, path = table(400), tmp_path / name
    if name == "s.arrow":
        with pa.ipc.new_stream(path, rows.schema) as writer:
            writer.write_table(rows, max_chunksize=150)
    elif name == "p.parquet":
        write(path, rows, row_group_size=150, use_dictionary=False, data_page_version="2.0")
    else:
        write(path, rows, row_group_size=150)
    good, bad = path.read_bytes(), 0
    asked: dict[str, Any] = {"label": "label", "filter": "amount > 1", "keys": ("id",)}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        content = bytearray(good)
        for place in rng.integers(len(content), size=1 + seed % 5).tolist():
            content[place] = int(rng.integers(256))
        if seed % 4 == 0:
            del content[rng.integers(len(content)) :]
        path.write_bytes(content)
        for on_error in ("fail", "skip"):
            try:
                values, _, counts = read(resolved(tmp_path, name, on_error=on_error, **asked))
            except InvalidInput as error:
                bad += 1
                told = said(error)
            else:
                assert np.isfinite(values).all()
                told = list(counts.messages)
                assert on_error == "skip" or not told
            assert all(name in message for message in told)
    assert bad > 10


def test_object_storage_gives_the_same_rows(tmp_path: Path) -> None:
    import fsspec

    rows = table(1000)
    write(tmp_path / "a.parquet", rows, row_group_size=100)
    write(tmp_path / "a.csv", rows)
    write(tmp_path / "a.arrow", rows)
    memory = fsspec.filesystem("memory")
    for name in ("a.parquet", "a.csv", "a.arrow"):
        memory.pipe_file(f"/bank/scores/{name}", (tmp_path / name).read_bytes())
        roots = Roots.of(["lake=memory://bank"])
        found = resolve(roots, Asked(f"lake:scores/{name}", filter="amount > 20"), CLASSES)
        local = resolved(tmp_path, name, filter="amount > 20")
        np.testing.assert_array_equal(read(found)[0], read(local)[0])


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ExtraMissing, match=r"pip install 'priorshift\[arrow\]'"):
        resolved(tmp_path, "a.parquet")


def test_the_service_starts_without_loading_it() -> None:
    code = "import sys, app.main; assert not {'pyarrow', 'fsspec', 'dask'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
