"""Labelled rows of a data set as a validation set, as registration takes it.

resolved = resolve(roots, Asked("labelled/*.parquet", label="label"), classes)
validation, counts = labelled(resolved, settings.max_rows)
"""

import numpy as np

from app.core.arrays import Codes, Floats, probability_rows
from app.core.errors import InvalidInput
from app.core.prevalence.source import ValidationSet
from app.datasets.dataset import Resolved
from app.datasets.partition import Counts


def labelled(resolved: Resolved, most: int, at: str = "/dataset") -> tuple[ValidationSet, Counts]:
    """At most ``most`` rows in order, and what was left out; the data set has a label column."""
    labels: list[Codes] = []
    posteriors: list[Floats] = []
    counts = resolved.skipped
    for partition in resolved.partitions:
        for piece in partition.pieces():
            if piece.labels is None:
                raise InvalidInput.at(f"{at}/label", "is missing; name the column of true classes")
            counts = counts.plus(piece)
            if counts.rows > most:
                message = f"has more than {most} labelled rows; choose some, or fewer files"
                raise InvalidInput.at(at, message)
            labels.append(piece.labels)
            posteriors.append(np.asarray(piece.posteriors, np.float64))
    if not counts.rows:
        raise InvalidInput.at(at, "holds no labelled rows")
    rows = probability_rows(np.concatenate(posteriors), at, owned=True)
    return ValidationSet(np.concatenate(labels), rows.values), counts
