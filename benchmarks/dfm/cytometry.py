"""T cells of several patients, one cell type missing from the source (figure 2)."""

from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np

from app.core.arrays import Codes, Floats
from benchmarks.dfm.methods import METHODS, Source

LABORATORIES = ("Stanford", "Yale")
"""Those with samples of three patients; samples 1–3, 4–6 and 7–9 are of one patient each."""


@dataclass(frozen=True)
class Patient:
    """Cells of one patient: markers, and types 0 … 9."""

    rows: Floats
    labels: Codes


@dataclass(frozen=True)
class Removal:
    """Errors by pair of patients and method; ``share``: mean share of the cell type in targets."""

    name: str
    share: float
    errors: Floats


def removals(folder: Path) -> list[Removal]:
    """Without and with each cell type removed from the source, rarest first."""
    data = np.load(folder / "hipc_tcell.npz")
    names = [str(name) for name in data["classes"][1:]]
    pairs = [pair for lab in LABORATORIES for pair in permutations(_patients(data, lab), 2)]
    results = []
    for removed in [None, *range(len(names))]:
        errors = np.array([_errors(*pair, len(names), removed) for pair in pairs])
        if removed is None:
            results.append(Removal("none", 0.0, errors))
            continue
        share = float(np.mean([(target.labels == removed).mean() for _, target in pairs]))
        results.append(Removal(names[removed], share, errors))
    return sorted(results, key=lambda removal: removal.share)


def _patients(data: dict[str, Floats], laboratory: str) -> list[Patient]:
    groups: dict[int, list[int]] = {}
    for position, name in enumerate(data["sample_names"]):
        lab, _, sample = str(name).partition("/")
        if lab == laboratory:
            groups.setdefault((int(sample.rpartition("_")[2]) - 1) // 3, []).append(position)
    patients = []
    for positions in groups.values():
        own = np.isin(data["sample"], positions)
        labels = data["target"][own].astype(np.intp) - 1
        patients.append(Patient(data["X"][own].astype(np.float64), labels))
    return patients


def _errors(source: Patient, target: Patient, classes: int, removed: int | None) -> list[float]:
    kept = source.labels != (-1 if removed is None else removed)
    position = np.cumsum([k != removed for k in range(classes)]) - 1
    known = Source.of(source.rows[kept], position[source.labels[kept]])
    counts = np.bincount(target.labels, minlength=classes) / len(target.labels)
    truth = counts if removed is None else np.delete(counts, removed)
    answers = known.estimates(target.rows)
    return [float(np.linalg.norm(answers[m] - truth)) for m in METHODS]
