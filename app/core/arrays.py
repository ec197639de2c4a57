"""Array types, and the one check that every matrix of probabilities passes.

Products over the rows of a batch are written ``np.dot``, here and elsewhere: it lets other threads
run meanwhile, which the operator ``@`` does not.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core import deadline
from app.core.errors import Fault, InvalidInput

Floats = NDArray[np.float64]
AnyArray = NDArray[Any]
AnyFloats = NDArray[np.floating[Any]]
Codes = NDArray[np.intp]
Mask = NDArray[np.bool_]

ROUNDING = 1e-13
"""Row sums this far from one are as near as adding up gets, and left alone."""
ROUNDING_SINGLE = 2.0**-23
"""Row sums of float32 this far from one are as near as adding up gets."""
SILENT = 1e-6
"""Row sums this far from one are rescaled without a word."""
TOLERATED = 1e-3
"""Row sums this far from one are rescaled with a warning, beyond it refused."""
FAULTS_SHOWN = 20
PIECE = 1 << 17
"""Numbers that are checked in one go, while they are in the cache."""
NARROW = 16
"""Columns that are better taken one by one."""


@dataclass(frozen=True)
class ProbabilityRows:
    """N rows of probabilities.

    ``values``: N × C, each row of sum one.
    ``renormalised``: how many were rescaled by more than ``SILENT``.
    """

    values: Floats
    renormalised: int


def probability_rows(values: Floats, pointer: str, owned: bool = False) -> ProbabilityRows:
    """Check an N × C matrix of probabilities and rescale its rows to sum to one.

    Raises ``InvalidInput`` naming the first rows that hold a NaN, an infinity or a negative
    number, or whose sum is further than ``TOLERATED`` from one. ``owned``: nobody else needs
    ``values``, which are then rescaled where they are. Rows of float32 stay so.
    """
    if values.shape[0] == 0:
        raise InvalidInput.at(pointer, "holds no rows; send at least one")
    rows, classes = values.shape
    length = max(PIECE // classes, 1)
    room = np.empty(min(rows, length))
    rounding = ROUNDING_SINGLE if values.dtype == np.float32 else ROUNDING
    rescaled: Floats | None = None
    renormalised = 0
    for start in range(0, rows, length):
        deadline.check()
        part = slice(start, start + length)
        block = values[part]
        with np.errstate(invalid="ignore", over="ignore"):
            sums = _sums_into(block, room[: len(block)])
            # Both are NaN if one of the sums is.
            worst = max(sums.max() - 1.0, 1.0 - sums.min())
        if not (worst <= TOLERATED and block.min() >= 0.0):
            raise _faults(values, pointer)
        if worst > rounding:
            if rescaled is None:
                rescaled = values if owned else values.copy()
            divide_rows(block, sums, rescaled[part])
            if worst > SILENT:
                renormalised += int(np.count_nonzero(np.abs(sums - 1.0) > SILENT))
    return ProbabilityRows(values if rescaled is None else rescaled, renormalised)


def _sums_into(rows: Floats, out: Floats) -> Floats:
    """Sum of each row in double precision; single precision would be cast twice by a product."""
    if rows.dtype == np.float64 or not 2 <= rows.shape[1] <= NARROW:
        return np.matmul(rows, np.ones(rows.shape[1]), out=out)
    np.add(rows[:, 0], rows[:, 1], out=out, dtype=np.float64)
    for column in rows.T[2:]:
        out += column
    return out


def refused_rows(values: Floats) -> Codes:
    """Which rows ``probability_rows`` refuses, in order."""
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(values.sum(axis=1, dtype=np.float64) - 1.0)
        return np.flatnonzero(~(off <= TOLERATED) | ~(values.min(axis=1) >= 0.0))


def _faults(values: Floats, pointer: str) -> InvalidInput:
    """The rows that are no probabilities, all of them counted."""
    wrong = refused_rows(values)
    first = [row_fault(values[i], int(i), pointer) for i in wrong[:FAULTS_SHOWN]]
    return InvalidInput(first, len(wrong))


def row_sums(rows: Floats) -> Floats:
    """Sum of each row, n values; a product, since a loop over few numbers is slow."""
    sums: Floats = np.dot(rows, np.ones(rows.shape[1]))
    return sums


def row_maxima(rows: Floats) -> Floats:
    """The largest number of each row, n values."""
    if rows.shape[1] > NARROW:
        return np.asarray(rows.max(axis=1))
    largest = rows[:, 0].copy()
    for column in rows.T[1:]:
        np.maximum(largest, column, out=largest)
    return largest


def row_argmax(rows: AnyFloats) -> Codes:
    """Where the largest number of each row is, the first of equal ones; n codes."""
    if rows.shape[1] > NARROW:
        return np.asarray(np.argmax(rows, axis=1))
    codes, largest = np.zeros(len(rows), np.intp), rows[:, 0].copy()
    for k, column in enumerate(rows.T[1:], 1):
        # Masks are slow where no branch predictor can guess them.
        np.maximum(codes, (column > largest).astype(np.intp) * k, out=codes)
        np.maximum(largest, column, out=largest)
    return codes


def subtract_rows(rows: Floats, by: Floats) -> None:
    """Take its number of ``by`` from each of the n × C ``rows``, in place."""
    if rows.shape[1] > NARROW:
        rows -= by[:, None]
        return
    for column in rows.T:
        column -= by


def divide_rows(rows: Floats, by: Floats, out: Floats) -> None:
    """N × C ``rows``, each divided by its number of ``by``, into ``out``.

    Few columns are divided one by one: a loop over two numbers costs more than the division.
    """
    if rows.shape[1] > NARROW:
        np.divide(rows, by[:, None], out=out)
        return
    for k in range(rows.shape[1]):
        np.divide(rows[:, k], by, out=out[:, k])


def take_rows(rows: AnyFloats, places: Codes) -> AnyFloats:
    """The rows at ``places``, in this order; few columns one by one, which stay columns."""
    if rows.shape[1] > NARROW:
        return rows[places]
    taken = np.empty((len(places), rows.shape[1]), rows.dtype, "F")
    for k, column in enumerate(rows.T):
        np.take(column, places, out=taken[:, k], mode="clip")
    return taken


def multiply_rows(rows: Floats, by: Floats) -> Floats:
    """N × C ``rows``, each multiplied by its number of ``by``; as ``divide_rows``."""
    if rows.shape[1] > NARROW:
        return rows * by[:, None]
    product = np.empty_like(rows)
    for k in range(rows.shape[1]):
        np.multiply(rows[:, k], by, out=product[:, k])
    return product


def multiply_columns(rows: Floats, by: Floats) -> Floats:
    """N × C ``rows``, each column multiplied by its number of ``by``."""
    if rows.shape[1] > NARROW:
        return rows * by
    product = np.empty_like(rows)
    for k, factor in enumerate(by):
        np.multiply(rows[:, k], factor, out=product[:, k])
    return product


def add_columns(rows: Floats, by: Floats) -> None:
    """Add its number of ``by`` to each column of N × C ``rows``, in place."""
    if rows.shape[1] > NARROW:
        rows += by
        return
    for column, term in zip(rows.T, by, strict=True):
        column += term


def probabilities(values: Floats, pointer: str) -> ProbabilityRows:
    """The same check for a single vector of probabilities, ``InvalidInput`` for others."""
    try:
        rows = probability_rows(values[None, :], pointer)
    except InvalidInput as error:
        raise InvalidInput([Fault(pointer, f.message) for f in error.faults]) from None
    return ProbabilityRows(rows.values[0], rows.renormalised)


def row_fault(row: Floats, index: int, pointer: str) -> Fault:
    """What is wrong with a row that is refused."""
    where = f"{pointer}/{index}"
    if not np.isfinite(row).all():
        return Fault(where, "holds a NaN or an infinity; send finite probabilities", index)
    if (row < 0).any():
        return Fault(where, "holds a negative number; send probabilities", index)
    with np.errstate(over="ignore"):
        total = row.sum()
    message = f"sums to {total:.6g}, not to 1; send normalised probabilities"
    return Fault(where, message, index)
