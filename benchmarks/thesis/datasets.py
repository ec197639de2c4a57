"""The data sets of the thesis (its table 7.1), read from CSV files, or scikit-learn's own.

As in the thesis every input is a number: text and the columns named here become an indicator per
level, the others are centred and divided by their standard deviation, over the whole set.
"""

import csv
import gzip
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np

from app.core.arrays import Codes, Floats

SMALLEST_CLASS = 4
"""A class with fewer rows is left out: each half needs two of it."""


@dataclass(frozen=True)
class DataSet:
    """N rows of inputs and class codes. ``left_out``: classes with too few rows."""

    name: str
    inputs: Floats
    labels: Codes
    left_out: tuple[str, ...] = ()

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.labels.max()) + 1

    @property
    def key(self) -> int:
        """A number for seeds, the same in every process."""
        return crc32(self.name.encode())


@dataclass(frozen=True)
class Listed:
    """A row of table 7.1: its name here, and number-coded columns that are categories."""

    name: str
    categories: tuple[str, ...] = ()


THESIS = (
    Listed("abalone_sex"),
    Listed("balance_scale"),
    Listed("banknote"),
    Listed("blood_transfusion"),
    Listed("breast_tissue"),
    Listed("credit_default", ("SEX", "EDUCATION", "MARRIAGE")),
    Listed("dermatology"),
    Listed("ecoli"),
    Listed("glass"),
    Listed("haberman"),
    Listed("htru2"),
    Listed("image_segmentation"),
    Listed("iris"),
    Listed("letter_vowels"),
    Listed("magic"),
    Listed("mammographic", ("shape", "margin")),
    Listed("mice_protein"),
    Listed("occupancy"),
    Listed("page_blocks"),
    Listed("pendigits"),
    Listed("sonar"),
    Listed("seismic_bumps"),
    Listed("spambase"),
    Listed("waveform1"),
    Listed("wine"),
)
LARGE = ("credit_default", "htru2", "magic")
"""What the thesis leaves out of its tables 7.7 and 7.8."""
TARGET = "target"


def load(directory: Path | None, names: Iterable[str] = ()) -> list[DataSet]:
    """The thesis's sets that ``directory`` holds, or scikit-learn's; only ``names`` if given."""
    chosen = set(names)
    sets = _shipped(chosen) if directory is None else _listed(directory, chosen)
    unknown = chosen - {data.name for data in sets}
    if unknown or not sets:
        raise SystemExit(f"no data set: {', '.join(sorted(unknown)) or directory}")
    return sets


def _listed(directory: Path, chosen: set[str]) -> list[DataSet]:
    sets = []
    for listed in THESIS:
        paths = [directory / f"{listed.name}.csv{end}" for end in ("", ".gz")]
        path = next((path for path in paths if path.exists()), None)
        if path is not None and (not chosen or listed.name in chosen):
            sets.append(read(listed, path))
    return sets


def read(listed: Listed, path: Path) -> DataSet:
    """A CSV file with a header; ``target`` holds the labels."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    header, *rows = csv.reader(text.splitlines())
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    labels = columns.pop(TARGET)
    inputs = [_encoded(values, name in listed.categories) for name, values in columns.items()]
    return _data_set(listed.name, np.hstack(inputs), labels)


def _encoded(values: tuple[str, ...], categorical: bool) -> Floats:
    """N × 1 standardised numbers, or N × L indicators of the L levels."""
    if not categorical:
        try:
            return _standardised(np.array(values, np.float64)[:, None])
        except ValueError:
            pass
    levels = sorted(set(values))
    return np.array([[value == level for level in levels] for value in values], np.float64)


def _standardised(inputs: Floats) -> Floats:
    spread = inputs.std(axis=0)
    scaled: Floats = (inputs - inputs.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return scaled


def _data_set(name: str, inputs: Floats, labels: Sequence[str]) -> DataSet:
    counts = Counter(labels)
    few = sorted(label for label, count in counts.items() if count < SMALLEST_CLASS)
    codes = {label: k for k, label in enumerate(sorted(set(labels) - set(few)))}
    kept = [i for i, label in enumerate(labels) if label in codes]
    return DataSet(
        name, inputs[kept], np.array([codes[labels[i]] for i in kept], np.intp), tuple(few)
    )


def _shipped(chosen: set[str]) -> list[DataSet]:
    from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

    loaders: dict[str, Callable[..., tuple[Floats, Codes]]] = {
        "iris": load_iris,
        "wine": load_wine,
        "breast_cancer": load_breast_cancer,
        "digits": load_digits,
    }
    sets = []
    for name, loader in loaders.items():
        if not chosen or name in chosen:
            inputs, labels = loader(return_X_y=True)
            sets.append(DataSet(name, _standardised(inputs), labels.astype(np.intp)))
    return sets
