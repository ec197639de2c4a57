"""Columns, labels and groups of files, by names in whatever normal form, in every format."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, feather

from app.core.errors import InvalidInput
from app.datasets.dataset import Asked, resolve
from app.datasets.partition import FilePiece
from app.datasets.roots import Roots
from app.formats import arrow
from tests.core.test_names import E_APART, E

ROWS = np.array([[0.9, 0.1], [0.3, 0.7], [0.2, 0.8], [0.5, 0.5]])
FORMS = (E, E_APART)


def write(place: Path, columns: dict[str, Any]) -> None:
    table = pa.table(columns)
    if place.suffix == ".csv":
        csv.write_csv(table, place)
    elif place.suffix == ".parquet":
        pq.write_table(table, place)
    else:
        feather.write_feather(table, str(place))


def read(folder: Path, asked: Asked, classes: tuple[str, ...]) -> list[FilePiece]:
    resolved = resolve(Roots.of([str(folder)]), asked, classes)
    return [piece for part in resolved.partitions for piece in part.pieces()]


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("kept", FORMS)
@pytest.mark.parametrize("form", FORMS)
def test_columns_and_labels_are_found(tmp_path: Path, kind: str, kept: str, form: str) -> None:
    """``kept``: as the model has the class; ``form``: as the file spells it."""
    columns = {
        "legit": ROWS[:, 0],
        form: ROWS[:, 1],
        f"w{form}": ["legit", E, E_APART, "legit"],
        "town": [E, E_APART, "x", E],
    }
    write(tmp_path / f"a.{kind}", columns)
    asked = Asked(f"a.{kind}", label=f"w{E}", group_by=("town",), filter="legit < 0.95")
    (piece,) = read(tmp_path, asked, ("legit", kept))
    assert np.array_equal(piece.posteriors, ROWS)
    assert piece.labels is not None
    assert piece.labels.tolist() == [0, 1, 1, 0]
    assert piece.groups is not None
    assert [piece.names[code] for code in piece.groups] == [(E,), (E,), ("x",), (E,)]
    mapped = Asked(f"a.{kind}", columns={form: "legit", "legit": E})
    (piece,) = read(tmp_path, mapped, ("legit", kept))
    assert np.array_equal(piece.posteriors, ROWS[:, ::-1])


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_a_group_that_nobody_sees_is_refused_by_its_row(tmp_path: Path, kind: str) -> None:
    columns = {"a": ROWS[:, 0], "b": ROWS[:, 1], "town": ["x", "B\u200bE", "x", "\u202ex"]}
    write(tmp_path / f"a.{kind}", columns)
    with pytest.raises(InvalidInput) as raised:
        read(tmp_path, Asked(f"a.{kind}", group_by=("town",)), ("a", "b"))
    assert [fault.row for fault in raised.value.faults] == [1, 3]
    assert "U+200B" in raised.value.faults[0].message
    (piece,) = read(tmp_path, Asked(f"a.{kind}", group_by=("town",), on_error="skip"), ("a", "b"))
    assert piece.skipped == 2
    assert np.array_equal(piece.posteriors, ROWS[[0, 2]])


def test_folders_name_columns_in_either_form(tmp_path: Path) -> None:
    folder = tmp_path / f"{E_APART}=1"
    folder.mkdir()
    write(folder / "a.parquet", {"a": ROWS[:, 0], "b": ROWS[:, 1]})
    (piece,) = read(tmp_path, Asked("**/*.parquet", group_by=(E,)), ("a", "b"))
    assert piece.names == (("1",),)


@pytest.mark.parametrize(
    "classes", [("=A1", "b"), ("-1", "+1"), ("'=A1", "=A1"), ("@x", E), ('=HYPERLINK("x")', "b")]
)
def test_a_sheet_that_the_service_wrote_is_a_data_set(
    tmp_path: Path, classes: tuple[str, ...]
) -> None:
    content = b"".join(map(bytes, arrow.encode(arrow.CSV, classes, ROWS)))
    (tmp_path / "ours.csv").write_bytes(content)
    write(tmp_path / "raw.csv", {name: ROWS[:, k] for k, name in enumerate(classes)})
    for name in ("ours.csv", "raw.csv"):
        (piece,) = read(tmp_path, Asked(name), classes)
        assert np.array_equal(piece.posteriors, ROWS), name
