"""What is kept of a version trained in the service, and the digest of what was sent for it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.learners.trained import Training

PREFIX = "trained."
"""Of the classifier's arrays among those of a version."""
ROWS = "training_rows"
"""The training table; its labels are those of the validation set."""


def digest(training: Training, classes: tuple[str, ...], calibration: str) -> str:
    """SHA-256 of the training content: known before anything is fitted."""
    recipe = asdict(training.recipe)
    named = {"classes": classes, "calibration": calibration, "training": recipe}
    state = hashlib.sha256(json.dumps(named, sort_keys=True).encode())
    sent = (training.columns.array(), training.table, training.labels.astype(np.int32))
    for array in map(np.ascontiguousarray, sent):
        state.update(f"{array.dtype.str} {array.shape}".encode())
        state.update(array.data)
    return state.hexdigest()


def named(arrays: Mapping[str, NDArray[Any]], rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The classifier's arrays and the training table, as they are called in the store."""
    return {**{PREFIX + name: array for name, array in arrays.items()}, ROWS: rows}
