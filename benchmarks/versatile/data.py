"""The data sets, read from a folder of CSV files whose last column is ``target``."""

import csv
import gzip
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path

import numpy as np

from app.core.arrays import Codes, Floats

Row = Mapping[str, str]

FILES = {
    "phoneme": "phoneme",
    "bupa": "bupa",
    "appendicitis": "appendicitis",
    "pima": "pima",
    "breast-w": "breast_w",
    "magic": "magic",
    "threenorm": "threenorm_generated",
    "ringnorm": "ringnorm",
    "ionosphere": "ionosphere",
    "sonar": "sonar",
}
"""Table 2, by file; threenorm is another sample of the same generator."""


@dataclass(frozen=True, eq=False)
class Table:
    """N × d numbers and N codes of C classes."""

    features: Floats
    labels: Codes
    names: tuple[str, ...]
    classes: tuple[str, ...]


@dataclass(frozen=True)
class Contexts:
    """A data set in parts: which column names the part, which columns are inputs.

    ``label``: codes of the two classes of some rows, and of which rows the mean splits them:
    those of the part itself if ``relative``, else all.
    """

    name: str
    file: str
    column: str
    parts: Mapping[str, str]
    inputs: tuple[str, ...]
    label: Callable[[list[Row], list[Row]], Codes]
    relative: bool = False

    def tables(self, folder: Path) -> dict[str, Table] | None:
        """A table for each part; None if the folder lacks the file."""
        rows = read(folder, self.file)
        if rows is None:
            return None
        found = {}
        for short, value in self.parts.items():
            part = [row for row in rows if row[self.column] == value]
            features = np.array([[float(row[name]) for name in self.inputs] for row in part])
            labels = self.label(part, part if self.relative else rows)
            found[short] = Table(features, labels, self.inputs, ("low", "high"))
        return found

    def pairs(self) -> Iterable[tuple[str, str]]:
        """Source and target."""
        return permutations(self.parts, 2)


def _target(part: list[Row], _: list[Row]) -> Codes:
    return np.array([row["target"] == "1" for row in part]).astype(np.intp)


def _readmitted(part: list[Row], _: list[Row]) -> Codes:
    return np.array([row["target"] != "NO" for row in part]).astype(np.intp)


def _above_mean(column: str) -> Callable[[list[Row], list[Row]], Codes]:
    def label(part: list[Row], among: list[Row]) -> Codes:
        values, all_values = (np.array([float(r[column]) for r in rows]) for rows in (part, among))
        above: Codes = (values >= all_values.mean()).astype(np.intp)
        return above

    return label


_WEATHER = ("temp", "atemp", "hum", "windspeed")
_VISITS = (
    "time_in_hospital",
    "num_lab_procedures",
    "num_procedures",
    "num_medications",
    "number_outpatient",
    "number_emergency",
    "number_inpatient",
    "number_diagnoses",
)
_BIKE = Contexts(
    "bike",
    "bike_day",
    "season",
    {"Sp": "1", "S": "2", "A": "3", "W": "4"},
    _WEATHER,
    _above_mean("cnt"),
    relative=True,
)
_MPG = Contexts(
    "auto-mpg",
    "auto_mpg",
    "origin",
    {"U": "1", "E": "2", "J": "3"},
    ("displacement", "horsepower", "weight", "acceleration"),
    _above_mean("mpg"),
    relative=True,
)
CONTEXTS = (
    Contexts(
        "heart",
        "heart_cleveland",
        "sex",
        {"M": "1.0", "F": "0.0"},
        ("age", "trestbps", "chol", "thalach", "oldpeak"),
        _target,
    ),
    _BIKE,
    _MPG,
    Contexts(
        "diabetes",
        "diabetes130",
        "race",
        {"A": "Asian", "AA": "AfricanAmerican", "C": "Caucasian", "H": "Hispanic"},
        _VISITS,
        _readmitted,
    ),
)
"""The paper's. It splits bike and auto-mpg at each context's own mean: its KMM and IOP columns hold
the shares .400, .441, .582 and .414, .478, .468, .478 of such a split, or their complements."""
ABSOLUTE = (
    replace(_BIKE, relative=False),
    replace(_MPG, relative=False),
)
"""The same where the class depends on the amount itself, as anybody would define it first."""


def table(folder: Path, name: str) -> Table | None:
    """One of ``FILES``; None if the folder lacks it."""
    rows = read(folder, FILES[name])
    if rows is None:
        return None
    names = tuple(column for column in rows[0] if column != "target")
    features = np.array([[float(row[column]) for column in names] for row in rows])
    classes, labels = np.unique([row["target"] for row in rows], return_inverse=True)
    return Table(features, labels, names, tuple(classes.tolist()))


def read(folder: Path, file: str) -> list[Row] | None:
    for ending in (".csv", ".csv.gz"):
        path = folder / (file + ending)
        if path.exists():
            content = path.read_bytes()
            text = gzip.decompress(content) if ending.endswith("gz") else content
            return list(csv.DictReader(text.decode().splitlines()))
    return None
