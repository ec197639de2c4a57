"""How often a class was true where its score was about so much: the calibration curve."""

from dataclasses import asdict, dataclass
from math import sqrt

import numpy as np

from app.core.arrays import Codes, Floats
from app.core.json_types import JsonObject
from models_store.records import VersionRecord
from models_store.store import UnitOfWork

BINS = 10
MOST_NUMBERS = 4_000_000
"""Validation rows times classes that a page reads."""
QUANTILE = 1.959964
"""Of the normal distribution, for 95 %."""


@dataclass(frozen=True)
class Point:
    """Rows of about one score, how often the class was true of them, and Wilson's interval."""

    score: float
    frequency: float
    lower: float
    upper: float
    rows: int


def curves(unit: UnitOfWork, record: VersionRecord, k: int) -> JsonObject | None:
    """Of class k, of raw posteriors and of calibrated ones; None without rows, or of too many."""
    source = record.source
    size = source.validation_size
    if size is None or size * len(source.classes) > MOST_NUMBERS:
        return None
    kept = unit.versions.validation(record)
    if kept is None:
        return None
    found = {"class": source.classes[k], "raw": _points(kept.posteriors[:, k], kept.labels == k)}
    if source.calibration.method != "none":
        calibrated = source.calibration.apply(kept.posteriors)[:, k]
        found["calibrated"] = _points(calibrated, kept.labels == k)
    return found


def _points(scores: Floats, true: Codes) -> list[dict[str, object]]:
    bins = np.minimum((scores * BINS).astype(np.intp), BINS - 1)
    rows = np.bincount(bins, minlength=BINS)
    hits = np.bincount(bins, weights=true, minlength=BINS)
    sums = np.bincount(bins, weights=scores, minlength=BINS)
    return [
        asdict(_point(float(sums[b]), float(hits[b]), int(rows[b]))) for b in range(BINS) if rows[b]
    ]


def _point(total: float, hits: float, rows: int) -> Point:
    share, z = hits / rows, QUANTILE
    centre = (share + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z / (1 + z * z / rows) * sqrt(share * (1 - share) / rows + (z / (2 * rows)) ** 2)
    return Point(total / rows, share, max(centre - half, 0.0), min(centre + half, 1.0), rows)
