"""Array types, and the one check that every matrix of probabilities passes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.errors import Fault, InvalidInput

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Mask = NDArray[np.bool_]

SILENT = 1e-6
"""Row sums this far from one are rescaled without a word."""
TOLERATED = 1e-3
"""Row sums this far from one are rescaled with a warning, beyond it refused."""
FAULTS_SHOWN = 20


@dataclass(frozen=True)
class Rows:
    """Probability rows that sum to one, and how many were rescaled by more than ``SILENT``."""

    values: Floats
    renormalised: int


def probability_rows(values: Floats, pointer: str) -> Rows:
    """Check an N × C matrix of probabilities and rescale its rows to sum to one.

    Raises ``InvalidInput`` naming the first rows that hold a NaN, an infinity or a negative
    number, or whose sum is further than ``TOLERATED`` from one.
    """
    if values.shape[0] == 0:
        raise InvalidInput.at(pointer, "holds no rows; send at least one")
    with np.errstate(invalid="ignore", over="ignore"):
        sums = values.sum(axis=1)
        lowest = values.min(axis=1)
        off = np.abs(sums - 1.0)
        wrong = ~(off <= TOLERATED) | ~(lowest >= 0.0)
    if wrong.any():
        rows = np.flatnonzero(wrong)
        shown = rows[:FAULTS_SHOWN]
        raise InvalidInput([_fault(values[i], int(i), pointer) for i in shown], len(rows))
    if not off.any():
        return Rows(values, 0)
    return Rows(values / sums[:, None], int(np.count_nonzero(off > SILENT)))


def probabilities(values: Floats, pointer: str) -> Rows:
    """The same check for a single vector of probabilities."""
    try:
        rows = probability_rows(values[None, :], pointer)
    except InvalidInput as error:
        raise InvalidInput([Fault(pointer, f.message) for f in error.faults]) from None
    return Rows(rows.values[0], rows.renormalised)


def _fault(row: Floats, index: int, pointer: str) -> Fault:
    where = f"{pointer}/{index}"
    if not np.isfinite(row).all():
        return Fault(where, "holds a NaN or an infinity; send finite probabilities", index)
    if (row < 0).any():
        return Fault(where, "holds a negative number; send probabilities", index)
    with np.errstate(over="ignore"):
        total = row.sum()
    message = f"sums to {total:.6g}, not to 1; send normalised probabilities"
    return Fault(where, message, index)
