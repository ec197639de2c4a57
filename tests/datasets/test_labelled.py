"""Labelled rows of data sets as validation sets."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from app.core.arrays import probability_rows
from app.core.errors import InvalidInput
from app.datasets.dataset import Asked, resolve
from app.datasets.labelled import labelled
from app.datasets.roots import Roots
from tests.datasets.test_dataset import CLASSES, matrix, resolved, table, write


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_labels_and_posteriors_are_those_of_a_request(tmp_path: Path, kind: type) -> None:
    for k in range(3):
        write(tmp_path / f"{k}.parquet", table(100, k, kind), row_group_size=30)
    validation, counts = labelled(resolved(tmp_path, "*.parquet", label="label"), 300)
    rows = np.concatenate([matrix(table(100, k, kind)) for k in range(3)])
    expected = probability_rows(rows.astype(np.float64), "").values
    np.testing.assert_allclose(validation.posteriors, expected, rtol=0, atol=1e-15)
    assert validation.posteriors.dtype == np.float64
    names = [label for k in range(3) for label in table(100, k).column("label").to_pylist()]
    assert [CLASSES[code] for code in validation.labels] == names
    assert counts.rows == 300


def test_rows_are_bounded_and_labels_needed(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", table(100))
    with pytest.raises(InvalidInput, match="more than 99 labelled rows"):
        labelled(resolved(tmp_path, "a.parquet", label="label"), 99)
    with pytest.raises(InvalidInput, match="name the column of true classes"):
        labelled(resolved(tmp_path, "a.parquet"), 100)
    with pytest.raises(InvalidInput, match="holds no labelled rows"):
        labelled(resolved(tmp_path, "a.parquet", label="label", filter="id < 0"), 100)


@pytest.mark.parametrize("kind", [pa.int8(), pa.float64(), pa.decimal128(25, 2), pa.string()])
def test_labels_are_classes_of_the_same_spelling(tmp_path: Path, kind: pa.DataType) -> None:
    names, codes = ["0", "1"], [k % 2 for k in range(30)]
    rows = table(30).select(CLASSES).rename_columns(names)
    rows = rows.append_column("label", pa.array(codes).cast(kind))
    write(tmp_path / "a.parquet", rows)
    write(tmp_path / "b.csv", rows.set_column(2, "label", pa.array(codes)))
    for path in ("a.parquet", "b.csv"):
        asked = Asked(path, label="label")
        found = resolve(Roots.of([str(tmp_path)]), asked, names)
        validation, _ = labelled(found, 100)
        assert validation.labels.tolist() == codes


def test_zero_one_is_not_one(tmp_path: Path) -> None:
    """It stays what it is."""
    rows = pa.table({"1": [0.5], "2": [0.5], "label": ["01"]})
    write(tmp_path / "a.csv", rows)
    found = resolve(Roots.of([str(tmp_path)]), Asked("a.csv", label="label"), ["1", "2"])
    with pytest.raises(InvalidInput, match="'01' is not a label"):
        labelled(found, 100)
